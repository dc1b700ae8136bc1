"""The documents are true: every command they show runs and prints what is shown."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.]*[a-z_]\w)", re.IGNORECASE)
TOLERANCE = 2e-3  # relative: last digits differ between machines


def sessions():
    """(document, [(command, expected lines), ...]) for each document with console blocks."""
    for document in DOCUMENTS:
        steps = []
        for block in re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL):
            for line in block.splitlines():
                if line.startswith("$ "):
                    steps.append((line[2:], []))
                elif steps:
                    steps[-1][1].append(line)
        if steps:
            yield document, steps


def same(shown: str, printed: str) -> bool:
    """Whether two lines say the same, numbers compared as numbers and blanks folded; '...' ends a line early."""
    if shown.endswith(" ..."):
        shown = shown.removesuffix(" ...")
        printed = " ".join(printed.split()[: len(shown.split())])
    skeletons = [" ".join(NUMBER.sub("0", line).split()) for line in (shown, printed)]
    if skeletons[0] != skeletons[1]:
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE * max(abs(float(a)), 1e-3) for a, b in pairs)


def follows(shown: list[str], printed: list[str]) -> str | None:
    """None when `shown` is `printed` with gaps only where it says '...', else the line that is missing."""
    position, gap = 0, False
    for line in shown:
        if line.strip() == "...":
            gap = True
            continue
        while position < len(printed) and not same(line, printed[position]):
            if not gap:
                return line
            position += 1
        if position == len(printed):
            return line
        position, gap = position + 1, False
    return None


@pytest.mark.parametrize(("document", "steps"), list(sessions()), ids=lambda value: getattr(value, "name", ""))
def test_every_command_of_a_document_runs_and_prints_what_is_shown(tmp_path, document, steps):
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CCT_ZOO_HOME": str(tmp_path / ".cct-zoo"),
        "COLUMNS": "120",
    }
    if (ROOT / "docs" / "examples").is_dir():
        shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    for command, shown in steps:
        shell = ["bash", "-c", command]
        done = subprocess.run(
            shell, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        expected_code = 0
        if shown and shown[0].startswith("Error: "):
            expected_code = done.returncode or 1  # a refusal that is shown must be a refusal
        assert done.returncode == expected_code, f"{document.name}: {command}\n{done.stderr}"
        printed = (done.stdout if expected_code == 0 else done.stderr).splitlines()
        missing = follows(shown, printed)
        assert missing is None, f"{document.name}: {command}\nshown: {missing}\nprinted:\n" + "\n".join(printed)


def test_links_between_documents_lead_somewhere():
    for document in DOCUMENTS:
        text = re.sub(r"```.*?```|`[^`]*`|^(?: {4}).*$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):  # formulas and code are no links
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_equation_that_code_cites_stands_in_the_theory():
    numbers = re.findall(r"^ {4}.*\((\d+)\)$", (ROOT / "docs" / "theory.md").read_text(), re.MULTILINE)
    assert len(set(numbers)) == len(numbers), "two equations have the same number"
    cited = 0
    for package in ("contingencies", "espinn_moe", "registry", "zoo"):
        for path in (ROOT / package).rglob("*.py"):
            text = re.sub(r"\s+#?\s*", " ", path.read_text())
            for citation in re.findall(r"[Tt]heory\.md eqs?\. ((?:\([^)]*\)[-, ]*)+)", text):
                for number in re.findall(r"\(([^)]*)\)", citation):
                    cited += 1
                    assert number in numbers, f"{path.name} cites eq. ({number}), which docs/theory.md does not have"
    assert cited > 20


def test_the_comparison_of_shown_and_printed_lines_can_fail():
    assert same("CCT 0.68011 s  [fast]", "CCT  0.68012 s [fast]")
    assert not same("CCT 0.68011 s", "CCT 0.69 s")
    assert not same("stable", "UNSTABLE")
    assert same("CCT 0.68011 s ...", "CCT 0.68012 s [fast]")
    assert not same("CCT 0.68011 s ...", "CCT 0.78012 s [fast]")
    assert follows(["a", "...", "d"], ["a", "b", "c", "d"]) is None
    assert follows(["a", "d"], ["a", "b", "c", "d"]) == "d"
