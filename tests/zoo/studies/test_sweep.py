"""The data-fraction schedule: fair, resumable, one table and one figure."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from cli import zoo
from contingencies.errors import SolverError, UsageError, ZooError
from contingencies.library import load_contingency
from contingencies.operators import compile_contingency
from tests.espinn_moe.stand_ins import IntegratingSurrogate
from zoo.judging.unseen import unseen_errors
from zoo.studies import sweep
from zoo.studies.sweep import SweepPlan, judge, run_sweep
from zoo.studies.sweep_table import summarise, table_text
from zoo.work.executor import Serial

NAMES = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove")
CCT = {"mae": 1e-3, "p95": 2e-3, "maximum": 3e-3, "bias": 0.0, "finite": 20, "reference_finite": 23, "mismatches": 1}
NO_CCT = CCT | {"mae": None, "maximum": None, "finite": 0, "reference_finite": 0, "mismatches": 0}


@pytest.fixture(scope="module")
def members():
    return [load_contingency(name) for name in NAMES]


@pytest.fixture
def trainings(monkeypatch):
    """Every training asked for; the result says how large the errors of a member are."""
    asked = []

    def train(**arguments):
        asked.append(arguments)
        if arguments["request"]["seed"] == 99:
            raise SolverError("not this one.")
        totals = {"delta": 4.0, "omega": 1.0, "machines": 1, "samples": 4, "samples_decisive": 1, "scenarios": 1}
        cct = {NAMES[0]: NO_CCT, NAMES[1]: CCT}
        found = [json.loads(spec)["name"] for spec in arguments["specs"]]
        judged = [{"contingency": name, "trajectories": totals, "cct": cct[name]} for name in found]
        return {"parameters": 10, "training_s": 2.0, "steps": 5, "loss": 0.1, "members": judged}

    monkeypatch.setattr(sweep, "train_and_judge", train)
    return asked


def test_separate_models_share_the_time_of_the_one_model_and_see_the_same_scenarios(tmp_path, members, trainings):
    plan = SweepPlan(("moe", "separate"), (0.1, 1.0), (0, 1), minutes=3.0)
    rows, done = run_sweep(plan, members, Serial(), tmp_path)
    assert len(trainings) == len(done) == 2 * 2 * (1 + 2)
    requests = [training["request"] for training in trainings]
    assert {r["minutes"] for r in requests if r["model"] == "moe"} == {3.0}
    assert {r["minutes"] for r in requests if r["model"] == "es-pinn"} == {1.5}
    assert {(r["fraction"], r["seed"]) for r in requests if r["model"] == "es-pinn"} == {
        (r["fraction"], r["seed"]) for r in requests if r["model"] == "moe"
    }
    assert [(row.method, row.fraction, row.seed) for row in rows] == [
        (m, f, s) for m in ("moe", "separate") for f in (0.1, 1.0) for s in (0, 1)
    ]


def test_errors_are_pooled_over_members_and_censored_members_have_no_cct_error(tmp_path, members, trainings):
    plan = SweepPlan(("separate-chained",), (0.1,), (0,), steps=5)
    (row,), _ = run_sweep(plan, members, Serial(), tmp_path)
    assert row.rmse_delta == pytest.approx(1.0)
    assert row.rmse_omega == pytest.approx(0.5)
    assert row.cct_mae_ms == pytest.approx(1.0)
    assert (row.cct_max_ms, row.status_errors) == (3.0, 1)
    assert (row.parameters, row.training_s, row.steps) == (20, 4.0, 10)
    assert [training["request"]["focus"] for training in trainings] == [True, True]


def test_what_is_done_is_not_done_again_and_a_failure_is_tried_again(tmp_path, members, trainings):
    run_sweep(SweepPlan(("moe",), (0.1,), (0,), steps=1), members, Serial(), tmp_path)
    rows, done = run_sweep(SweepPlan(("moe",), (0.1, 0.2), (0, 99), steps=1), members, Serial(), tmp_path)
    assert len(trainings) == 4
    assert [(row.fraction, row.seed) for row in rows] == [(0.1, 0), (0.2, 0)]
    assert sorted(item.error is not None for item in done) == [False, False, True, True]
    run_sweep(SweepPlan(("moe",), (0.1, 0.2), (0, 99), steps=1), members, Serial(), tmp_path)
    assert len(trainings) == 6


def test_the_table_has_means_and_spreads_over_seeds(tmp_path, members, trainings):
    rows, _ = run_sweep(SweepPlan(("moe",), (0.1,), (0, 1, 2), steps=1), members, Serial(), tmp_path)
    (summary,) = summarise(rows)
    assert (summary.seeds, summary.cct_mae_ms, summary.cct_mae_ms_std) == (3, pytest.approx(1.0), 0.0)
    assert "1.0000 +- 0.0000" in table_text([summary])
    decisive = rows[0].rmse_delta_decisive, 1e4 * rows[0].rmse_omega_decisive
    assert f"{decisive[0]:.4f} {decisive[1]:.3f}" in table_text([summary])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"methods": ("deep",)}, "method 'deep'"),
        ({"fractions": (0.0,)}, "fraction 0.0"),
        ({"fractions": (0.1, 0.1)}, "every fraction once"),
        ({"seeds": ()}, "at least one"),
        ({"minutes": 1.0, "steps": 1}, "not both"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change, words):
    with pytest.raises(UsageError, match=words):
        SweepPlan(**({"methods": ("moe",), "fractions": (0.1,), "seeds": (0,)} | change))


def test_the_exact_surrogate_has_no_error():
    operators = compile_contingency(load_contingency("ieee9-mech-g2-restore"))
    exact = IntegratingSurrogate(operators)
    found = judge(exact, 0, unseen_errors(exact))
    assert found["trajectories"]["scenarios"] == 7600
    assert found["trajectories"]["delta"] < 1e-8
    assert found["cct"]["mae"] < 2e-6
    assert found["cct"]["mismatches"] == 0


def test_one_real_training_is_judged_and_leaves_no_state_behind(tmp_path, monkeypatch):
    few = np.linspace(0.0, 1.0, 5)
    grid = sweep_grid(few)
    monkeypatch.setattr("zoo.surrogates.datasets.evaluation_grid", grid)
    monkeypatch.setattr("zoo.judging.unseen.evaluation_grid", grid)
    plan = SweepPlan(("moe-chained",), (0.01,), (0,), steps=2)
    rows, done = run_sweep(plan, [load_contingency("ieee9-mech-g2-restore")], Serial(), tmp_path)
    assert [item.error for item in done] == [None]
    assert rows[0].steps == 2
    assert rows[0].rmse_delta > 0
    assert not list((tmp_path / sweep.HOME / "training").glob("*.safetensors"))


def sweep_grid(alpha):
    from zoo.surrogates.datasets import EvaluationGrid

    def grid(operators):
        t_c = np.linspace(*operators.window.t_c, 3)
        return EvaluationGrid(alpha, t_c, np.ones((len(alpha), 3), dtype=bool))

    return grid


def test_sweep_writes_one_table_and_one_figure(tmp_path, trainings):
    output = tmp_path / "out"
    arguments = ["sweep", "--fractions", "0.1,0.2", "--methods", "moe,separate", "--seeds", "2", "--minutes", "1",
                 "--jobs", "1", "--output", str(output), "--home", str(tmp_path / "home"),
                 *(word for name in NAMES for word in ("--contingency", name))]  # fmt: skip
    result = CliRunner().invoke(zoo, arguments, catch_exceptions=False, standalone_mode=False)
    assert "separate" in result.stdout
    with open(output / "sweep.csv") as file:
        assert len(list(csv.DictReader(file))) == 8
    assert len(json.loads((output / "sweep.json").read_text())["rows"]) == 8
    assert (output / "sweep.png").stat().st_size > 1000
    assert "CCT MAE" in (output / "sweep.txt").read_text()
    mistakes = [
        ["--fractions", "much"],
        ["--methods", "moe,,"],
        ["--contingency", "nowhere"],
        ["--fractions", "0.00001"],
    ]
    for wrong in mistakes:
        error = CliRunner().invoke(zoo, [*arguments, *wrong], standalone_mode=False).exception
        assert isinstance(error, ZooError)
