"""The paper's tables as entries: complete, faithful to what was published, run once, reported whole."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import cli
from contingencies.errors import NotFoundError, SolverError
from zoo.paper import NAMES, jobs, load_benchmark
from zoo.paper.budgets import BUDGETS
from zoo.paper.circumstances import circumstances
from zoo.paper.common import PRIMARY, SYSTEMS
from zoo.paper.entry import Findings, Setting, Task
from zoo.paper.numbers import numbers_of as presented_numbers
from zoo.paper.sections import read_sections, write_section
from zoo.paper.tables import Cell, Published, cell

QUICK = Setting(BUDGETS["quick"], (0,))
WANTED = {
    "case30-accuracy", "case30-matched", "case30-extrapolation", "cross-system", "distillation", "runtime",
    "moe-low-data", "sensitivity", "beta-sweep", "time-sampling", "dae-convergence", "trajectory", "family-scaling",
    "case30-longer", "rollouts", "moe-shooting", "shooting-systems",
}  # fmt: skip


TRAINED = SimpleNamespace(checkpoint=SimpleNamespace(id=1, run_id=1, digest="", parameters=1, metrics={}))


def trainings(name, setting=QUICK):
    return {each.training for each in load_benchmark(name).tasks(setting) if each.training is not None}


# --- entries ----------------------------------------------------------------------------------


def test_every_table_and_figure_of_the_paper_has_an_entry():
    entries = [load_benchmark(name) for name in NAMES]
    assert set(NAMES) == WANTED
    assert [entry.name for entry in entries] == list(NAMES)
    sources = " ".join(entry.source for entry in entries)
    for wanted in ("Table 1", "Table 2", "Table 3", "Table 5", "Table 6", "Table 7", "Table 8"):
        assert wanted in sources
    for wanted in ("Figure 3", "Figure 4", "Figure 5", "Figures 2 and 6"):
        assert wanted in sources


def test_an_unknown_entry_is_refused_by_name():
    with pytest.raises(NotFoundError, match=r"no-such.*case30-accuracy"):
        load_benchmark("no-such")


def test_a_training_that_several_tables_need_is_one_training():
    primary = trainings("case30-accuracy")
    assert len(primary) == 23  # one-shot models on both windows, four of them with both residuals, and the chained one
    for name in ("case30-matched", "case30-extrapolation", "sensitivity", "trajectory", "runtime"):
        assert trainings(name) <= primary
    assert trainings("distillation") <= trainings("cross-system")
    assert trainings("beta-sweep") <= trainings("cross-system") | primary


def test_seeds_multiply_trainings_and_give_none_twice():
    three = Setting(BUDGETS["quick"], (0, 1, 2))
    assert len(trainings("case30-accuracy", three)) == 3 * len(trainings("case30-accuracy"))
    assert {each.seed for each in trainings("moe-low-data", three)} == {0, 1, 2}


def test_a_quick_run_of_everything_trains_for_a_quarter_of_an_hour_of_one_core_at_most():
    everything = set().union(*(trainings(name) for name in NAMES))
    assert sum(each.minutes for each in everything) <= 15.0  # two cores share it, and measure in the rest of 20 min


def test_separate_models_share_the_time_of_one_mixture():
    by_model = {}
    for each in trainings("moe-low-data"):
        by_model.setdefault((each.model, each.fraction), []).append(each)
    for (model, fraction), found in by_model.items():
        if model == "es-pinn":
            (together,) = by_model["moe", fraction]
            assert sum(each.minutes for each in found) == pytest.approx(together.minutes)
            assert sorted(m for each in found for m in each.members) == sorted(together.members)


def test_table_1_is_made_with_both_residuals_and_the_papers_rows_with_its_own():
    made = {(each.model, each.focus, each.residual) for each in trainings("case30-accuracy")}
    shooting = {model for model, _, residual in made if residual == "shooting"}
    assert shooting == {"es-pinn", "xpinn", "es-pinn-state-only", "es-pinn-soft-chain"}
    assert {("es-pinn", focus, residual) for focus in (True, False) for residual in ("pointwise", "shooting")} <= made
    ours = ("case30-accuracy", "case30-longer", "moe-shooting", "shooting-systems")
    other = [each for name in NAMES if name not in ours for each in trainings(name)]
    assert {each.residual for each in other} == {"pointwise"}


def test_longer_trainings_are_those_of_table_1_but_for_their_minutes():
    longer = trainings("case30-longer")
    assert {replace(each, minutes=BUDGETS["quick"].one_shot) for each in longer} <= trainings("case30-accuracy")
    assert {each.minutes for each in longer} == {BUDGETS["quick"].one_shot, BUDGETS["quick"].longer}
    five = trainings("case30-longer", Setting(BUDGETS["quick"], tuple(range(5))))
    assert {each.seed for each in five if each.residual == "pointwise"} == {0, 1, 2}
    assert {each.seed for each in five if each.residual == "shooting"} == {0}


def test_shooting_on_two_faults_is_compared_at_equal_time_and_at_equal_steps():
    made = trainings("moe-shooting")
    assert {(each.residual, each.focus) for each in made} == {("shooting", True)}
    for fraction in (0.1, 0.2, 1.0):
        timed = [each for each in made if each.fraction == fraction and each.steps is None]
        together = sum(each.minutes for each in timed if each.model == "es-pinn")
        mixtures = sorted(each.minutes for each in timed if each.model == "moe")
        assert mixtures == pytest.approx([together, 2 * together] if fraction == 0.2 else [together])
        counted = [each for each in made if each.fraction == fraction and each.steps is not None]
        assert len({each.steps for each in counted}) == 1
        assert sorted(len(each.members) for each in counted) == [1, 1, 2]


def test_shooting_is_tried_on_every_system_of_the_paper_with_the_same_minutes():
    made = trainings("shooting-systems")
    assert {(each.model, each.residual, each.focus) for each in made} == {("es-pinn", "shooting", True)}
    assert {each.members for each in made} == {(name,) for name in (PRIMARY, *SYSTEMS.values())}
    assert {each.minutes for each in made} == {BUDGETS["quick"].shooting}


def test_steps_of_a_training_decide_its_identity_and_reach_its_request(monkeypatch, tmp_path):
    """A training without steps keeps the identity it had before steps could be given."""
    timed = next(each for each in trainings("moe-shooting") if each.steps is None)
    counted = replace(timed, minutes=0.0, steps=60)
    place = jobs.Place(tmp_path)
    assert "steps" not in jobs.job_of(timed, place).inputs["training"]
    assert jobs.job_of(timed, place).key != jobs.job_of(counted, place).key
    asked = []
    monkeypatch.setattr(jobs, "train_however_briefly", lambda session, rows, request: asked.append(request) or TRAINED)
    for each in (timed, counted):
        jobs.train(jobs.job_of(each, place).inputs["training"], str(tmp_path), None)
    assert [(request.minutes, request.steps) for request in asked] == [(timed.minutes, None), (None, 60)]


def test_a_curve_of_rollouts_comes_from_trainings_that_differ_in_nothing_else():
    wanted = [dict(each.options) for each in load_benchmark("rollouts").tasks(QUICK)]
    assert len({each.pop("refresh_steps") for each in wanted}) == len(wanted) > 3
    assert all(each == wanted[0] for each in wanted)


@pytest.mark.parametrize(
    ("entry", "table", "row", "quantity", "mean", "std"),
    [
        ("case30-accuracy", "cct", "ES-PINN", "CCT MAE", 0.32, 0.07),
        ("case30-accuracy", "trajectories", "PI-DeepONet", "RMSE delta", 26.2, 11.6),
        ("case30-accuracy", "trajectories", "Soft-chain ES-PINN", "RMSE omega", 5.44, 0.77),
        ("case30-accuracy", "parameters", "Vanilla PINN", "parameters", 136494, None),
        ("case30-matched", "matched", "Enhanced XPINN", "separation MAE", 0.203, 0.013),
        ("case30-extrapolation", "extrapolation", "ES-PINN", "CCT P95", 3.94, 2.80),
        ("sensitivity", "sensitivity", "Vanilla PINN", "implicit-FD MAE", 25.67, 4.97),
        ("cross-system", "boundaries", "IEEE 9, ES-PINN", "CCT MAE against the DAE", 13.10, None),
        ("distillation", "heads", "IEEE 30, feeders tripped", "reconstruction MAE", 4.3, None),
        ("runtime", "runtime", "full-network DAE", "CCT runtime", 202187.8, None),
        ("runtime", "runtime", "distilled head", "CCT runtime", 0.064, None),
        ("moe-low-data", "fractions", "0.1, MoE", "CCT MAE", 3.92, 1.85),
        ("moe-low-data", "fractions", "1, Separate", "RMSE omega", 8.21, 2.36),
        ("moe-low-data", "parameters", "MoE", "fewer than Separate", 50.8, None),
        ("beta-sweep", "beta", "IEEE 14, reduced ODE", "E_sm", 0.075, None),
        ("beta-sweep", "beta", "IEEE 9, ES-PINN", "E_end", 3.232, None),
        ("time-sampling", "sampling", "h_t = 2 ms", "largest change", 1.6e-6, None),
        ("dae-convergence", "steps", "IEEE 30, feeders tripped", "DAE, 2.5 ms", 0.68757, None),
    ],
)
def test_published_numbers_are_those_of_the_paper(entry, table, row, quantity, mean, std):
    shown = load_benchmark(entry).present(QUICK, Findings({}, {}))
    (found,) = [t for t in shown.tables if t.name == table]
    column = [q.name for q in found.quantities].index(quantity)
    line = next(r for r in found.rows if r.label == row or r.label.startswith(f"{row},"))
    assert (line.cells[column].paper, line.cells[column].paper_std) == (mean, std)


@pytest.mark.parametrize("name", NAMES)
def test_no_row_is_left_out_when_its_work_failed(name):
    benchmark = load_benchmark(name)
    wanted = benchmark.tasks(QUICK)
    shown = benchmark.present(QUICK, Findings({}, {each: "the grid is on fire" for each in wanted}))
    assert shown.tables
    for table in shown.tables:
        assert table.rows and table.source
        for row in table.rows:
            assert len(row.cells) == len(table.quantities)
            assert row.why
            assert all(c.ours is None for c in row.cells)
    assert "the grid is on fire" in " ".join(row.why for table in shown.tables for row in table.rows)


def test_a_cell_is_the_mean_and_spread_of_the_numbers_there_are():
    assert cell([1.0, None, 3.0], Published(5.0, 0.5), 10.0) == Cell(20.0, pytest.approx(14.1421356), 5.0, 0.5, 2)
    assert cell([2.0]) == Cell(2.0, count=1)
    assert cell([None, float("nan")]) == Cell(None, None)


# --- measurements -----------------------------------------------------------------------------


def test_halving_the_step_of_the_full_network_quarters_its_distance_to_the_reduced_model():
    from zoo.paper.dae_convergence import measure

    found = measure("ieee9-mech-g2-restore", 0.9, (10.0, 5.0))
    coarse, fine = (abs(found["dae"][step] - found["ode"]) for step in ("10", "5"))
    assert coarse / fine == pytest.approx(4.0, rel=0.05)


def test_the_spacing_of_samples_does_not_move_a_boundary_decided_at_the_end_of_the_study():
    from zoo.paper.time_sampling import measure

    found = measure("ieee30-line-3-4-restore", 5, (1e-3, 2e-3))
    assert found["alpha"]
    assert found["cct"]["1"] == pytest.approx(found["cct"]["2"], abs=1e-9)


def test_fewer_rollouts_are_counted_as_fewer():
    from zoo.paper.rollouts import measure

    often, seldom = (measure("ieee9-mech-g2-restore", steps, 0.05, seed=0, thin=25) for steps in (1, 1000))
    assert 0 < seldom["rollouts"] < often["rollouts"]
    assert seldom["rmse_delta_decisive"] > 0 and seldom["steps"] > 0


# --- presentation of results ------------------------------------------------------------------

METRICS = {"train_s": 12.0, "steps": 100.0, "status_errors": 1.0, "cct_mae_ms": 0.5, "cct_max_ms": 2.0}


def wanted_severities(wanted):
    severities = dict(wanted.options).get("severities", 41)
    return severities if isinstance(severities, int) else 41


def fake_result(wanted):
    """A result of the shape that a task's function returns, with a boundary from severity 0.5 on."""
    consistent = {"mae": 0.01, "correlation": 0.99, "rows": 20}
    count = wanted_severities(wanted)
    alpha = [k / (count - 1) for k in range(count)]
    finite = [None if a < 0.5 else 1.0 - 0.4 * a for a in alpha]
    boundary = {"alpha": alpha, "cct": finite, "status": ["finite" if c else "right-censored" for c in finite]}
    function, options = wanted.function, dict(wanted.options)
    totals = {"delta": 4.0, "omega": 1e-6, "machines": 6, "samples": 100, "samples_decisive": 100, "scenarios": 10}
    errors = {"rmse_delta": 0.1, "rmse_omega": 1e-4, "separation_mae": 0.2, "miou": 0.99}
    rows = [
        {"alpha": a, "status": s, "cct_s": c and c + 1e-3, "true_status": s, "true_cct_s": c, "ode_smooth_cct_s": c,
         "dcct_dalpha_s": c and -0.4, "centred_difference_s": c and -0.4, "true_dcct_dalpha_s": c and -0.4,
         "slope_rad_per_s": c and 3e3}
        for a, c, s in zip(alpha, finite, boundary["status"], strict=True)
    ]  # fmt: skip
    summary = {"implicit_against_centred": consistent, "implicit_against_reference_ode": consistent}
    made = {
        "measurements:held_out": {"members": [totals] * len(wanted.training.members if wanted.training else ())},
        "measurements:assess": {"summary": summary, "rows": rows},
        "measurements:reference_curve": boundary,
        "slopes:reference_slopes": {"slope_rad_per_s": [c and 4e4 for c in finite]},
        "case30_matched:measure": errors,
        "case30_extrapolation:measure": errors | {"cct": {"mae": 1e-3, "p95": 2e-3}},
        "cross_system:dae_curve": boundary,
        "cross_system:picture": {"alpha": [0.0, 1.0], "t_c": [0.3, 0.6], "margins": [[-1.0, -0.5], [-0.1, 1.0]]},
        "beta_sweep:measure": {
            "split": {
                f"{beta:g}": {"smoothing": 1e-3 / beta, "surrogate": None, "end_to_end": 1e-3}
                for beta in options.get("betas", ())
            }
        },
        "distillation:measure": {
            "boundary": boundary,
            "heads": {
                kind: {"cct": finite, "parameters": 16, "learned_mae_s": 1e-5, "learned_max_s": 1e-4, "ode_mae_s": 1e-3}
                for kind in options.get("kinds", ())
            },
        },
        "runtime:simulators": {"gap_ms": 1e-4}
        | {name: {"median": 5.0, "severities": 3} for name in ("dae", "strict", "fast")},
        "runtime:surrogate": {"median": 2.0, "severities": 50},
        "runtime:head": {"median": 1e-3, "severities": 50},
        "rollouts:measure": {
            "rollouts": 3072, "steps": 100, "cct_mae_s": 1e-4, "cct_max_s": 1e-3, "rmse_delta_decisive": 0.01,
        },
        "family_scaling:measure": {"members": [{"mae": 1e-4, "mismatches": 0}, {"mae": None, "mismatches": 1}]},
        "time_sampling:measure": {"alpha": [0.9], "cct": {"0.5": [0.7], "1": [0.7], "2": [0.7]}},
        "dae_convergence:measure": {"ode": 0.7, "dae": {"10": 0.704, "5": 0.701, "2.5": 0.70025, "1": 0.70004}},
        "trajectory:references": {
            "t": [0.0, 1.0], "cct": {"ode": 0.68, "dae": 0.68},
            **{name: {"delta": [[0.0] * 6, [0.1] * 6], "omega": [[1.0] * 6] * 2} for name in ("ode", "dae")},
        },
        "trajectory:learned": {"delta": [[0.0] * 6, [0.2] * 6], "omega": [[1.0] * 6] * 2, "cct": 0.67},
    }  # fmt: skip
    return made[function]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_our_number_when_its_work_is_done(name, tmp_path):
    benchmark = load_benchmark(name)
    setting = Setting(BUDGETS["quick"], (0, 1))
    results = {each: fake_result(each) for each in benchmark.tasks(setting)}
    for each in list(results):
        if each.training is not None:
            results[each.training] = {"parameters": 1000, "metrics": METRICS}
    shown = benchmark.present(setting, Findings(results, {}))
    for table in shown.tables:
        for row in table.rows:
            unmeasured = "CUDA" in row.label or "ANDES" in row.label
            assert unmeasured or any(c.ours is not None for c in row.cells), row
    labels = [(n.table_name, n.row_label, n.quantity) for n in presented_numbers(shown)]
    assert len(labels) == len(set(labels))  # or one would hide the other in the registry
    section = write_section(tmp_path, benchmark, shown, circumstances(setting))
    assert read_sections(tmp_path) == [section]
    assert all((tmp_path / figure.file).stat().st_size > 1000 for figure in section.figures)


@pytest.fixture
def quick_work(monkeypatch):
    """Trainings and measurements that take no time: what was asked for, and how often; one may be made to go wrong."""
    calls, trouble = [], {}

    def happens(key):
        calls.append(key)
        if len(calls) in trouble:
            raise trouble.pop(len(calls))

    def train(training, home, registry):
        happens(json.dumps(training, sort_keys=True))
        return {"parameters": 1000, "metrics": METRICS}

    def measure(function, options, home, registry, kept, training=None):
        happens(json.dumps([function, options, training], sort_keys=True))
        return fake_result(
            Task(function, None if training is None else jobs._training(training), tuple(options.items()))
        )

    monkeypatch.setattr(jobs, "train", train)
    monkeypatch.setattr(jobs, "measure", measure)
    for writer in ("zoo.paper.sections", "zoo.paper.numbers"):
        monkeypatch.setattr(f"{writer}.save_figure", lambda figure, path: path.write_bytes(b"drawn by other tests"))
    monkeypatch.setattr("zoo.paper.run.trained_elsewhere", lambda trainings, place: [])  # nothing is in a registry
    return calls, trouble


def test_trainings_are_done_seed_by_seed_so_that_an_interrupted_run_has_whole_seeds(quick_work, tmp_path):
    calls, _ = quick_work
    command = ["benchmark", "case30-accuracy", "--seeds", "3", "--jobs", "1", "--no-mlflow", "--home", str(tmp_path)]
    assert CliRunner().invoke(cli.zoo, [*command, "--output", str(tmp_path / "report")]).exit_code == 0
    trained = [call["seed"] for call in map(json.loads, calls) if isinstance(call, dict)]
    measured = [call[2]["seed"] for call in map(json.loads, calls) if isinstance(call, list) and call[2]]
    for seeds in (trained, measured):
        assert seeds == sorted(seeds) and set(seeds) == {0, 1, 2}


def test_a_section_is_not_replaced_by_one_of_fewer_results_that_were_not_found_now(quick_work, tmp_path):
    command = ["benchmark", "rollouts", "--jobs", "1", "--no-mlflow", "--home", str(tmp_path / "home"), "--json"]
    there, elsewhere = (["--output", str(tmp_path / name)] for name in ("report", "other"))
    assert CliRunner().invoke(cli.zoo, [*command, *there]).exit_code == 0
    (before,) = read_sections(tmp_path / "report")
    for path in list((tmp_path / "home" / "benchmarks" / "results").glob("*.json"))[1:]:
        path.unlink()
    again = CliRunner().invoke(cli.zoo, [*command, *there, "--no-run"])
    assert again.exit_code == 0 and "left as it is" in again.stderr and json.loads(again.stdout)["entries"] == []
    assert read_sections(tmp_path / "report") == [before]
    other = CliRunner().invoke(cli.zoo, [*command, *elsewhere, "--no-run"])
    (entry,) = json.loads(other.stdout)["entries"]
    assert entry["missing"] == before.results - 1 > 0 and "pieces of work are missing" in other.stderr
    assert [section.results for section in read_sections(tmp_path / "other")] == [1]


def test_all_tables_with_five_seeds_run_unattended_past_a_failure_and_resume_where_they_were_interrupted(
    quick_work, tmp_path
):
    calls, trouble = quick_work
    command = [
        "benchmark", "all", "--budget", "standard", "--seeds", "5", "--jobs", "1", "--no-mlflow", "--json",
        "--home", str(tmp_path / "home"), "--output", str(tmp_path / "report"),
    ]  # fmt: skip
    trouble |= {5: SolverError("the swing equation could not be followed."), 400: KeyboardInterrupt()}
    interrupted = CliRunner().invoke(cli.zoo, command)
    assert interrupted.exit_code == 130 or isinstance(interrupted.exception, KeyboardInterrupt | SystemExit)
    assert len(calls) == 400, "it went on past the failure"
    again = CliRunner().invoke(cli.zoo, command)
    assert again.exit_code == 0, again.output
    twice = [call for call, times in Counter(calls).items() if times > 1]
    assert len(twice) == 2, "only the failed and the interrupted piece of work are done again"
    assert [section.name for section in read_sections(tmp_path / "report")] == list(NAMES)
    assert not any(section.failures for section in read_sections(tmp_path / "report"))
    count = len(calls)
    assert CliRunner().invoke(cli.zoo, command).exit_code == 0
    assert len(calls) == count, "nothing is left to do"
