"""The documents as tests read them: their blocks in order, and how what is shown compares with what is printed."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "notes").glob("*.md")),
]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?```(?P<language>console|sh|python)\n(?P<text>.*?)```", re.S
)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.]*[a-z_]\w)", re.IGNORECASE)
TOLERANCE = 2e-3  # relative: last digits differ between machines


@dataclass(frozen=True)
class Step:
    """A command or a program of a document, and what it is said to print."""

    language: str
    text: str
    shown: list[str] = field(default_factory=list)
    reason: str = ""  # why it is not run

    @property
    def refusal(self) -> bool:
        """Whether what is shown ends with an exit code other than 0."""
        return any(line.startswith("Error: ") or "out-of-domain" in line for line in self.shown)


def steps_of(document: Path) -> list[Step]:
    """Every command and program of a document, in order."""
    steps: list[Step] = []
    for block in BLOCK.finditer(document.read_text()):
        language, text, reason = block["language"], block["text"], block["reason"] or ""
        if language == "python":
            steps.append(Step(language, text, reason=reason))
        elif language == "sh":
            lines = (line.partition(" #")[0].strip() for line in text.replace("\\\n", " ").splitlines())
            steps += [Step(language, line, reason=reason) for line in lines if line and not line.startswith("#")]
        else:
            for line in text.splitlines():
                if line.startswith("$ "):
                    steps.append(Step(language, line[2:], [], reason))
                elif steps:
                    steps[-1].shown.append(line)
    return steps


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
