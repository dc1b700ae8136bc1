"""The documents are true: every command they show runs and prints what is shown."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import cli
from contingencies.field_tables import field_rows, field_table
from contingencies.spec import ContingencySpec
from contingencies.system_specs import SystemDocument
from tests.documents import DOCUMENTS, ROOT, follows, same, steps_of
from zoo.paper import ENTRIES

QUOTED = re.compile(r"'[^']*'|\"[^\"$]*\"")
SHELL = re.compile(r"[|&;<>$`*]|^\w+=")  # what only a shell understands


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with the examples of the documents and a home of its own."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"CCT_ZOO_HOME": str(tmp_path / ".cct-zoo"), "COLUMNS": "120", "PATH": path, "LOKY_MAX_CPU_COUNT": "1"}
    for name, value in settings.items():  # one process: starting workers would cost more than they save
        monkeypatch.setenv(name, value)
    return tmp_path


def needs_shell(command: str) -> bool:
    """Whether a command has parts that only a shell understands, quoted words aside."""
    return bool(SHELL.search(QUOTED.sub("", command)))


def run(command: str, monkeypatch) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; a plain call of the zoo runs in this process."""
    words = [] if needs_shell(command) else shlex.split(command)
    if words[:1] != ["cct-zoo"]:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr
    monkeypatch.setattr(sys, "argv", words)
    code, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    "document", [each for each in DOCUMENTS if any(not s.reason for s in steps_of(each))], ids=lambda path: path.name
)
def test_every_command_of_a_document_runs_and_prints_what_is_shown(folder, monkeypatch, document):
    names: dict[str, object] = {"__name__": "document"}
    for step in steps_of(document):
        if step.reason:
            continue
        if step.language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(step.text, document.name, "exec"), names)
            continue
        code, out, err = run(step.text, monkeypatch)
        assert bool(code) == step.refusal, f"{document.name}: {step.text}\n{err}"
        printed = (out or err).splitlines()
        missing = follows(step.shown, printed)
        assert missing is None, f"{document.name}: {step.text}\nshown: {missing}\nprinted:\n" + "\n".join(printed)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_that_take_too_long_for_a_test_are_accepted_by_the_command_line(document):
    for step in steps_of(document):
        if not step.reason or not step.text.startswith("cct-zoo ") or needs_shell(step.text) or "..." in step.text:
            continue
        name, *arguments = shlex.split(step.text)[1:]
        command = cli.zoo.get_command(None, name)
        assert command is not None, step.text
        command.make_context(name, arguments)  # refuses options and values that it does not know


def test_every_figure_of_a_document_is_drawn_by_a_command_that_it_names():
    for document in DOCUMENTS:
        text = document.read_text()
        words = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)).replace("`", " ").split()
        for figure in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            named = any(fnmatch(Path(figure).name, Path(word).name) for word in words if "." in word)
            assert named, f"{document.name} does not say which command draws {figure}"


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


@pytest.mark.parametrize(("options", "record"), [((), ContingencySpec), (("--system",), SystemDocument)])
def test_the_tables_of_fields_are_those_of_the_models_that_check_the_files(options, record):
    command = " ".join(["cct-zoo schema", *options, "--table"])
    assert field_table(record) in (ROOT / "docs" / "fields.md").read_text(), f"put the table of '{command}' there"
    assert all(row.meaning for row in field_rows(record)), "a field has no description"


def test_every_measured_figure_names_a_command_that_exists_and_a_commit():
    rows = [line for line in (ROOT / "docs" / "measured.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        cells = [cell.strip() for cell in row.strip("| ").split("|")]
        assert len(cells) == 4, f"{cells[0]}: say what, the figure, its command and the commit that records it"
        what, _, command, commit = cells
        script = re.search(r"`python (benchmarks/\S+\.py)", command)
        called = re.search(r"`cct-zoo (\S+) ?([^\s`]*)", command)
        known = called is not None and called[1] in cli.COMMANDS and (called[1] != "benchmark" or called[2] in ENTRIES)
        made = re.fullmatch(r"`make (\S+)`", command)
        known = known or (made is not None and f"\n{made[1]}:" in (ROOT / "Makefile").read_text())
        exists = (ROOT / script[1]).is_file() if script else known
        assert exists, f"{what}: {command} prints no figure"
        assert re.fullmatch(r"[0-9a-f]{7,40}", commit), f"{what}: {commit!r} is not a commit"


def test_every_figure_of_the_readme_stands_in_measured():
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    measured = (ROOT / "docs" / "measured.md").read_text()
    figures = re.findall(r"(?<![\w.])\d[\d.,]*(?:x\b| ?(?:ms|µs|us|s|%|million|times)\b)", prose)
    assert not [figure for figure in figures if figure not in measured]
