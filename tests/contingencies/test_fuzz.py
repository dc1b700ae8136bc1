"""A small, seeded part of the campaign of damaged files, and what it found."""

from pathlib import Path

import pytest

from benchmarks.campaigns.fuzz import CONTINGENCIES, Fuzz, judged
from benchmarks.campaigns.originals import ORIGINALS
from contingencies.errors import SpecError
from contingencies.library import System, load_contingencies, load_system
from contingencies.operating_point import solve_afresh
from contingencies.system_specs import SystemSpec
from tests.contingencies.formats.edits import with_branch, wscc9_of


@pytest.fixture
def fuzz(tmp_path: Path) -> Fuzz:
    return Fuzz(tmp_path, seed=1)


def test_a_damaged_description_is_refused_with_a_sentence_or_describes_a_grid(fuzz: Fuzz) -> None:
    fuzz.specs(80)
    assert not fuzz.failures
    assert fuzz.counts["contingency", "refused"] and fuzz.counts["system", "refused"]


def test_a_damaged_network_file_is_refused_with_a_sentence_or_describes_a_grid(fuzz: Fuzz) -> None:
    fuzz.networks(80, (".m", ".raw", ".dyr", ".con"))
    assert not fuzz.failures
    for kind in ("m", "raw", "dyr", "con"):
        assert fuzz.counts[kind, "refused"] and fuzz.counts[kind, "accepted"]


def test_the_undamaged_descriptions_are_accepted(fuzz: Fuzz) -> None:
    for text in CONTINGENCIES:
        assert judged(lambda text=text: fuzz.try_contingency(text.encode())).verdict == "accepted"


def test_the_undamaged_networks_are_accepted(fuzz: Fuzz) -> None:
    (fuzz.folder / "case.raw").write_bytes(ORIGINALS[".raw"]())
    for suffix in (".m", ".raw", ".dyr"):
        assert not fuzz.try_network(ORIGINALS[suffix](), suffix)


def test_whatever_a_reader_raises_is_counted_as_a_failure() -> None:
    assert judged(lambda: str(1 / 0)).failed
    assert judged(lambda: "a grid with a voltage of 1e9").failed


@pytest.mark.parametrize("change", [("severity: [0.0", "severity: [1e-300"), ("t_f: 0.2", "t_f: 1e-300")])
def test_a_number_next_to_nothing_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    assert change[0] in CONTINGENCIES[0]
    (tmp_path / "fault.yaml").write_text(CONTINGENCIES[0].replace(*change))
    with pytest.raises(SpecError, match="smaller than anything in a grid; write 0"):
        load_contingencies(tmp_path / "fault.yaml")


def test_a_machine_whose_internal_voltage_no_grid_has_is_refused() -> None:
    system = load_system("wscc9")
    content = system.spec.model_dump()
    content["machines"]["units"] = tuple(unit | {"x_d": 90.0} for unit in content["machines"]["units"])
    with pytest.raises(SpecError, match=r"internal voltage of .* check x_d"):
        solve_afresh(System(SystemSpec.model_validate(content), system.network_file))


def test_a_network_whose_voltages_no_grid_has_is_refused() -> None:
    with pytest.raises(SpecError, match="which no grid has; check set points"):
        solve_afresh(wscc9_of(with_branch(8, 9, c4="12")))


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"c3": "1e300"}, "x = 1e.300, which no grid has"),
        ({"c2": "0", "c3": "1e-300"}, "impedance below"),
        ({"c8": "1e300"}, "tap"),
        ({"c8": "1e-5"}, "tap ratio beyond"),
        ({"c4": "-1e200"}, "b = -1e.200, which no grid has"),
    ],
)
def test_a_branch_that_cannot_exist_is_refused(columns: dict[str, str], complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        solve_afresh(wscc9_of(with_branch(8, 9, **columns)))


@pytest.mark.parametrize(
    ("suffix", "before", "after", "complaint"),
    [
        (".dyr", " 6.4 0.0 ", " 6.4 1e20 ", "machine at bus 2 has an impossible D"),
        (".dyr", " 0.1813 ", " 1e-300 ", "bus 3|GENSAL"),
        (".raw", ", 60.0 /", ", 1e8 /", "frequency_hz"),
    ],
)
def test_an_impossible_value_of_a_psse_file_is_refused_with_a_sentence(
    fuzz: Fuzz, suffix: str, before: str, after: str, complaint: str
) -> None:
    (fuzz.folder / "case.raw").write_bytes(ORIGINALS[".raw"]())
    text = ORIGINALS[suffix]().decode()
    assert before in text
    with pytest.raises(SpecError, match=complaint):
        fuzz.try_network(text.replace(before, after).encode(), suffix)


def test_a_fault_next_to_nowhere_on_a_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fault.yaml").write_text(CONTINGENCIES[2].replace("position: 0.5", "position: 5e-324"))
    with pytest.raises(SpecError, match="not strictly between 0 and 1"):
        load_contingencies(tmp_path / "fault.yaml")
