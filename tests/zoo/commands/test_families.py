"""The commands on whole families: what they write, print and refuse."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli import zoo
from contingencies.errors import SolverError, ZooError
from contingencies.families import generate_family
from contingencies.library import load_contingencies, load_contingency, load_system
from contingencies.network import solve_network
from contingencies.operators import compile_contingency, compile_family, compile_members
from contingencies.recipes import Recipe
from contingencies.reduction import reduce_network
from contingencies.references import reference_cct
from contingencies.stability import CCT
from zoo.studies import screening
from zoo.studies.screening import RANK, Screened, screen, screening_csv
from zoo.work.executor import LocalProcesses, Serial
from zoo.work.jobs import Done

ROOT = Path(__file__).parents[3]
LINES = ["--fault", "line", "--clearing", "remove-line"]
SCALED = [*LINES, "--law", "admittance"]  # the paper's law: one member per line, at its middle
MECHANICAL = ["--fault", "mechanical", "--clearing", "restore-mechanical"]


def run(*arguments: str):
    """The command's standard output; errors a user can mend are raised."""
    return CliRunner().invoke(zoo, list(arguments), catch_exceptions=False, standalone_mode=False).stdout


def refusal(*arguments: str) -> tuple[int, str]:
    """Exit code and message of a refused command."""
    result = CliRunner().invoke(zoo, list(arguments), standalone_mode=False)
    error = result.exception
    assert error is not None and hasattr(error, "exit_code"), result
    message = str(error) if isinstance(error, ZooError) else error.format_message()
    assert "\n" not in message.strip()
    return error.exit_code, message


# --- generate-contingencies -------------------------------------------------------------------


def test_one_command_writes_the_n_1_list_of_new_england(tmp_path):
    text = run("generate-contingencies", "ieee39", *SCALED, "--output", str(tmp_path))
    assert "33 contingencies" in text and "left out: 13" in text
    assert "ieee39-line-16-19-remove" in text and "islands the generator at bus 33, 34" in text
    assert len(list(tmp_path.iterdir())) == 33
    (contingency,) = load_contingencies(tmp_path / "ieee39-line-16-17-remove.yaml")
    assert compile_contingency(contingency).n_machines == 10


def test_generated_members_are_reported_as_json(tmp_path):
    arguments = ["generate-contingencies", "ieee9", "--fault", "bus", "--clearing", "trip-feeders", "--json"]
    report = json.loads(run(*arguments, "--output", str(tmp_path)))
    assert report["members"] == ["ieee9-bus-5-trip", "ieee9-bus-7-trip", "ieee9-bus-9-trip"]
    assert sorted(report["written"]) == sorted(path.name for path in tmp_path.iterdir())
    assert report["unchanged"] == []
    assert {item["place"] for item in report["left_out"]} == {f"ieee9-bus-{k}-trip" for k in (1, 2, 3, 4, 6, 8)}
    assert all(item["reason"] for item in report["left_out"])
    again = json.loads(run(*arguments, "--output", str(tmp_path)))
    assert again["written"] == [] and sorted(again["unchanged"]) == sorted(report["written"])


def test_options_reach_the_written_specs(tmp_path):
    fault = ["--fault", "bus", "--clearing", "restore", "--shunt-g", "0.5", "--shunt-b", "-30"]
    window = ["--t-f", "0.1", "--T", "1.5", "--t-c", "0.12", "0.9", "--severity", "0.2", "2", "--max-separation", "2.5"]
    run("generate-contingencies", "ieee9", *fault, *window, "--output", str(tmp_path))
    spec = load_contingencies(tmp_path / "ieee9-bus-7-restore.yaml")[0].spec
    assert spec.fault.shunt_pu.admittance == 0.5 - 30j
    assert (spec.window.t_f, spec.window.T, spec.window.t_c) == (0.1, 1.5, (0.12, 0.9))
    assert spec.severity == (0.2, 2.0)
    assert spec.stability.max_separation_rad == 2.5


def test_specs_of_a_users_system_point_at_its_file(tmp_path, monkeypatch):
    for name in ("wscc9.yaml", "wscc9.m"):
        (tmp_path / name).write_text((ROOT / "contingencies" / "systems" / name).read_text())
    monkeypatch.chdir(tmp_path)
    run("generate-contingencies", "./wscc9.yaml", *SCALED, "--output", "specs")
    monkeypatch.chdir("/")
    (contingency,) = load_contingencies(tmp_path / "specs" / "wscc9-line-5-7-remove.yaml")
    assert contingency.spec.system == "../wscc9.yaml"
    assert compile_contingency(contingency).n_machines == 3


def test_existing_files_that_differ_need_force(tmp_path):
    arguments = ["generate-contingencies", "ieee9", *MECHANICAL, "--output", str(tmp_path)]
    run(*arguments)
    code, message = refusal(*arguments, "--coefficient", "0.5")
    assert code == 4 and "--force" in message
    assert "3 files written" in run(*arguments, "--coefficient", "0.5", "--force")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere", *SCALED], 3, "'nowhere' is not shipped"),
        (["nowhere.yaml", *SCALED], 3, "no such file"),
        (["ieee9", "--fault", "line", "--clearing", "trip-feeders"], 2, "use remove-line or restore"),
        (["ieee9", "--fault", "storm", "--clearing", "restore"], 2, "--fault"),
        (["ieee9", *SCALED, "--shunt-b", "-5"], 2, "--shunt-b applies to bus faults only"),
        (["ieee9", *SCALED, "--position", "0"], 2, "strictly between 0 and 1"),
        (["ieee9", *SCALED, "--t-c", "0.1", "0.9"], 2, "t_c starts at 0.1 s"),
        (["ieee9", *SCALED, "--T", "1"], 2, "set T > t_c[1]"),
        (["ieee9", *SCALED, "--t-f", "nan"], 2, "finite"),
        (["ieee9", *SCALED, "--max-separation", "0"], 2, "max_separation_rad"),
        (["ieee9", "--fault", "bus", "--clearing", "restore", "--shunt-b", "0"], 2, "is no fault"),
        (["ieee9", "--fault", "mechanical", "--clearing", "set-mechanical"], 2, "needs a factor"),
    ],
)
@pytest.mark.parametrize("command", ["generate-contingencies", "screen"])
def test_bad_input_is_one_sentence_and_writes_nothing(command, arguments, code, words, tmp_path):
    output = ["--output", str(tmp_path / "out")] if command == "generate-contingencies" else []
    found, message = refusal(command, *arguments, *output)
    assert found == code and words in message
    assert not (tmp_path / "out").exists()


def test_a_broken_system_file_is_refused_with_code_5(tmp_path):
    (tmp_path / "bad.yaml").write_text("name: bad\nnetwork: {pandapower: case9}\nprovenance: none\n")
    code, message = refusal("screen", str(tmp_path / "bad.yaml"), *SCALED)
    assert code == 5 and "machines: is missing" in message


# --- screen -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wscc_family():
    system = load_system("wscc9")
    family = generate_family(system, Recipe("bus", "remove-line"))
    return compile_family(family.members, reduce_network(solve_network(system)))


def test_a_screen_ranks_the_most_critical_first(wscc_family):
    answers = screen(wscc_family, 1.0)
    keys = [(RANK[answer.status], answer.cct or 0.0) for answer in answers]
    assert keys == sorted(keys)
    assert {answer.contingency for answer in answers} == {operators.name for operators in wscc_family}
    by_name = {operators.name: operators for operators in wscc_family}
    for answer in answers[:3]:
        alone = reference_cct(by_name[answer.contingency], 1.0)
        assert (answer.status, answer.cct, answer.restabilises) == (alone.status, alone.cct, alone.restabilises)
        assert answer.duration == pytest.approx(answer.cct - 0.2)


def test_workers_give_the_same_answers_as_one_process(wscc_family):
    heard: list[tuple] = []
    parallel = screen(wscc_family, 1.0, executor=LocalProcesses(2), report=lambda *report: heard.append(report))
    assert parallel == screen(wscc_family, 1.0)
    assert heard[-1] == ("fast reference", len(wscc_family), len(wscc_family)) and heard == sorted(heard)


def test_members_of_a_worker_that_dies_are_failed_and_not_left_out(wscc_family):
    class Dying(Serial):
        def run(self, jobs, folder=None):
            for job in jobs:
                yield Done(job, error="its worker died 3 times and it was given up.")

    answers = screen(wscc_family, 1.0, executor=Dying())
    assert [answer.status for answer in answers] == ["failed"] * len(wscc_family)
    assert "died" in answers[0].message


def test_censored_members_stand_on_their_sides_of_the_finite_ones(wscc_family, monkeypatch):
    outcomes = iter(["right-censored", "left-censored", "failed", "finite"] * 3)

    def stand_in(operators, alpha, reference):
        status = next(outcomes)
        if status == "failed":
            raise SolverError("no step was small enough.")
        cct = 0.5 if status == "finite" else None
        return CCT(alpha, status, cct, False, 0.2, reference)

    monkeypatch.setattr(screening, "reference_cct", stand_in)
    answers = screen(wscc_family, 1.0)
    assert [answer.status for answer in answers] == (
        ["left-censored"] * 3 + ["finite"] * 3 + ["right-censored"] * 3 + ["failed"] * 3
    )
    assert all(answer.restabilises is None and answer.message for answer in answers[-3:])


def test_screen_prints_the_ranking_with_its_assumptions():
    text = run("screen", "wscc9", *SCALED, "--jobs", "1", "--alpha", "1.0")
    assert "t_c in [0.21, 1.21] s, T = 2.5 s" in text and "severity 1" in text
    assert text.count("wscc9-line-") == 9 and "left out: 3" in text


def test_a_screen_studies_bolted_faults_near_either_end_and_says_so():
    text = run("screen", "wscc9", *LINES, "--jobs", "1", "--required-ms", "150")
    assert "near either end, bolted three-phase" in text
    assert text.count("wscc9-line-") == 2 * 6 + 3
    assert "fail the required 150 ms" in text


def test_a_screen_of_weaker_faults_says_where_a_bolted_one_would_be_worse():
    answers = json.loads(run("screen", "wscc9", *SCALED, "--jobs", "1", "--json"))["answers"]
    bolted = json.loads(run("screen", "wscc9", *LINES, "--position", "0.5", "--jobs", "1", "--json"))["answers"]
    alone = {answer["contingency"]: answer for answer in bolted}
    for answer in answers:
        twin = alone[answer["contingency"]]
        assert answer["bolted_status"] == twin["status"]
        assert answer["bolted_duration_s"] == pytest.approx(twin["duration_s"], abs=2e-6)
        assert twin["bolted_status"] is None
    assert "a bolted fault would be worse for" in run("screen", "wscc9", *SCALED, "--jobs", "1")


def test_a_folder_is_ranked_by_the_protection_times_of_its_files(tmp_path):
    arguments = ["wscc9", *LINES, "--include", "*7-8*", "--required-ms", "200"]
    run("generate-contingencies", *arguments, "--output", str(tmp_path))
    slower = sorted(tmp_path.iterdir())[0]
    slower.write_text(slower.read_text().replace("required_ms: 200.0", "required_ms: 250.0"))
    made = json.loads(run("screen", str(tmp_path), "--jobs", "1", "--json", "--plot", str(tmp_path / "figure.svg")))
    answers = made["answers"]
    assert sorted(answer["required_s"] for answer in answers) == pytest.approx([0.2, 0.25])
    for answer in answers:
        assert answer["verdict"] == ("pass" if answer["duration_s"] >= answer["required_s"] else "fail")
    family = json.loads(run("screen", "wscc9", *LINES, "--include", "*7-8*", "--jobs", "1", "--json"))["answers"]
    assert [answer["duration_s"] for answer in answers] == [answer["duration_s"] for answer in family]
    text = run("screen", str(tmp_path), "--jobs", "1")
    assert "2 contingencies of the folder" in text and "all bolted" in text and "fail their required times" in text
    assert "fail the required 100 ms" in run("screen", str(tmp_path), "--jobs", "1", "--required-ms", "100")


@pytest.mark.parametrize(("arguments", "words"), [(["wscc9"], "give both"), (["FOLDER", "--T", "3"], "leave out --T")])
def test_a_screen_is_told_what_to_rank_once(tmp_path, arguments, words):
    code, message = refusal("screen", *(str(tmp_path) if part == "FOLDER" else part for part in arguments))
    assert code == 2 and words in message


def test_right_censored_members_follow_by_how_close_they_came():
    window = ["--t-c", "0.21", "0.26", "--T", "1.5"]
    answers = json.loads(run("screen", "ieee39", *LINES, *window, "--jobs", "1", "--json"))["answers"]
    censored = [answer["separation_at_edge_rad"] for answer in answers if answer["status"] == "right-censored"]
    assert len(censored) > 10 and censored == sorted(censored, reverse=True)
    assert max(censored) < 3.15


def test_the_pipelines_family_has_each_line_once_at_its_more_critical_end():
    system = load_system("wscc9")
    members = generate_family(system, Recipe("line", "remove-line")).members
    answers = screen(compile_members(members), 1.0)
    chosen = screening.worse_ends(members, answers)
    assert len(chosen) == 6
    rank = {answer.contingency: k for k, answer in enumerate(answers)}
    for member in chosen:
        line = member.name.split("-near-")[0] + "-near-"
        assert rank[member.name] == min(k for name, k in rank.items() if name.startswith(line))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shunt-b", "-50", "--law", "impedance"], "belong to --law admittance"),
        (["--impedance-pu", "0", "0.1", "--law", "admittance"], "exclude each other"),
        (["--impedance-pu", "-1", "0"], "greater than or equal to 0"),
        (["--required-ms", "nan"], "--required-ms"),
    ],
)
def test_contradictory_descriptions_of_a_fault_are_refused(arguments, words):
    code, message = refusal("screen", "ieee9", "--fault", "bus", "--clearing", "restore", *arguments)
    assert code == 2 and words in message


def test_screen_reports_json_csv_and_a_figure(tmp_path):
    table, figure = tmp_path / "ranking.csv", tmp_path / "ranking.png"
    arguments = ["screen", "ieee9", *MECHANICAL, "--jobs", "1", "--json", "--csv", str(table), "--plot", str(figure)]
    made = json.loads(run(*arguments))
    reports = made["answers"]
    assert len(reports) == 3 and made["left_out"] == []
    required = {"contingency", "alpha", "status", "cct_s", "duration_s", "restabilises", "reference", "T_s"}
    assert all(required <= report.keys() for report in reports)
    member = next(report for report in reports if report["contingency"] == "ieee9-mech-g2-restore")
    assert member["status"] == "finite" and member["duration_s"] == pytest.approx(member["cct_s"] - 0.2)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["contingency"] for row in rows] == [report["contingency"] for report in reports]
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_places_left_out_of_a_screen_stand_in_its_table_with_their_reasons():
    rows = list(csv.DictReader(run("screen", "wscc9", *SCALED, "--jobs", "1", "--csv", "-").splitlines()))
    assert [row["status"] for row in rows[-3:]] == ["left-out"] * 3
    assert all(row["rank"] == "" and row["cct_s"] == "" and "transformer" in row["message"] for row in rows[-3:])
    assert [row["rank"] for row in rows[:-3]] == [str(k) for k in range(1, len(rows) - 2)]


def test_a_screened_member_has_the_cct_of_the_contingency_alone():
    window = ["--T", "2.0", "--t-c", "0.25", "1.25", "--jobs", "1", "--json", "--alpha", "0.9"]
    made = json.loads(run("screen", "ieee14", *SCALED, *window))
    reports = made["answers"]
    left_out = {item["place"]: item["reason"] for item in made["left_out"]}
    assert left_out["ieee14-line-4-7-remove"] == "is a transformer, not a line"
    member = next(report for report in reports if report["contingency"] == "ieee14-line-4-5-remove")
    alone = reference_cct(compile_contingency(load_contingency("ieee14-line-4-5-remove")), 0.9)
    assert member["cct_s"] == pytest.approx(alone.cct, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alpha", "-1"], "at least 0"),
        (["--alpha", "nan"], "not a finite number"),
        (["--jobs", "0"], "--jobs"),
        (["--csv", "no-such-directory/x.csv"], "does not exist"),
        (["--csv", "-", "--json"], "leave one out"),
        (["--plot", "figure.doc"], ".png"),
    ],
)
def test_a_screen_that_cannot_be_done_is_refused_at_once(arguments, words):
    code, message = refusal("screen", "ieee9", *SCALED, *arguments)
    assert code == 2 and words in message


def test_failed_members_survive_into_csv():
    failed = Screened("a", 1.0, "failed", None, None, None, "fast", "no step was small enough.")
    (row,) = csv.DictReader(screening_csv([failed]).splitlines())
    assert (row["status"], row["cct_s"], row["message"]) == ("failed", "", "no step was small enough.")


def test_help_of_the_family_commands_is_quick_to_import():
    heavy = ("pandapower", "numba", "joblib", "matplotlib", "torch", "scipy")
    code = f"import sys, zoo.commands.families; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "[]"


def test_the_new_england_screen_finds_a_boundary_for_most_lines():
    system = load_system("ieee39")
    family = generate_family(system, Recipe("line", "remove-line"))
    answers = screen(compile_family(family.members, reduce_network(solve_network(system))), 1.0)
    finite = [answer.cct for answer in answers if answer.status == "finite"]
    assert len(finite) >= 28
    assert answers[0].contingency == "ieee39-line-28-29-near-29-remove"
    assert np.all(np.diff(finite) >= 0)


def test_filters_that_select_nothing_are_told_and_not_taken_for_a_safe_grid():
    code, message = refusal("screen", "wscc9", *LINES, "--include", "foo-*")
    assert code == 3 and "no place for line faults" in message


ALONG = "conditions: {position: [0.02, 0.5]}\n"
MIXED = """name: %s
system: wscc9
fault: {kind: line, line: [5, 7], position: 0.02, impedance_pu: {r: 0, x: 0}}
clearing: {action: remove-line}
window: {t_f: 0.2, T: 2.5, t_c: [0.21, 1.21]}
%s"""


def test_a_folder_may_mix_contingencies_with_and_without_conditions(tmp_path):
    for name, rest in (("plain", ""), ("loads", "conditions: {load: [0.9, 1.1]}\n"), ("along", ALONG)):
        (tmp_path / f"{name}.yaml").write_text(MIXED % (name, rest))
    answers = json.loads(run("screen", str(tmp_path), "--json"))["answers"]
    assert {answer["contingency"] for answer in answers} == {"plain", "loads", "along"}
    assert len({answer["cct_s"] for answer in answers}) == 1, "all are the same fault at the case's own point"


def test_a_severity_beyond_the_whole_fault_is_said_in_the_header_of_a_screen():
    header = run("screen", "wscc9", *LINES, "--include", "*-5-7-*", "--alpha", "2").splitlines()[0]
    assert "outside the studied severities 0 to 1" in header
    assert "outside" not in run("screen", "wscc9", *LINES, "--include", "*-5-7-*").splitlines()[0]
