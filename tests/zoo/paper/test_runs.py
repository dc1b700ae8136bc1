"""One entry from its trainings to its report: run once, kept when killed, stored and reported whole."""

import csv
import gc
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
import weakref
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import cli
from contingencies.errors import ConflictError, IntegrityError, NotFoundError, UsageError
from registry.home import Home
from registry.spool import read_records, spooled_runs
from registry.store import runs
from registry.store.benchmarks import numbers_of
from zoo.paper import NAMES
from zoo.paper.budgets import BUDGETS
from zoo.paper.circumstances import circumstances
from zoo.paper.entry import Benchmark, Setting, Training, task
from zoo.paper.formats import number, table_csv
from zoo.paper.jobs import Place, job_of
from zoo.paper.pages import markdown, write_pages
from zoo.paper.run import Conduct, run_entry
from zoo.paper.sections import read_sections, write_section
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.paper.verdicts import CLAIMS, verdict
from zoo.plots import FORMATS, new_figure, save_figure
from zoo.work.executor import Serial
from zoo.work.jobs import Results

ROOT = Path(__file__).parents[3]
QUICK = Setting(BUDGETS["quick"], (0,))


# --- a small entry from training to report ----------------------------------------------------


def small_entry():
    training = Training("es-pinn-chained", ("ieee9-mech-g2-restore",), 0.01)
    wanted = task("trajectory:learned", training, alpha=0.9, t_c=0.6)
    beyond = task("trajectory:learned", training, alpha=-1.0, t_c=0.6)  # no simulator takes it

    def present(setting, found):
        result = found.get(wanted)
        cells = (cell([None if result is None else result["delta"][0][0]], Published(1.0, 0.1)),)
        rows = (Row("first | angle <b>", cells, "tiny"), Row("beyond", (cell([]),), found.problem([beyond])))
        figure, axes = new_figure(width=2, height=2)
        axes.plot([0, 1])
        table = Table("angles", "Angles", "nowhere", (Quantity("delta", "rad"),), rows)
        return Presentation((table,), (Drawing("line", "A line.", figure),), ("A note.",))

    return Benchmark("trajectory", "A small entry", "nowhere", lambda setting: [wanted, beyond], present), training


def serial(home, said=None, kept=None, **options):
    """An entry's work in this process; `said` gets stage and freshness of each piece of it."""
    heard = [] if said is None else said
    return Conduct(
        Place(home, kept=kept),
        Serial(),
        heard=lambda stage, item, count, total: heard.append((stage, item.fresh)),
        **options,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A small entry run twice in one home, and its report."""
    home, report = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("report")
    benchmark, training = small_entry()
    said, outcomes = [], []
    for _ in range(2):
        outcomes.append(run_entry(benchmark, QUICK, serial(home, said)))
    section = write_section(report, benchmark, outcomes[0].presentation, circumstances(QUICK), outcomes[0].failures)
    write_pages(report)
    return home, report, section, outcomes, said, training


def test_an_entry_trains_into_the_registry_and_measures_what_it_trained(ran):
    home, _, section, _, said, training = ran
    with Home.open(home) as opened:
        (run,) = runs.runs(opened.database)
        assert run.model == training.model
        assert run.config["plan"]["minutes"] == training.minutes
    assert section.tables[0].rows[0].cells[0].ours is not None
    assert [stage for stage, _ in said[:3]] == ["training", "measuring", "measuring"]


def test_a_measurement_that_fails_is_named_and_tried_again_while_the_rest_is_kept(ran):
    _, _, section, (first, second), _, _ = ran
    assert len(first.failures) == 1 and "severity" in first.failures[0]
    assert section.failures == first.failures
    assert section.tables[0].rows[1].why.startswith("missing: severity")
    assert first.fresh == 3 and second.fresh == 1  # only the failed one is done again
    assert second.presentation.tables == first.presentation.tables


def test_every_number_of_an_entry_reaches_its_diary(ran):
    home, _, section, _, _, _ = ran
    records = [record for uid in spooled_runs(home) for record in read_records(home, uid, 0)[0]]
    names = [record["name"] for record in records if record["kind"] == "start"]
    assert "benchmark trajectory" in names
    values = {}
    for record in records:
        if record["kind"] == "metrics":
            values.update(record["values"])
    assert section.tables[0].rows[0].cells[0].ours in values.values()
    assert all(re.fullmatch(r"[\w\-./ ]+", name) for name in values)
    noted = [path for record in records if record["kind"] == "files" for path in record["paths"]]
    drawn = [path for path in noted if path.endswith("/line.svg")]
    assert drawn and all((home / path).stat().st_size > 1000 for path in noted)


def test_every_number_of_an_entry_is_in_the_registry_once(ran):
    home, _, section, _, _, _ = ran
    with Home.open(home) as opened:
        (row,) = numbers_of(opened.database, "trajectory")  # run twice; the cell without any number is left out
    found = section.tables[0].rows[0].cells[0]
    assert (row.table_name, row.row_label, row.quantity, row.unit) == ("angles", "first | angle <b>", "delta", "rad")
    assert (row.value, row.std, row.count) == (found.ours, None, 1)
    assert (row.paper, row.paper_std, row.budget, row.seeds) == (1.0, 0.1, "quick", 1)


def test_a_registry_that_cannot_be_written_costs_the_storing_and_not_the_report(ran, monkeypatch):
    home, _, section, _, _, _ = ran

    def refuse(*arguments, **settings):
        raise ConflictError("the registry is busy; try again.")

    monkeypatch.setattr("zoo.paper.numbers.add_numbers", refuse)
    benchmark, _ = small_entry()
    outcome = run_entry(benchmark, QUICK, serial(home))
    assert outcome.failures[-1] == "storing the numbers: the registry is busy; try again."
    assert outcome.presentation.tables == section.tables


def test_without_training_what_is_trained_is_measured_and_the_rest_is_said_to_be_missing(ran):
    home, _, _, _, _, training = ran
    known, unknown = (task("trajectory:learned", replace(training, seed=s), alpha=0.8, t_c=0.6) for s in (0, 9))

    def present(setting, found):
        rows = tuple(Row(str(k), (cell([]),), found.problem([each])) for k, each in enumerate((known, unknown)))
        return Presentation((Table("angles", "Angles", "nowhere", (Quantity("delta", "rad"),), rows),))

    benchmark = Benchmark("trajectory", "Two seeds", "nowhere", lambda setting: [known, unknown], present)
    said = []
    outcome = run_entry(benchmark, QUICK, serial(home, said, train=False))
    assert [row.why for row in outcome.presentation.tables[0].rows] == ["", "missing: not run"]
    assert sorted(said) == [("measuring", True), ("training", False)]
    assert not outcome.failures


def test_finished_work_of_another_home_counts_and_only_lost_models_are_trained_again(ran, tmp_path):
    first, _, _, (whole, _), _, training = ran
    shared, other, said, words = tmp_path / "shared", tmp_path / "other", [], []
    shutil.copytree(first / "results", shared)
    benchmark, _ = small_entry()
    measured = replace(benchmark, tasks=lambda setting: benchmark.tasks(setting)[:1])
    outcome = run_entry(measured, QUICK, serial(other, said, shared))
    assert sorted(said) == [("measuring", False), ("training", False)]
    assert outcome.presentation.tables[0].rows[0].cells == whole.presentation.tables[0].rows[0].cells
    more = replace(measured, tasks=lambda setting: [task("trajectory:learned", training, alpha=0.7, t_c=0.6)])
    refused = run_entry(more, QUICK, serial(other, kept=shared, train=False))
    assert "was trained in another home" in refused.failures[0]
    said.clear()
    run_entry(more, QUICK, serial(other, said, shared, say=words.append))
    assert said == [("training", True), ("measuring", True)]
    assert any(line.startswith("trained in another home") and line.endswith(" 1.") for line in words)
    assert not (other / "results").exists()
    said.clear()
    run_entry(measured, QUICK, serial(other, said, shared))
    assert sorted(said) == [("measuring", True), ("training", False)], "numbers of the former model are not kept"


def test_stored_numbers_are_printed_for_people_and_machines(ran, tmp_path):
    home, _, section, _, _, _ = ran
    (tmp_path / "benchmarks").symlink_to(home)
    arguments = ["benchmark", "trajectory", "--stored", "--home", str(tmp_path)]
    told = CliRunner().invoke(cli.zoo, arguments)
    assert told.exit_code == 0
    first, line = told.output.splitlines()
    assert first.startswith("trajectory  budget quick, 1 seed, version ")
    value = section.tables[0].rows[0].cells[0].ours
    assert line == f"  angles  first | angle <b>  delta: {number(value, 6)} rad  paper 1.0 ± 0.1"
    (row,) = json.loads(CliRunner().invoke(cli.zoo, [*arguments, "--json"]).output)
    assert (row["entry"], row["value"], row["unit"], row["count"]) == ("trajectory", value, "rad", 1)
    everything = CliRunner().invoke(cli.zoo, ["benchmark", "--stored", "--home", str(tmp_path)])
    assert everything.output == told.output


@pytest.mark.parametrize(
    ("names", "words"), [(["runtime"], "no numbers of runtime are stored"), (["no-such"], "is not known")]
)
def test_numbers_that_are_not_stored_are_named(ran, tmp_path, names, words):
    (tmp_path / "benchmarks").symlink_to(ran[0])
    done = CliRunner().invoke(cli.zoo, ["benchmark", *names, "--stored", "--home", str(tmp_path)])
    assert isinstance(done.exception, NotFoundError) and words in str(done.exception)


def test_asking_for_numbers_makes_no_registry(tmp_path):
    done = CliRunner().invoke(cli.zoo, ["benchmark", "--stored", "--home", str(tmp_path)])
    assert isinstance(done.exception, NotFoundError) and "'cct-zoo benchmark" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_nothing_is_run_when_only_the_report_is_asked_for(tmp_path):
    benchmark, _ = small_entry()
    outcome = run_entry(benchmark, QUICK, Conduct(Place(tmp_path), heard=pytest.fail))
    assert outcome.presentation.tables[0].rows[0].cells[0].ours is None
    assert not list(tmp_path.rglob("*.safetensors"))


# --- the report -------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page refers to and says."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.targets += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_needs_no_other_file_and_shows_ours_the_papers_and_why(ran):
    _, report, section, _, _, _ = ran
    text = (report / "index.html").read_text()
    page = Page(text)
    assert page.targets and all(target.startswith(("data:image/", "#")) for target in page.targets)
    said = " ".join(page.text)
    first = section.tables[0].rows[0]
    for wanted in ("first | angle <b>", number(first.cells[0].ours), "1.0 ± 0.1", first.why, "A note.", "A line."):
        assert wanted in said
    around = section.circumstances
    for wanted in (around.commit, around.machine, around.date, f"budget {around.budget}", "1 seed"):
        assert wanted in said


def test_markdown_keeps_its_columns_and_its_figures_exist(ran):
    _, report, _, _, _, _ = ran
    text = (report / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "tiny" in line]
    assert len(rows) == 1 and len(re.split(r"(?<!\\)\|", rows[0])) == 6  # label, ours, paper, remarks, and both ends
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (report / target).exists(), target


def test_a_section_names_the_seeds_that_it_rests_on_and_not_those_that_were_asked_for(tmp_path):
    benchmark, _ = small_entry()
    five = circumstances(replace(QUICK, seeds=tuple(range(5))))
    for values, seeds in (([1.0, 2.0], 2), ([1.0] * 12, 5), ([], 1)):
        table = Table("t", "A table", "Table 1", (Quantity("error", "ms"),), (Row("one", (cell(values),), ""),))
        section = write_section(tmp_path, benchmark, Presentation((table,)), five)
        assert section.circumstances.seeds == seeds
        assert f"{seeds} seed" in read_sections(tmp_path)[0].circumstances.sentence


def test_the_kept_report_is_what_its_entries_say():
    sections = read_sections(ROOT / "docs" / "report")
    assert (ROOT / "docs" / "report" / "README.md").read_text() == markdown(sections)
    assert [section.name for section in sections] == list(NAMES)
    assert all(verdict(section.name, section.tables) for section in sections), "each section has a verdict"
    assert set(CLAIMS) == set(NAMES)


def test_pages_are_written_anew_from_the_entries_in_a_folder(ran, tmp_path):
    _, report, _, _, _, _ = ran
    page = (report / "README.md").read_text()
    (report / "README.md").unlink()
    done = CliRunner().invoke(cli.zoo, ["benchmark", "--no-run", "--output", str(report), "--home", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (report / "README.md").read_text() == page
    done = CliRunner().invoke(cli.zoo, ["benchmark", "--no-run", "--output", str(tmp_path), "--home", str(tmp_path)])
    assert isinstance(done.exception, NotFoundError)


@pytest.mark.parametrize("flag", ["--no-run", "--no-train"])
def test_a_section_is_left_as_it_is_where_this_code_has_no_results(flag, ran, tmp_path):
    _, report, _, _, _, _ = ran
    kept = tmp_path / "report"
    shutil.copytree(report, kept)
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    results, home = tmp_path / "results", tmp_path / "home"
    command = [
        "benchmark", "trajectory" if flag == "--no-run" else "shooting-systems", flag, "--jobs", "1", "--no-mlflow",
        "--home", str(home), "--output", str(kept), "--results", str(results),
    ]  # fmt: skip
    done = CliRunner().invoke(cli.zoo, command)
    assert isinstance(done.exception, NotFoundError) and "results" in str(done.exception)
    assert {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("train", [True, False])
def test_results_of_other_code_are_named_whether_or_not_anything_is_run(train, tmp_path):
    benchmark, training = small_entry()
    place = Place(tmp_path / "home", None, tmp_path / "results")
    job = job_of(training, place)
    Results(place.results.folder).put(replace(job, code="0" * 12), {"parameters": 1})
    said = []
    executor = Serial() if not train else None  # measure what is trained, or nothing at all
    run_entry(benchmark, QUICK, Conduct(place, executor, train=train, say=said.append))
    assert said == ["1 earlier result was found by other code and is not reused."]


def test_stored_numbers_are_not_printed_and_left_out_at_once(tmp_path):
    refused = CliRunner().invoke(cli.zoo, ["benchmark", "--stored", "--no-run", "--home", str(tmp_path)])
    assert isinstance(refused.exception, UsageError) and "--stored" in str(refused.exception)


def test_a_misspelt_benchmark_is_met_with_a_near_one(tmp_path):
    refused = CliRunner().invoke(cli.zoo, ["benchmark", "case30-acuracy", "--home", str(tmp_path)])
    assert isinstance(refused.exception, NotFoundError) and "Did you mean case30-accuracy" in str(refused.exception)


def test_tables_are_csv_with_one_line_for_each_number(ran):
    _, report, section, _, _, _ = ran
    (table,) = section.tables
    lines = list(csv.DictReader(io.StringIO(table_csv(table))))
    assert len(lines) == 2
    assert float(lines[0]["ours"]) == table.rows[0].cells[0].ours
    assert (lines[0]["paper"], lines[0]["unit"], lines[1]["ours"]) == ("1.0", "rad", "")
    assert (report / "tables" / "trajectory-angles.csv").read_text() == table_csv(table)


def test_a_section_reads_back_as_it_was_written_and_others_stay(ran, tmp_path):
    _, _, section, (first, _), _, _ = ran
    benchmark, _ = small_entry()
    plain = replace(first.presentation, drawings=())
    one = write_section(tmp_path, benchmark, plain, section.circumstances)
    two = write_section(tmp_path, replace(benchmark, name="case30-accuracy"), plain, section.circumstances)
    write_pages(tmp_path)
    assert read_sections(tmp_path) == [two, one]  # in the order of the benchmarks
    assert "trajectory" in (tmp_path / "index.html").read_text()


def test_a_damaged_section_is_named(tmp_path):
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries" / "runtime.json").write_text('{"name": "runtime"')
    with pytest.raises(IntegrityError, match=r"runtime\.json"):
        read_sections(tmp_path)


def test_drawing_many_figures_leaves_none_open(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures = [new_figure(width=1, height=1)[0] for _ in range(25)]
    for suffix in FORMATS:
        save_figure(figures[0], tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").stat().st_size > 100
    held = weakref.ref(figures[1])
    figures.clear()
    gc.collect()
    assert held() is None


# --- the command ------------------------------------------------------------------------------


def test_the_command_lists_its_entries():
    done = CliRunner().invoke(cli.zoo, ["benchmark"])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == list(NAMES)


def test_listing_the_entries_loads_nothing_heavy():
    code = (
        "import sys, cli\ncli.zoo.main(['benchmark'], standalone_mode=False)\nprint('HEAVY', *HEAVY & set(sys.modules))"
    )
    heavy = {"torch", "pandapower", "mlflow", "numba", "matplotlib", "sqlalchemy"}
    listed = subprocess.run(
        [sys.executable, "-c", code.replace("HEAVY &", f"{heavy} &")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.splitlines()[-1] == "HEAVY"


COARSE = (10.0, 6.0, 5.0, 4.0)  # ms: less than half as many steps as the published ones take
COARSELY = f"""
import sys
import cli, zoo.paper.dae_convergence
zoo.paper.dae_convergence.STEPS_MS = {COARSE}
sys.exit(cli.main())
"""


def test_a_run_that_was_killed_repeats_nothing_that_had_finished(tmp_path, monkeypatch):
    home, report = tmp_path / "home", tmp_path / "report"
    command = [
        "benchmark", "dae-convergence", "--jobs", "1", "--no-mlflow", "--json",
        "--home", str(home), "--output", str(report),
    ]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    results = home / "benchmarks" / "results"
    killed = subprocess.Popen(
        [sys.executable, "-c", COARSELY, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while not list(results.glob("*.json")) and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    finished = {path: path.stat().st_mtime_ns for path in results.glob("*.json")}
    assert 0 < len(finished) < 3
    monkeypatch.setattr("zoo.paper.dae_convergence.STEPS_MS", COARSE)
    done = CliRunner(catch_exceptions=False).invoke(cli.zoo, command)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["entries"][0]["done_now"] == 3 - len(finished)
    assert done.stderr.count("done before") == len(finished)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    rows = read_sections(report)[0].tables[0].rows
    assert all(c.ours is not None for row in rows for c in row.cells)
