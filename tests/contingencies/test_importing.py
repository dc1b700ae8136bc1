"""PSS/E files become systems with an identity by physics; contingency lists become ours; families keep to limits."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from contingencies.con_contingencies import Study, con_family
from contingencies.errors import ConflictError, NotFoundError, SpecError, UsageError
from contingencies.families import generate_family
from contingencies.formats.con import read_con
from contingencies.importing import import_network
from contingencies.library import load_contingencies, load_system
from contingencies.network import solve_network
from contingencies.operating_point import solve_afresh
from contingencies.operators import compile_contingency
from contingencies.recipes import Recipe
from contingencies.reduction import reduce_network
from contingencies.references import reference_cct
from contingencies.selection import Selection
from contingencies.spec_files import contingency_text

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RAW, DYR, CON = (EXAMPLES / f"coast9.{suffix}" for suffix in ("raw", "dyr", "con"))


@pytest.fixture
def system(tmp_path):
    import_network(RAW, DYR, tmp_path)
    return load_system(str(tmp_path / "coast9.yaml"))


# --- systems ----------------------------------------------------------------------------------


def test_an_imported_system_balances_and_starts_in_equilibrium(tmp_path):
    imported = import_network(RAW, DYR, tmp_path)
    assert imported.mismatch_mva < 0.1
    assert [machine.bus for machine in imported.machines.machines] == [1, 2, 4]
    assert imported.machines.static == ((3, "W"),)
    system = load_system(str(imported.system_file))
    assert system.spec.frequency_hz == 50.0
    network = solve_network(system)
    stored = imported.raw.case.buses
    assert np.abs(np.abs(network.V) - stored.v).max() < 1e-5
    machine = system.spec.machines.units[1]
    assert network.H[1] == pytest.approx(machine.H * 240.0 / 100.0)
    assert network.x_d[1] == pytest.approx(0.24 * 100.0 / 240.0)  # two units of 120 MVA side by side
    assert reduce_network(network).P_m[1] == pytest.approx(1.8, abs=1e-6)


def test_machines_of_a_file_and_the_same_machines_written_out_are_one_system(system, tmp_path):
    units = "\n".join(
        f"    - {{bus: {unit.bus}, H: {unit.H!r}, x_d: {unit.x_d!r}, D: {unit.D!r}, mva: {unit.mva!r}}}"
        for unit in system.spec.machines.units
    )
    (tmp_path / "by-hand.yaml").write_text(
        "name: coast9\nnetwork: {file: coast9.raw}\nmachines:\n  base: machine\n  units:\n"
        f"{units}\n  static: [[3, W]]\nprovenance: by hand\n"
    )
    assert load_system(str(tmp_path / "by-hand.yaml")).sha256 == system.sha256


def test_a_comment_in_the_dyr_file_changes_nothing_and_an_inertia_does(system, tmp_path):
    path = tmp_path / "coast9.dyr"
    text = path.read_text()
    path.write_text(text + "\n/ checked\n")
    assert load_system(str(tmp_path / "coast9.yaml")).sha256 == system.sha256
    path.write_text(text.replace("5.5000", "5.6000"))
    assert load_system(str(tmp_path / "coast9.yaml")).sha256 != system.sha256


def test_a_static_unit_feeds_its_bus_like_a_negative_load(system):
    network = solve_afresh(system)
    position = network.position[3]
    fed = -np.conj(network.y_load[position]) * abs(network.V[position]) ** 2
    assert fed == pytest.approx(0.6 + 0.05j, abs=1e-6)


def test_a_static_unit_beside_a_machine_leaves_the_rest_to_the_machine(tmp_path):
    dyr = tmp_path / "coast9.dyr"
    dyr.write_text(DYR.read_text().replace(" 2 'GENROU' 2 ", " 9 'GENROU' 2 "))
    imported = import_network(RAW, dyr, tmp_path / "out")
    assert (2, "2") in imported.machines.static
    network = solve_network(load_system(str(imported.system_file)))
    assert reduce_network(network).P_m[1] == pytest.approx(0.9, abs=1e-6)


def test_the_base_of_the_system_does_not_move_a_cct(system, tmp_path):
    text = (tmp_path / "coast9.yaml").read_text()
    (tmp_path / "other.yaml").write_text(text.replace("base_mva: 100.0", "base_mva: 250.0"))
    answers = []
    for name in ("coast9", "other"):
        (tmp_path / "c.yaml").write_text(
            f"name: c\nsystem: {name}.yaml\nfault: {{kind: bus, bus: 12, impedance_pu: {{}}}}\n"
            "clearing: {action: remove-line, line: [11, 12], circuit: 1}\n"
            "window: {t_f: 0.2, T: 2.5, t_c: [0.21, 1.21]}\n"
        )
        answers.append(reference_cct(compile_contingency(load_contingencies(tmp_path / "c.yaml")[0]), 1.0).cct)
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)


def test_renumbering_the_buses_does_not_move_the_operating_point(system, tmp_path):
    def renumber(
        path: Path,
    ) -> None:  # the bus numbers of the example stand alone before a comma or blank, once per use
        lines = []
        for line in path.read_text().splitlines():
            for old in ("11", "12", "13", "14"):
                line = line.replace(f"    {old},", f"   7{old},")
            lines.append(line)
        path.write_text("\n".join(lines) + "\n")

    folder = tmp_path / "renumbered"
    folder.mkdir()
    shutil.copy(RAW, folder)
    shutil.copy(DYR, folder)
    renumber(folder / "coast9.raw")
    import_network(folder / "coast9.raw", folder / "coast9.dyr", folder / "out")
    renumbered, original = solve_network(load_system(str(folder / "out" / "coast9.yaml"))), solve_network(system)
    assert 711 in renumbered.position
    np.testing.assert_allclose(renumbered.E, original.E, rtol=1e-9)
    np.testing.assert_allclose(reduce_network(renumbered).Y_pre, reduce_network(original).Y_pre, rtol=1e-8)


def test_without_a_dyr_file_the_system_file_lists_the_units_and_asks_for_their_inertia(tmp_path):
    imported = import_network(RAW, None, tmp_path)
    text = imported.system_file.read_text()
    assert "- {bus: 2, x_d: 0.2, mva: 240.0}  # add H" in text
    with pytest.raises(SpecError, match=r"machines\.units\[0\]\.H: is missing; add it") as error:
        load_system(str(imported.system_file))
    assert all(sentence.endswith("H: is missing; add it.") for sentence in error.value.sentences)


def test_files_that_say_something_else_are_not_replaced(tmp_path):
    first = import_network(RAW, DYR, tmp_path)
    assert len(first.files.written) == 3
    assert len(import_network(RAW, DYR, tmp_path).files.unchanged) == 3
    (tmp_path / "coast9.yaml").write_text("mine\n")
    with pytest.raises(ConflictError, match="files hold something else"):
        import_network(RAW, DYR, tmp_path)
    assert (tmp_path / "coast9.yaml").read_text() == "mine\n"
    import_network(RAW, DYR, tmp_path, force=True)
    assert "coast9.dyr" in (tmp_path / "coast9.yaml").read_text()


def test_what_cannot_be_imported_is_said_in_one_sentence_and_nothing_is_written(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(NotFoundError, match=r"nowhere\.raw: no such file"):
        import_network(tmp_path / "nowhere.raw", None, out)
    with pytest.raises(UsageError, match=r"does not end in \.raw; give the RAW file first"):
        import_network(DYR, RAW, out)
    with pytest.raises(UsageError, match="is no name of a system"):
        import_network(RAW, DYR, out, name="Über")
    broken = tmp_path / "broken.raw"
    broken.write_text(RAW.read_text().replace("0.05000,0.09000", "x,0.09000", 1))
    with pytest.raises(SpecError, match=r"broken\.raw:\d+: branch record: field 5 \(X\) is 'x'; give a finite number"):
        import_network(broken, DYR, out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('{file: "coast9.raw"}', "{pandapower: case39}"), "a DYR file names the units of a RAW file"),
        (('machines: {file: "coast9.dyr"}', "machines: {file: gone.dyr}"), "'gone.dyr' cannot be read"),
        (('machines: {file: "coast9.dyr"}', "machines: {fils: gone.dyr}"), "machines.fils: is not a known field"),
    ],
)  # fmt: skip
def test_a_system_file_with_a_wrong_machine_file_names_its_line(system, tmp_path, change, sentence):
    path = tmp_path / "coast9.yaml"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(SpecError, match=sentence.replace(".", r"\.")) as error:
        load_system(str(path))
    assert "coast9.yaml:" in str(error.value)


# --- contingency lists ------------------------------------------------------------------------


def family(system, text):
    return con_family(read_con(text.encode(), "list.con"), system, Study())


def test_a_list_becomes_contingencies_that_compile(system, tmp_path):
    members = family(system, CON.read_text()).members
    assert [member.name for member in members] == ["coast9-north-east-1", "coast9-city-corridor", "coast9-west-unit"]
    one, several, unit = (member.spec for member in members)
    assert (one.fault.bus, one.clearing.action, one.clearing.circuit) == (11, "remove-line", 1)
    assert (several.fault.bus, several.clearing.lines) == (12, ((11, 12, 1), (11, 12, 2)))
    assert (unit.fault.bus, unit.clearing.generators) == (4, (4,))
    (tmp_path / "list.yaml").write_text("---\n".join(contingency_text(member.spec) for member in members))
    (tmp_path / "list.yaml").write_text(
        (tmp_path / "list.yaml").read_text().replace("system: coast9", "system: coast9.yaml")
    )
    back = load_contingencies(tmp_path / "list.yaml")
    assert [member.sha256 for member in back] == [member.sha256 for member in members]
    for member in back:
        assert reference_cct(compile_contingency(member), 1.0).status == "finite"


def test_what_a_list_asks_for_and_cannot_have_is_left_out_with_its_reason(system):
    text = CON.read_text() + (
        "CONTINGENCY A\nOPEN LINE FROM BUS 11 TO BUS 1 CKT 1\nEND\n"  # a transformer
        "CONTINGENCY B\nOPEN LINE FROM BUS 11 TO BUS 12 CKT 7\nEND\n"
        "CONTINGENCY C\nREMOVE UNIT 1 FROM BUS 13\nEND\n"
        "CONTINGENCY D\nSET PLOAD AT BUS 12 TO 5\nEND\n"
        "CONTINGENCY E\nFAULT AT BUS 11\nFAULT AT BUS 12\nEND\n"
        "CONTINGENCY F\nEND\n"
        "CONTINGENCY 'NORTH-EAST 1'\nOPEN LINE FROM BUS 13 TO BUS 12\nEND\n"
        "SINGLE BRANCH IN SUBSYSTEM 'X'\nEND\n"
    )
    found = family(system, text)
    assert found.members[-1].name == "coast9-north-east-1-2"
    reasons = {item.name.removeprefix("coast9-"): item.reason for item in found.left_out}
    assert "is a transformer, not a line" in reasons["a"]
    assert "11-12 has no circuit 7; it has 1, 2" in reasons["b"]
    assert "there is no generator at bus 13" in reasons["c"]
    assert "a statement is not understood (line" in reasons["d"]
    assert "several faults" in reasons["e"]
    assert "no statement" in reasons["f"]
    assert "the machine of a bus leaves as a whole" in reasons["east-unit-2"]
    assert "SUBSYSTEM" in reasons["statement outside of a contingency"]


# --- filters ----------------------------------------------------------------------------------


def places(system, fault="bus", clearing="restore", **limits):
    middle = 0.5 if fault == "line" else None
    recipe = Recipe(fault, clearing, position=middle, selection=Selection(**limits))
    members = generate_family(system, recipe).members
    return [member.name.removeprefix("coast9-") for member in members]


def test_families_keep_to_voltages_areas_ratings_and_names(system):
    assert places(system, kv_min=110.0) == [f"bus-{bus}-restore" for bus in (11, 12, 13, 14)]
    assert places(system, kv_max=15.0, kv_min=1.0) == ["bus-4-restore", "bus-5-restore"]
    assert places(system, areas=(1,), kv_min=110.0) == ["bus-11-restore", "bus-12-restore"]
    assert places(system, include=("bus-1?-*",), exclude=("bus-12-*", "bus-13-restore")) == [
        "bus-11-restore", "bus-14-restore", "bus-15-restore",
    ]  # fmt: skip
    lines = places(system, "line", "remove-line", rating_min=350.0)
    assert lines == ["line-11-12-c1-remove", "line-11-12-c2-remove", "line-12-13-remove"]
    assert "line-12-13-remove" in places(system, "line", "remove-line", areas=(2,))  # a tie belongs to both
    assert places(system, "mechanical", "restore-mechanical", areas=(2,)) == ["mech-g4-restore"]


def test_a_selection_leaves_out_places_of_other_areas_silently_but_keeps_reasons_of_its_own(system):
    found = generate_family(system, Recipe("line", "remove-line", selection=Selection(areas=(2,))))
    assert all("1-11" not in item.name for item in found.left_out)
    assert any("13-15" in item.name for item in found.left_out)


@pytest.mark.parametrize("limits", [{"kv_min": 200.0, "kv_max": 100.0}, {"kv_min": -1.0}, {"rating_min": float("nan")}])
def test_a_selection_of_nothing_is_refused(limits):
    with pytest.raises(UsageError):
        Selection(**limits)
    with pytest.raises(UsageError, match="a rating selects lines"):
        Recipe("bus", "restore", selection=Selection(rating_min=10.0))
