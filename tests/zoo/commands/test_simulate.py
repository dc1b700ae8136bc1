"""The commands around the reference simulators, as a user meets them."""

import csv
import json
import os

import pytest
from click.testing import CliRunner

import cli
from contingencies.errors import ZooError
from tests.cases import write_contingency, write_smib

PRIMARY = "ieee30-line-3-4-restore"
NEAR = """name: near
system: ieee30
fault: {kind: line, line: [3, 4], position: 0.5}
clearing: {action: restore}
window: {t_f: 0.2, T: 2.0, t_c: [0.685, 0.695]}
"""  # the same, looked at only where it is lost at severity 0.9


def run(*arguments):
    """Exit code, standard output and standard error of a command, errors handled as `main` does."""
    result = CliRunner().invoke(cli.zoo, [str(argument) for argument in arguments])
    if isinstance(result.exception, ZooError):
        return result.exception.exit_code, result.stdout, f"Error: {result.exception}"
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments):
    code, output, error = run(*arguments, "--json")
    assert code == 0, error
    return json.loads(output)


def test_every_stable_interval_is_told_with_the_promise(tmp_path):
    answer = run_json("reference-cct", PRIMARY, "--alpha", 0.93, "--intervals")
    assert answer["resolution_s"] == 5e-4
    assert answer["stable_t_c_s"] == [[0.25, pytest.approx(answer["cct_s"], abs=1e-6)]]
    _, output, _ = run("reference-cct", PRIMARY, "--alpha", 0.93, "--intervals")
    assert "stable when the fault lasts 50.00 to 480.1" in output and "wider than 0.5 ms" in output


def test_one_answer_is_one_object_with_instant_duration_and_status():
    answer = run_json("reference-cct", PRIMARY, "--alpha", 0.93)
    assert answer["contingency"] == PRIMARY
    assert answer["status"] == "finite"
    assert answer["cct_s"] == pytest.approx(0.6801, abs=1e-4)
    assert answer["duration_s"] == pytest.approx(answer["cct_s"] - 0.2)
    assert answer["restabilises"] is False
    assert answer["reference"] == "fast"


def test_a_censored_answer_has_a_status_and_no_number():
    answer = run_json("reference-cct", PRIMARY, "--alpha", 0.3)
    assert answer["status"] == "right-censored"
    assert answer["cct_s"] is None
    assert answer["duration_s"] is None


def test_all_references_answer_alike(tmp_path):
    path = write_contingency(tmp_path, NEAR)
    answers = [run_json("reference-cct", path, "--alpha", 0.9, "--reference", r) for r in ("fast", "strict", "dae")]
    assert [answer["reference"] for answer in answers] == ["fast", "strict", "dae"]
    assert max(a["cct_s"] for a in answers) - min(a["cct_s"] for a in answers) < 5e-4


def test_a_curve_is_written_as_json_and_as_a_figure(tmp_path):
    figure = tmp_path / "boundary.png"
    curve = run_json("reference-cct", PRIMARY, "--curve", "--plot", figure)
    assert len(curve) == 101
    finite = [answer["cct_s"] for answer in curve if answer["status"] == "finite"]
    assert finite == sorted(finite, reverse=True), "a more severe fault must be cleared sooner here"
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_range_of_severities_is_answered_and_written_as_a_table(tmp_path):
    answers = run_json("reference-cct", PRIMARY, "--alpha", "0.8:1.0:0.1", "--alpha", 0.3)
    assert [answer["alpha"] for answer in answers] == [0.8, 0.9, 1.0, 0.3]
    table = tmp_path / "cct.csv"
    arguments = ("reference-cct", PRIMARY, "--alpha", "0.8:1.0:0.1", "--alpha", 0.3, "--csv")
    code, text, _ = run(*arguments, table)
    assert code == 0 and text.count(PRIMARY) == 4
    code, printed, _ = run(*arguments, "-")
    assert code == 0 and printed == table.read_text()
    rows = list(csv.DictReader(printed.splitlines()))
    assert [row["status"] for row in rows] == ["finite"] * 3 + ["right-censored"]
    assert [float(row["cct_s"]) for row in rows[:3]] == [answer["cct_s"] for answer in answers[:3]]
    assert rows[3]["cct_s"] == "" and rows[0]["T_s"] == "2.0"


def test_people_see_the_instant_and_the_duration():
    code, output, _ = run("reference-cct", PRIMARY, "--alpha", 0.93)
    assert code == 0
    assert "CCT 0.68011 s" in output
    assert "fault may last 480.11 ms" in output


def test_a_trajectory_is_judged_drawn_and_saved(tmp_path):
    table, figure = tmp_path / "trajectory.csv", tmp_path / "trajectory.svg"
    summary = run_json("simulate", PRIMARY, "--alpha", 0.93, "--t-c", 0.73, "--csv", table, "--plot", figure)
    assert summary["stable"] is False
    assert "<svg" in figure.read_text()
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 2001
    assert {"t_s", "delta_1_rad", "omega_13_pu"} <= set(rows[0])
    assert float(rows[-1]["t_s"]) == 2.0


def test_a_severity_beyond_the_studied_ones_is_answered_and_marked():
    assert run_json("reference-cct", PRIMARY, "--alpha", 0.9)["in_domain"] is True
    assert run_json("reference-cct", PRIMARY, "--alpha", 1.2)["in_domain"] is False
    assert "outside the studied severities 0 to 1" in run("reference-cct", PRIMARY, "--alpha", 1.2)[1]


@pytest.mark.parametrize("reference", ["strict", "fast", "dae"])
def test_a_stable_scenario_is_stable_for_every_reference(reference):
    assert run_json("simulate", PRIMARY, "--alpha", 0.93, "--t-c", 0.6, "--reference", reference)["stable"] is True


def test_a_users_own_network_needs_only_its_files(tmp_path):
    write_smib(tmp_path)
    path = write_contingency(
        tmp_path,
        "name: own\nsystem: smib.yaml\nfault: {kind: line, line: [3, 2], circuit: 1}\nclearing: {action: restore}\n"
        "window: {t_f: 0.1, T: 3.0, t_c: [0.12, 2.0]}\nseverity: [0.0, 50.0]\n",
    )
    assert run_json("reference-cct", path, "--alpha", 50)["status"] == "finite"
    assert run_json("show", path)["machines_at"] == [1, 2]


def test_listings_and_descriptions_hold_the_shipped_ones():
    assert {"ieee9", "wscc9", "ieee14", "ieee30", "ieee39", "ieee118"} <= {s["system"] for s in run_json("systems")}
    assert PRIMARY in {c["contingency"] for c in run_json("contingencies")}
    tripped = run_json("show", "ieee30-bus-3-trip")
    assert tripped["removed_branches"] == [[1, 3, 1], [3, 4, 1]]
    assert tripped["islanded_buses"] == [3], "the load that clearing disconnects is named"
    assert run_json("show", PRIMARY)["islanded_buses"] == []
    assert run_json("show", "wscc9")["machines"][0]["E_pu"] == pytest.approx(1.0566, abs=1e-4)
    assert run_json("schema")["title"] == "ContingencySpec"
    assert run_json("schema", "--system")["title"] == "SystemSpec"


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("reference-cct", "nowhere", "--alpha", 1), 3, "not known"),
        (("reference-cct", "nowhere.yaml", "--alpha", 1), 3, "no such file"),
        (("reference-cct", PRIMARY), 2, "--alpha A or --curve"),
        (("reference-cct", PRIMARY, "--alpha", 1, "--curve"), 2, "--alpha A or --curve"),
        (("reference-cct", PRIMARY, "--alpha", "x"), 2, "neither a finite number nor LO:HI:STEP"),
        (("reference-cct", PRIMARY, "--alpha", "1:0:0.1"), 2, "empty range"),
        (("reference-cct", PRIMARY, "--alpha", 1, "--csv", "no/such/folder.csv"), 2, "cannot be written"),
        (("reference-cct", PRIMARY, "--alpha", 1, "--csv", "-", "--json"), 2, "leave one out"),
        (("simulate", PRIMARY, "--alpha", 1, "--t-c", 0.5, "--csv", "-", "--json"), 2, "leave one out"),
        (("reference-cct", PRIMARY, "--alpha", "nan"), 2, "finite number"),
        (("reference-cct", PRIMARY, "--alpha", 1, "--plot", "x.png"), 2, "add --curve"),
        (("reference-cct", PRIMARY, "--alpha", 1, "--reference", "exact"), 2, "not one of"),
        (("simulate", PRIMARY, "--alpha", -1, "--t-c", 0.5), 2, "at least 0"),
        (("simulate", PRIMARY, "--alpha", 1, "--t-c", 0.1), 2, "an instant, not a duration"),
        (("simulate", PRIMARY, "--alpha", 1), 2, "Missing option"),
        (("simulate", PRIMARY, "--alpha", 1, "--t-c", 0.5, "--plot", "no/such/folder.png"), 2, "cannot be written"),
        (("simulate", PRIMARY, "--alpha", 1, "--t-c", 0.5, "--csv", "no/such/folder.csv"), 2, "cannot be written"),
        (("simulate", PRIMARY, "--alpha", 1, "--t-c", 0.5, "--plot", "figure.xyz"), 2, "figure is written as"),
        (("show", "nothing"), 3, "not known"),
        (("no-such-command",), 2, "No such command"),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(arguments, code, part):
    actual, _, error = run(*arguments)
    assert actual == code
    assert part in error


def test_an_invalid_file_is_exit_code_5(tmp_path):
    path = write_contingency(tmp_path, "name: x\n")
    assert run("reference-cct", path, "--alpha", 1)[0] == 5


def test_a_severity_beyond_a_bolted_fault_is_remarked_upon(tmp_path):
    path = tmp_path / "bolted.yaml"
    path.write_text(
        "name: bolted\nsystem: ieee9\nfault: {kind: bus, bus: 7, impedance_pu: {}}\nclearing: {action: restore}\n"
        "window: {t_f: 0.2, T: 2.0, t_c: [0.25, 1.25]}\n"
    )
    remark = "outside the studied severities 0 to 1, and 1 is the whole of a fault given by its impedance"
    scenario = ("simulate", path, "--t-c", 0.3, "--alpha")
    assert remark in run(*scenario, 1.5)[1]
    assert "outside" not in run(*scenario, 1.0)[1]
    assert run_json(*scenario, 1.5)["in_domain"] is False
    assert remark in run("reference-cct", path, "--alpha", 1.5)[1]


def test_the_largest_separation_reached_and_the_admissible_one_have_names_of_their_own():
    stable, lost = (run_json("simulate", PRIMARY, "--alpha", 0.93, "--t-c", t_c) for t_c in (0.5, 0.73))
    for answer in (stable, lost):
        assert answer["max_separation_rad"] == pytest.approx(3.14159265)
        assert answer["margin_rad"] == pytest.approx(answer["separation_rad"] - answer["max_separation_rad"])
        assert answer["stable"] == (answer["margin_rad"] < 0)
    assert stable["stable"] and not lost["stable"]


def test_a_table_is_written_through_a_link_and_into_a_pipe(tmp_path):
    target, link, pipe = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "pipe.csv"
    target.write_text("old")
    link.symlink_to(target)
    os.mkfifo(pipe)
    arguments = ["reference-cct", PRIMARY, "--alpha", 0.93, "--csv"]
    assert run(*arguments, link)[0] == 0
    assert link.is_symlink() and target.read_text().startswith("contingency,")
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(*arguments, pipe)[0] == 0
        assert os.read(reading, 100_000).decode() == target.read_text()
    finally:
        os.close(reading)
    assert pipe.is_fifo()
