"""Families hold every admissible member once, name what they leave out, and read back from their files."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.connectivity import bridge_problem
from contingencies.documents import parse_documents, validate
from contingencies.errors import ConflictError, SpecError, UsageError
from contingencies.families import generate_family
from contingencies.fault_specs import Shunt
from contingencies.library import System, load_contingencies, load_contingency, load_system
from contingencies.network import solve_network
from contingencies.operators import compile_family
from contingencies.recipes import ACTIONS, BOLTED, Recipe
from contingencies.records import NAME_PATTERN
from contingencies.reduction import reduce_network
from contingencies.references import reference_cct
from contingencies.spec import ContingencySpec, Stability, Window
from contingencies.spec_files import contingency_text, system_reference, write_contingencies
from tests.contingencies.networks import matpower_tables, matpower_text, write_system

RECIPES = [(fault, action) for fault, actions in ACTIONS.items() for action in actions]


def family_of(system: str, fault: str, clearing: str, **options):
    if clearing == "set-mechanical":
        options.setdefault("factor", 0.9)
    options.setdefault("impedance", None)  # the paper's law: one member per line, at its middle
    return generate_family(load_system(system), Recipe(fault, clearing, **options))


# --- members ----------------------------------------------------------------------------------


def test_the_n_1_line_family_of_new_england_has_33_members():
    family = family_of("ieee39", "line", "remove-line")
    assert len(family.members) == 33
    reasons = {item.name: item.reason for item in family.left_out}
    assert len(reasons) == 13
    assert sum("is a transformer" in reason for reason in reasons.values()) == 11
    assert reasons["ieee39-line-16-19-remove"] == "is a bridge: opening it islands the generator at bus 33, 34"
    assert reasons["ieee39-line-23-36-remove"] == "is a bridge: opening it islands the generator at bus 36"


def test_a_bridge_to_a_load_is_left_out_by_what_it_cuts_off():
    reasons = {item.name: item.reason for item in family_of("ieee30", "line", "remove-line").left_out}
    assert reasons["ieee30-line-25-26-remove"] == "is a bridge: opening it cuts off bus 26"


def test_restored_line_faults_include_the_bridges():
    names = {member.name for member in family_of("ieee39", "line", "restore").members}
    assert len(names) == 35
    assert {"ieee39-line-16-19-restore", "ieee39-line-23-36-restore"} < names


SHIPPED = (
    "ieee30-line-3-4-restore",
    "ieee30-line-3-4-remove",
    "ieee30-bus-3-trip",
    "ieee14-line-4-5-remove",
    "ieee9-mech-g2-restore",
)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_member_is_the_shipped_contingency_of_the_same_name(name):
    shipped = load_contingency(name)
    spec = shipped.spec
    options = {"window": spec.window, "severity": spec.severity, "stability": spec.stability}
    if spec.fault.kind == "bus":
        options["shunt"] = spec.fault.shunt_pu
    family = family_of(shipped.system.name, spec.fault.kind, spec.clearing.action, **options)
    found = [member for member in family.members if member.name == name]
    assert [member.sha256 for member in found] == [shipped.sha256]


def test_buses_without_feeders_are_named():
    reasons = {item.name: item.reason for item in family_of("ieee30", "bus", "trip-feeders").left_out}
    assert reasons["ieee30-bus-9-trip"] == "the bus has no feeder that can be tripped"
    assert reasons["ieee30-bus-5-trip"] == "tripping the feeders islands the generator at bus 5"
    assert reasons["ieee30-bus-22-trip"] == "tripping the feeders leaves bus 22 floating with no path to ground"


def test_a_bus_fault_is_cleared_by_each_line_that_ends_there():
    names = {member.name for member in family_of("wscc9", "bus", "remove-line").members}
    assert {"wscc9-bus-7-remove-5-7", "wscc9-bus-7-remove-7-8"} < names
    assert len(names) == 12


def test_condensers_have_no_mechanical_power_to_perturb():
    family = family_of("ieee30", "mechanical", "restore-mechanical")
    assert [member.name for member in family.members] == ["ieee30-mech-g1-restore", "ieee30-mech-g2-restore"]
    assert {item.name for item in family.left_out} == {f"ieee30-mech-g{bus}-restore" for bus in (5, 8, 11, 13)}


def test_parallel_circuits_are_members_of_their_own():
    family = family_of("ieee118", "line", "remove-line")
    names = {member.name for member in family.members}
    assert {"ieee118-line-42-49-c1-remove", "ieee118-line-42-49-c2-remove"} < names
    assert "ieee118-line-42-49-remove" not in names
    assert len(names) + sum("bridge" in item.reason for item in family.left_out) == 173


def test_a_series_capacitor_is_no_place_for_a_line_fault(tmp_path):
    tables = matpower_tables("case14")
    ends = tables["branch"][:, :2].astype(int).tolist()
    tables["branch"][ends.index([2, 4]), 3] *= -0.2
    system = write_system(tmp_path, "grid.m", matpower_text(tables))
    reasons = {
        item.name: item.reason for item in generate_family(system, Recipe("line", "restore", impedance=None)).left_out
    }
    assert "negative reactance" in reasons["grid-line-2-4-restore"]


@pytest.mark.parametrize("system", ["ieee9", "ieee14", "ieee30", "ieee39"])
@pytest.mark.parametrize(("fault", "clearing"), RECIPES)
def test_every_member_compiles_and_every_place_is_counted_once(system, fault, clearing):
    family = family_of(system, fault, clearing)
    names = [item.name for item in (*family.members, *family.left_out)]
    assert len(set(names)) == len(names)
    network = solve_network(load_system(system))
    places = {"line": len(network.branches.start), "bus": network.n_buses, "mechanical": network.n_machines}[fault]
    if (fault, clearing) != ("bus", "remove-line"):
        assert len(names) == places
    operators = compile_family(family.members, reduce_network(network))
    assert all(np.isfinite(member.Y_post).all() and np.isfinite(member.Y_fault(1.0)).all() for member in operators)


def test_members_keep_what_the_recipe_says():
    window, severity = Window(t_f=0.1, T=3.0, t_c=(0.15, 2.0)), (0.1, 2.0)
    options = {"window": window, "severity": severity, "stability": Stability(max_separation_rad=2.0), "position": 0.2}
    member = family_of("ieee14", "line", "restore", **options).members[0]
    assert (member.spec.window, member.spec.severity) == (window, severity)
    assert member.spec.stability.max_separation_rad == 2.0
    assert member.spec.fault.position == 0.2
    assert member.spec.fault.line == (1, 2)


def test_line_faults_are_bolted_near_either_end_unless_told_otherwise():
    family = generate_family(load_system("ieee39"), Recipe("line", "remove-line"))
    assert len(family.members) == 66
    near = {member.name: member.spec.fault for member in family.members if "16-17" in member.name}
    assert set(near) == {"ieee39-line-16-17-near-16-remove", "ieee39-line-16-17-near-17-remove"}
    assert all(fault.impedance_pu.value == 0 for fault in near.values())
    assert near["ieee39-line-16-17-near-16-remove"].position == pytest.approx(0.02)
    assert near["ieee39-line-16-17-near-17-remove"].position == pytest.approx(0.98)


def test_a_bolted_fault_is_worse_than_the_lines_own_admittance():
    system = load_system("ieee39")
    network = reduce_network(solve_network(system))
    recipes = [Recipe("line", "remove-line", position=0.5, impedance=impedance) for impedance in (BOLTED, None)]
    bolted, scaled = (compile_family(generate_family(system, recipe).members[:6], network) for recipe in recipes)
    for hard, soft in zip(bolted, scaled, strict=True):
        strong, weak = (reference_cct(member, 1.0, "fast") for member in (hard, soft))
        if weak.cct is not None:
            assert strong.status == "left-censored" or strong.cct < weak.cct


def test_bolted_bus_faults_need_no_large_shunt():
    family = generate_family(load_system("ieee9"), Recipe("bus", "trip-feeders"))
    assert family.members
    assert all(member.spec.fault.shunt_pu is None for member in family.members)


def test_the_default_window_is_the_one_that_n_1_studies_use():
    assert Recipe("line", "restore").window == Window(t_f=0.2, T=2.5, t_c=(0.21, 1.21))


@pytest.mark.parametrize(
    ("fault", "clearing", "options", "words"),
    [
        ("line", "trip-feeders", {}, "use remove-line or restore"),
        ("mechanical", "restore", {}, "use restore-mechanical or set-mechanical"),
        ("wind", "restore", {}, "use line or bus or mechanical"),
        ("mechanical", "set-mechanical", {"factor": None}, "needs a factor"),
        ("line", "restore", {"factor": 1.0}, "needs a factor"),
        ("line", "restore", {"position": 1.0}, "position: 1.0 is not strictly between 0 and 1"),
        ("line", "restore", {"severity": (-1.0, 1.0)}, "severity"),
        ("line", "restore", {"severity": (0.0, float("inf"))}, "severity"),
        ("mechanical", "restore-mechanical", {"coefficient": 0.0}, "coefficient"),
        ("mechanical", "set-mechanical", {"factor": -1.0}, "factor"),
    ],
)
def test_a_recipe_that_nobody_could_follow_is_refused(fault, clearing, options, words):
    with pytest.raises(UsageError) as caught:
        Recipe(fault, clearing, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_system_whose_name_leaves_no_room_is_told_so():
    system = load_system("ieee9")
    long = System(system.spec.model_copy(update={"name": "x" * 95}))
    with pytest.raises(SpecError, match="shorter name"):
        generate_family(long, Recipe("line", "restore"))


def test_bridges_of_a_large_network_are_found_at_once():
    system = load_system("ieee118")
    network = solve_network(system)
    left_out = {item.name for item in family_of("ieee118", "line", "remove-line").left_out}
    bridges = [k for k in np.flatnonzero(network.branches.is_line).tolist() if bridge_problem(network, k)]
    assert len(bridges) == len([name for name in left_out if "line" in name]) - int((~network.branches.is_line).sum())


# --- files ------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60)


@st.composite
def specs(draw):
    t_f = draw(st.just(0.0) | st.floats(1e-3, 10))
    t_c = (t_f + draw(st.floats(1e-3, 1)), t_f + 1 + draw(st.floats(1e-3, 1)))
    fault, clearing = draw(
        st.sampled_from(
            [
                ({"kind": "line", "line": (7, 3), "position": 0.25}, {"action": "remove-line"}),
                ({"kind": "line", "line": (7, 3), "circuit": 2, "position": 1e-7}, {"action": "restore"}),
                ({"kind": "mechanical", "generator": 4, "coefficient": -1e-9}, {"action": "restore-mechanical"}),
                (
                    {"kind": "mechanical", "generator": 4, "coefficient": 1e8},
                    {"action": "set-mechanical", "factor": 0.0},
                ),
                ({"kind": "bus", "bus": 0, "shunt_pu": {"b": -1e6}}, {"action": "trip-feeders"}),
                (
                    {"kind": "bus", "bus": 5, "shunt_pu": {"g": 1e-5, "b": 3.0}},
                    {"action": "remove-line", "line": (1, 2)},
                ),
            ]
        )
    )
    low = draw(st.just(0.0) | st.floats(1e-6, 4e5))  # twice that and a little more is within what a spec may hold
    return ContingencySpec.model_validate(
        {
            "name": draw(st.from_regex(NAME_PATTERN.replace("^", "").replace("$", ""), fullmatch=True)),
            "description": draw(texts),
            "system": draw(texts.filter(bool)),
            "fault": fault,
            "clearing": clearing,
            "window": {"t_f": t_f, "t_c": t_c, "T": t_c[1] + draw(st.floats(1e-3, 100))},
            "severity": (low, low * 2 + draw(st.floats(1e-9, 10))),
            "stability": {"max_separation_rad": draw(st.floats(1e-6, 1e3))},
        }
    )


@settings(max_examples=100)
@given(spec=specs())
def test_a_written_spec_reads_back_equal(spec):
    text = contingency_text(spec)
    (document,) = parse_documents(text, "file")
    assert validate(ContingencySpec, document) == spec


def test_a_written_spec_looks_like_the_shipped_ones():
    for name in ("ieee30-bus-3-trip", "ieee30-line-3-4-remove", "ieee9-mech-g2-restore", "ieee14-line-4-5-remove"):
        shipped = load_contingency(name)
        source = Path(__file__).parents[2] / "contingencies" / "catalogue" / f"{name}.yaml"
        assert contingency_text(shipped.spec) == source.read_text()


def test_written_families_load_with_the_same_identity(tmp_path):
    family = family_of("ieee9", "bus", "trip-feeders", shunt=Shunt(g=0.5, b=-20.0))
    result = write_contingencies(family.members, tmp_path / "deep" / "er")
    assert len(result.written) == len(family.members) > 0
    for path, member in zip(result.written, family.members, strict=True):
        (loaded,) = load_contingencies(path)
        assert loaded.sha256 == member.sha256
        assert path.stem == member.name


def test_files_beside_a_users_system_find_it_again(tmp_path):
    (tmp_path / "my grids").mkdir()
    write_system(tmp_path / "my grids", "grid.m", matpower_text(matpower_tables("case14")))
    path, output = tmp_path / "my grids" / "grid.yaml", tmp_path / "out" / "specs"
    reference = system_reference(str(path), output)
    assert reference == "../../my grids/grid.yaml"
    family = generate_family(load_system(str(path)), Recipe("mechanical", "restore-mechanical"), reference)
    for written in write_contingencies(family.members, output).written:
        assert load_contingencies(written)[0].system.sha256 == load_system(str(path)).sha256


def test_writing_twice_changes_nothing_and_other_content_is_not_overwritten(tmp_path):
    members = family_of("ieee9", "mechanical", "restore-mechanical").members
    write_contingencies(members, tmp_path)
    again = write_contingencies(members, tmp_path)
    assert not again.written and len(again.unchanged) == len(members)
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    others = family_of("ieee9", "mechanical", "restore-mechanical", coefficient=0.5).members
    with pytest.raises(ConflictError, match="--force"):
        write_contingencies(others, tmp_path)
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before
    assert len(write_contingencies(others, tmp_path, force=True).written) == len(members)


def test_one_conflict_keeps_every_file_from_being_written(tmp_path):
    members = family_of("ieee9", "mechanical", "restore-mechanical").members
    (tmp_path / f"{members[-1].name}.yaml").write_text("mine")
    with pytest.raises(ConflictError):
        write_contingencies(members, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{members[-1].name}.yaml"]


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    members = family_of("ieee9", "mechanical", "restore-mechanical").members
    real, calls = Path.write_bytes, []

    def full_disk(path, *args, **kwargs):
        calls.append(path)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(UsageError, match="No space left"):
        write_contingencies(members, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_contingencies(family_of("ieee9", "line", "restore").members, tmp_path / "file")


def test_written_files_have_the_users_usual_permissions(tmp_path):
    (first, *_) = write_contingencies(family_of("ieee9", "line", "restore").members, tmp_path).written
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(first.stat().st_mode) == 0o666 & ~mask
