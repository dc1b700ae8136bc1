"""Files that never end, never stop nesting, or describe no grid: refused with a sentence before any parsing."""

import os
import threading
from pathlib import Path

import pytest

from contingencies import reading
from contingencies.documents import MAX_ENTRIES, parse_documents, read_documents
from contingencies.errors import NotFoundError, SpecError, UsageError
from contingencies.library import load_contingency, load_system
from contingencies.reading import read_and_check, read_contingencies

UNREADABLE = r"not a plain file|no such file|cannot be read"
SYSTEM = """name: tiny
network: {file: grid.m}
base_mva: 100.0
frequency_hz: 60.0
provenance: a test
machines: {base: system, units: [{bus: 1, H: 5.0, x_d: 0.2}]}
"""


def within_seconds(action, *arguments):
    """Run in a thread, so that a read that never ends fails the test instead of hanging it."""
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            action(*arguments)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert outcome, "it hangs"
    if outcome[0] is not None:
        raise outcome[0]


@pytest.mark.parametrize("device", ["pipe", "/dev/zero", "/dev/stdin"])
def test_a_pipe_or_a_device_is_refused_as_description_and_as_network(tmp_path: Path, device: str) -> None:
    for name in ("fault.yaml", "grid.m"):
        os.mkfifo(tmp_path / name) if device == "pipe" else (tmp_path / name).symlink_to(device)
    with pytest.raises(NotFoundError, match=UNREADABLE):
        within_seconds(read_documents, tmp_path / "fault.yaml")
    (tmp_path / "tiny.yaml").write_text(SYSTEM)
    with pytest.raises(SpecError, match=UNREADABLE):
        within_seconds(load_system, str(tmp_path / "tiny.yaml"))
    (tmp_path / "tiny.yaml").unlink()
    with pytest.raises(NotFoundError, match="holds no contingency files"):
        within_seconds(read_contingencies, [str(tmp_path)])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[" * 10_000, "nested too deeply"),
        ("{a: " * 10_000, "nested too deeply"),
        ("- " * 10_000, "nested too deeply"),
        ("name: [" + "1, " * 2_000_000 + "1]", "entries"),
        ("name:\n" + "- 1\n" * 1_000_000, "entries"),
        ("---\n" * 1_000_000, "documents"),
    ],
)
def test_a_text_that_no_description_can_be_is_refused_before_it_is_parsed(
    monkeypatch, text: str, complaint: str
) -> None:
    monkeypatch.setattr("contingencies.documents.YAML", None)  # the parser is not reached
    with pytest.raises(SpecError, match=complaint):
        parse_documents(text, "text")


def test_a_system_with_thousands_of_machines_is_not_too_large() -> None:
    units = ", ".join(f"{{bus: {k}, H: 4.0, x_d: 0.3, D: 1.0, mva: 100.0}}" for k in range(1, 9000))
    assert units.count(",") < MAX_ENTRIES
    (document,) = parse_documents(f"units: [{units}]".replace("H: 4.0, x_d: 0.3, D: 1.0, ", ""), "text")
    assert len(document.content["units"]) == 8999


def test_a_folder_with_too_much_in_it_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "MAX_WALKED", 5)
    for k in range(6):
        (tmp_path / f"{k}.txt").touch()
    with pytest.raises(UsageError, match="more than 5 files"):
        read_contingencies([str(tmp_path)])


def test_mistakes_of_syntax_fields_and_network_are_told_together(tmp_path: Path) -> None:
    from contingencies.spec_files import contingency_text

    good = contingency_text(load_contingency("ieee30-line-3-4-restore").spec)
    (tmp_path / "a.yaml").write_text("name: [")
    (tmp_path / "b.yaml").write_text(good.replace("severity:", "severty:"))
    (tmp_path / "c.yaml").write_text(good.replace("[3, 4]", "[3, 99]"))
    with pytest.raises(SpecError) as raised:
        read_and_check([str(tmp_path)])
    told = str(raised.value)
    assert "a.yaml:1" in told and "severty" in told and "99" in told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("severity: [0.0, 1.0]", "severity: [0.0, 1e308]"),
        ("max_separation_rad: 3.141592653589793", "max_separation_rad: 1e200"),
        ("T: 2.0", "T: 1e300"),
        ("T: 2.0", "T: 1001.0"),
        ("max_separation_rad: 3.141592653589793", "max_separation_rad: 1001.0"),
    ],
)
def test_a_quantity_that_no_grid_has_is_refused(tmp_path: Path, before: str, after: str) -> None:
    from contingencies.spec_files import contingency_text

    text = contingency_text(load_contingency("ieee30-line-3-4-restore").spec)
    assert before in text
    (tmp_path / "fault.yaml").write_text(text.replace(before, after))
    with pytest.raises(SpecError, match="write a smaller number"):
        read_contingencies([str(tmp_path / "fault.yaml")])


@pytest.mark.parametrize(
    "quantity", ["H: 1e-300", "H: 1e300", "x_d: 1e-300", "x_d: 1e300", "frequency_hz: 1e8", "base_mva: 1e9"]
)
def test_a_machine_that_cannot_exist_is_refused(tmp_path: Path, quantity: str) -> None:
    name = quantity.split(":")[0]
    value = {"H": "H: 5.0", "x_d": "x_d: 0.2", "frequency_hz": "frequency_hz: 60.0", "base_mva": "base_mva: 100.0"}[
        name
    ]
    (tmp_path / "tiny.yaml").write_text(SYSTEM.replace(value, quantity))
    with pytest.raises(SpecError, match=name):
        load_system(str(tmp_path / "tiny.yaml"))


@pytest.mark.parametrize(
    "command",
    [["import", "{}", "--output", "out"], ["import-contingencies", "{}", "--system", "wscc9", "--output", "out.yaml"]],
)
def test_a_pipe_is_refused_by_every_command_that_imports(command, tmp_path):
    from click.testing import CliRunner

    from cli import zoo

    pipe = tmp_path / ("case.raw" if command[0] == "import" else "list.con")
    os.mkfifo(pipe)
    outcome = CliRunner().invoke(zoo, [part.format(pipe) for part in command], standalone_mode=False)
    assert "not a plain file" in str(outcome.exception)
