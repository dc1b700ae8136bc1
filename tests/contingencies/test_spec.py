"""Descriptions: what is accepted, what is refused and with which sentence, and their identity."""

import json
import math
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import NotFoundError, SpecError
from contingencies.library import (
    Contingency,
    System,
    json_schema,
    load_contingencies,
    load_contingency,
    load_system,
    shipped_contingencies,
    shipped_systems,
)
from contingencies.network import solve_network
from contingencies.operators import compile_contingency
from contingencies.spec import ContingencySpec
from contingencies.system_specs import SystemSpec
from tests.cases import write_contingency, write_smib

GOOD = """\
name: example
system: ieee30
fault: {kind: line, line: [3, 4], position: 0.5}
clearing: {action: restore}
window: {t_f: 0.2, T: 2.0, t_c: [0.25, 1.25]}
severity: [0.0, 1.0]
stability: {max_separation_rad: 3.141592653589793}
"""


def refusal(folder, text):
    """The sentence with which a contingency text is refused, by the parser or by the compiler."""
    with pytest.raises(SpecError) as caught:
        for contingency in load_contingencies(write_contingency(folder, text)):
            compile_contingency(contingency)
    return str(caught.value)


# --- what is shipped ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_contingencies())
def test_a_shipped_contingency_is_named_after_its_file_and_reads_back_from_its_json(name):
    contingency = load_contingency(name)
    assert contingency.name == name
    assert Contingency.from_json(contingency.to_json(), contingency.system) == contingency


@pytest.mark.parametrize("name", shipped_systems())
def test_a_shipped_system_states_its_provenance_and_reads_back_from_its_json(name):
    system = load_system(name)
    assert system.name == name
    assert len(system.spec.provenance) > 40
    assert System.from_json(system.to_json(), system.network_file) == system


def test_the_six_benchmark_contingencies_are_shipped():
    assert {
        "ieee30-line-3-4-restore", "ieee9-mech-g2-restore", "ieee14-line-4-5-remove",
        "ieee30-bus-3-trip", "ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove",
    } <= set(shipped_contingencies())  # fmt: skip


# --- refusals: file, line, field, fault, remedy -------------------------------------------------

REFUSALS = [
    # (replace, by, line, field, part of the sentence)
    ("line: [3, 4]", "line: [3, 99]", 3, "fault.line", "bus 99 does not exist"),
    ("line: [3, 4]", "line: [3, 30]", 3, "fault.line", "has no line 3-30"),
    ("line: [3, 4]", "line: [6, 9]", 3, "fault.line", "is a transformer"),
    ("position: 0.5", "position: 1.0", 3, "fault.position", "strictly between 0 and 1"),
    ("position: 0.5", "position: -0.1", 3, "fault.position", "strictly between 0 and 1"),
    ("T: 2.0", "T: 1.0", 5, "window.t_c", "set T > t_c[1]"),
    ("t_f: 0.2", "t_f: 0.3", 5, "window.t_c", "set t_c[0] > t_f"),
    ("[0.25, 1.25]", "[1.25, 0.25]", 5, "window.t_c", "set t_c[1] > t_c[0]"),
    ("severity: [0.0, 1.0]", "severity: [-0.5, 1.0]", 6, "severity", "negative"),
    ("severity: [0.0, 1.0]", "severity: [1.0, 0.5]", 6, "severity", "set severity[1] > severity[0]"),
    ("severity: [0.0, 1.0]", "severity: [0.0, .nan]", 6, "severity[1]", "finite"),
    ("severity: [0.0, 1.0]", "severity: [0.0, .inf]", 6, "severity[1]", "finite"),
    ("system: ieee30", "system: ieee31", 2, "system", "not shipped"),
    ("system: ieee30", "system: ./nowhere.yaml", 2, "system", "no such file"),
    ("kind: line", "kind: lien", 3, "fault", "'lien' is not a known kind"),
    ("kind: line, ", "", 3, "fault", "does not say its kind"),
    ("action: restore", "action: trip-feeders", 4, "clearing", "needs a bus fault"),
    ("action: restore", "action: restore-mechanical", 4, "clearing", "needs a mechanical fault"),
    ("action: restore", "action: set-mechanical, factor: 0.5", 4, "clearing", "add generator"),
    ("action: restore", "action: remove-line, circuit: 1", 4, "clearing", "name the line's two buses"),
    ("window:", "windwo:", 5, "windwo", "write 'window'"),
    ("t_f: 0.2", "t_f: 0.2, t_g: 1", 5, "window.t_g", "not a known field"),
    ("t_f: 0.2", "t_f: '0.2'", 5, "window.t_f", "valid number"),
    ("t_f: 0.2", "t_f: true", 5, "window.t_f", "valid number"),
    ("t_f: 0.2", "t_f: no", 5, "window.t_f", "not 'no'"),
    ("line: [3, 4]", "line: [3]", 3, "fault.line", "missing"),
    ("line: [3, 4]", "line: [3, 3]", 3, "fault", "same bus"),
    ("line: [3, 4]", "line: [3, 4.5]", 3, "fault.line[1]", "valid integer"),
    ("line: [3, 4]", "line: [3, 4], circuit: 2", 3, "fault.line", "no circuit 2"),
    ("name: example", "name: Example One", 1, "name", "match"),
    ("name: example", "name: ../escape", 1, "name", "match"),
    ("name: example\n", "", 1, "name", "missing"),
    ("name: example", "name: example\nname: other", 2, "", "duplicate key"),
    ("name: example", "name: !!python/object/apply:os.getcwd []", 1, "name", "not allowed"),
    ("name: example", "name: 2024-01-01", 1, "name", "date"),
    ("name: example", "name: [", 3, "", "not valid YAML"),
    ("3.141592653589793", "-1", 7, "stability.max_separation_rad", "greater than 0"),
    (
        "{kind: line, line: [3, 4], position: 0.5}",
        "{kind: bus, bus: 99, shunt_pu: {b: -20}}",
        3,
        "fault.bus",
        "bus 99",
    ),
    (
        "{kind: line, line: [3, 4], position: 0.5}",
        "{kind: bus, bus: 3, shunt_pu: {b: 0}}",
        3,
        "fault.shunt_pu",
        "no fault",
    ),
    (
        "{kind: line, line: [3, 4], position: 0.5}",
        "{kind: bus, bus: 3, shunt_pu: {g: -1, b: 0}}",
        3,
        "fault.shunt_pu",
        "generate",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "part"), REFUSALS, ids=[f"{r[3]}: {r[4]}" for r in REFUSALS])
def test_a_wrong_description_is_refused_with_file_line_field_fault_and_remedy(tmp_path, old, new, line, field, part):
    assert old in GOOD
    sentence = refusal(tmp_path, GOOD.replace(old, new, 1))
    assert part in sentence
    assert field in sentence
    assert f"contingency.yaml:{line}:" in sentence
    assert "; " in sentence, "a remedy follows the fault"
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("fault", "clearing", "part"),
    [
        ("{kind: mechanical, generator: 3, coefficient: 1.0}", "{action: restore-mechanical}", "no generator at bus 3"),
        ("{kind: mechanical, generator: 2, coefficient: 0}", "{action: restore-mechanical}", "perturbs nothing"),
        ("{kind: mechanical, generator: 2, coefficient: 1.0}", "{action: restore}", "cannot clear a mechanical fault"),
        ("{kind: bus, bus: 3, shunt_pu: {b: -9}}", "{action: remove-line}", "must name the line"),
        ("{kind: bus, bus: 3, shunt_pu: {b: -9}}", "{action: remove-line, line: [9, 11]}", "is a transformer"),
        ("{kind: bus, bus: 26, shunt_pu: {b: -9}}", "{action: remove-line, line: [12, 13]}", "is a transformer"),
        ("{kind: bus, bus: 11, shunt_pu: {b: -9}}", "{action: trip-feeders}", "no feeder"),
        ("{kind: bus, bus: 8, shunt_pu: {b: -9}}", "{action: trip-feeders}", "islands the generator at bus 8"),
        (
            "{kind: bus, bus: 28, shunt_pu: {b: -9}}",
            "{action: set-mechanical, generator: 4, factor: 1}",
            "no generator at bus 4",
        ),
    ],
)
def test_a_fault_or_clearing_that_does_not_fit_its_network_is_refused(tmp_path, fault, clearing, part):
    text = GOOD.replace("{kind: line, line: [3, 4], position: 0.5}", fault).replace("{action: restore}", clearing)
    assert part in refusal(tmp_path, text)


def test_every_mistake_of_a_file_is_told_at_once_with_its_line(tmp_path):
    wrong = GOOD.replace("position: 0.5", "position: 5.0").replace("T: 2.0", "T: 1.0").replace("window:", "windwo:")
    second = GOOD.replace("name: example", "name: second").replace("severity: [0.0, 1.0]", "severity: [1.0, 0.0]")
    third = GOOD.replace("name: example", "name: third").replace("system: ieee30", "system: ieee31")
    sentences = refusal(tmp_path, f"{wrong}---\n{second}---\n{third}").split("\n")
    places = [":".join(sentence.split("contingency.yaml:")[1].split(":")[:2]) for sentence in sentences]
    assert places == ["3: fault.position", "5: windwo", "14: severity", "18: system"]
    assert all(sentence.endswith((".", "?")) and "; " in sentence for sentence in sentences)


def test_a_wrong_fault_and_a_wrong_clearing_are_told_together_each_on_its_line(tmp_path):
    fault = "fault:\n  kind: bus\n  bus: 99\n  shunt_pu: {b: -9}"
    text = GOOD.replace("fault: {kind: line, line: [3, 4], position: 0.5}", fault)
    text = text.replace("clearing: {action: restore}", "clearing:\n  action: remove-line\n  line: [6, 9]")
    first, second = refusal(tmp_path, text).split("\n")
    assert "contingency.yaml:5: fault.bus: bus 99 does not exist" in first
    assert "contingency.yaml:9: clearing.line: 6-9 of ieee30 is a transformer" in second


def test_a_mistake_of_a_system_file_names_its_line_and_only_the_network_that_was_meant(tmp_path):
    path = write_smib(tmp_path)
    text = path.read_text()
    line = 1 + text[: text.index("bus: 1")].count("\n")
    path.write_text(text.replace("bus: 1", "bus: 3", 1))
    with pytest.raises(SpecError, match=rf"smib.yaml:{line}: machines.units\[0\].bus: there is no generator at bus 3"):
        solve_network(load_system(str(path)))
    path.write_text(text.replace("file: smib.m", "file: 3", 1))
    with pytest.raises(SpecError) as caught:
        load_system(str(path))
    assert "network.file" in str(caught.value) and caught.value.sentences == [str(caught.value)]


def test_a_contingency_that_came_from_no_file_is_named_instead(tmp_path):
    loaded = load_contingencies(write_contingency(tmp_path, GOOD.replace("line: [3, 4]", "line: [3, 99]")))[0]
    with pytest.raises(SpecError, match=r"^example: fault\.line: bus 99"):
        compile_contingency(Contingency.from_json(loaded.to_json(), loaded.system))
    assert Contingency.from_json(loaded.to_json(), loaded.system) == loaded, "where it stood is no part of it"


def test_a_clearing_that_leaves_a_bus_without_a_path_to_ground_is_refused(tmp_path):
    write_smib(tmp_path)
    text = GOOD.replace("ieee30", "smib.yaml").replace("line: [3, 4]", "line: [3, 1]")
    sentence = refusal(tmp_path, text.replace("action: restore", "action: remove-line"))
    assert "islands the generator at bus" in sentence or "floating" in sentence


def test_a_machine_cut_off_from_the_slack_is_said_to_be_cut_off(tmp_path):
    path = write_smib(tmp_path)
    network = tmp_path / "smib.m"
    connected = "1\t3\t0\t0.15\t0\t900\t900\t900\t0\t0\t1\t-360"
    assert connected in network.read_text()
    network.write_text(network.read_text().replace(connected, connected.replace("\t1\t-360", "\t0\t-360")))
    with pytest.raises(SpecError, match="bus 1 is out of service or not connected"):
        solve_network(load_system(str(path)))


def test_parallel_circuits_must_be_told_apart(tmp_path):
    write_smib(tmp_path)
    text = GOOD.replace("ieee30", "smib.yaml").replace("[3, 4]", "[3, 2]")
    assert "add circuit: 1 to 2" in refusal(tmp_path, text)
    assert load_contingencies(write_contingency(tmp_path, text.replace("[3, 2]", "[3, 2], circuit: 2")))


def test_a_file_may_hold_several_contingencies_and_is_refused_as_a_whole(tmp_path):
    second = GOOD.replace("name: example", "name: second")
    both = load_contingencies(write_contingency(tmp_path, f"{GOOD}---\n{second}"))
    assert [contingency.name for contingency in both] == ["example", "second"]
    assert "contingency.yaml:11:" in refusal(tmp_path, f"{GOOD}---\n{second.replace('0.5', '5.0')}")
    assert "stands already in line 1" in refusal(tmp_path, f"{GOOD}---\n{GOOD}")


@pytest.mark.parametrize(
    "content",
    [b"", b"# nothing\n", b"\xff\xfe\x00", b"a: &x [*x]\n", b"- 1\n- 2\n", b"just text\n", b"? [1, 2]\n: 3\n"],
)
def test_a_file_that_holds_no_contingency_is_refused(tmp_path, content):
    path = tmp_path / "contingency.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError):
        load_contingencies(path)


def test_an_alias_bomb_is_refused_quickly(tmp_path):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [{','.join([f'*{chr(97 + k)}'] * 9)}]\n" for k in range(12)
    )
    assert "by an alias" in refusal(tmp_path, bomb)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        load_contingencies(tmp_path / "nowhere.yaml")
    with pytest.raises(NotFoundError):
        load_contingency("no-such-contingency")


# --- malformed specs never produce a traceback or a half-accepted spec ---------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(), st.text(max_size=20),
    st.sampled_from(["line", "bus", "mechanical", "restore", "ieee30", 0.5, 3, 4]),
)  # fmt: skip
FIELDS = """name description system fault clearing window severity stability kind line position bus shunt_pu g b
generator coefficient action circuit factor t_f T t_c max_separation_rad"""
fields = st.sampled_from(FIELDS.split())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields | st.text(max_size=8), inner, max_size=6),
    max_leaves=12,
)
documents = st.dictionaries(fields, values, max_size=8)


@given(content=documents)
@settings(max_examples=100)
def test_any_mapping_is_either_a_whole_valid_spec_or_refused_in_one_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("spec") / "contingency.yaml"
    path.write_text(json.dumps(content).replace("NaN", ".nan").replace("Infinity", ".inf"))
    try:
        (contingency,) = load_contingencies(path)
    except (SpecError, NotFoundError) as error:
        assert all(sentence.strip() for sentence in error.sentences)
    else:
        assert ContingencySpec.model_validate_json(contingency.to_json()) == contingency.spec


@given(text=st.text(max_size=300))
@settings(max_examples=100)
def test_any_text_is_refused_without_a_traceback(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("spec") / "contingency.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises((SpecError, NotFoundError)):
        load_contingencies(path)


@given(
    position=st.integers(0, len(GOOD) - 1),
    junk=st.sampled_from([*"{}[]:,-#&*!|>'\"%@`\t\n \\x0", "..", "---\n", "1e999"]),
)
@settings(max_examples=100)
def test_one_wrong_character_never_produces_a_traceback(tmp_path_factory, position, junk):
    path = tmp_path_factory.mktemp("spec") / "contingency.yaml"
    path.write_text(GOOD[:position] + junk + GOOD[position + 1 :])
    try:
        loaded = load_contingencies(path)
    except (SpecError, NotFoundError) as error:
        assert all(sentence.strip() for sentence in error.sentences)
    else:
        assert all(math.isfinite(c.spec.window.T) for c in loaded)


# --- identity -----------------------------------------------------------------------------------


def test_the_same_physics_written_differently_has_the_same_identity(tmp_path):
    plain = load_contingencies(write_contingency(tmp_path, GOOD))[0]
    shorter = (
        "name: example\nsystem: ieee30\ndescription: other words\n"
        "fault: {kind: line, line: [3, 4]}\nclearing:\n  action: restore\n"
    )
    assert load_contingencies(write_contingency(tmp_path, shorter))[0].sha256 == plain.sha256


@pytest.mark.parametrize(
    "change", [("0.5", "0.25"), ("T: 2.0", "T: 2.5"), ("ieee30", "ieee14"), ("example", "other"), ("1.0]", "1.1]")]
)
def test_other_physics_has_another_identity(tmp_path, change):
    plain = load_contingencies(write_contingency(tmp_path, GOOD))[0]
    assert load_contingencies(write_contingency(tmp_path, GOOD.replace(*change, 1)))[0].sha256 != plain.sha256


def test_other_network_data_in_a_users_file_is_another_system(tmp_path):
    first = load_system(str(write_smib(tmp_path, x1=0.5)))
    second = load_system(str(write_smib(tmp_path, x1=0.6)))
    assert first.sha256 != second.sha256


def test_canonical_json_is_sorted_and_holds_no_prose():
    contingency = load_contingency("ieee30-line-3-4-restore")
    content = json.loads(contingency.canonical_json)
    assert "description" not in content
    assert list(content) == sorted(content)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", content["system"])


# --- schema -------------------------------------------------------------------------------------


def test_the_exported_schema_accepts_every_shipped_description():
    contingency_schema, system_schema = json.loads(json_schema(ContingencySpec)), json.loads(json_schema(SystemSpec))
    for name in shipped_contingencies():
        jsonschema.validate(json.loads(load_contingency(name).to_json()), contingency_schema)
    for name in shipped_systems():
        jsonschema.validate(json.loads(load_system(name).to_json()), system_schema)


def test_the_exported_schema_refuses_an_unknown_field():
    content = json.loads(load_contingency("ieee30-line-3-4-restore").to_json())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"windwo": 1}, json.loads(json_schema(ContingencySpec)))
