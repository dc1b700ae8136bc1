"""A family over conditions from its description to its answers, by the commands that a user types; tiny throughout."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from cli import zoo
from contingencies.errors import UsageError
from espinn_moe.condition_head_fit import HeadBudget
from registry.query import Registry

NAME, OTHER, THIRD = "points-restore", "points-remove", "points-bus"
CONDITIONS = "conditions: {load: [0.9, 1.1], generation: {2: [30, 50]}}"
WINDOW = "window: {t_f: 0.2, T: 1.4, t_c: [0.25, 0.95]}\nseverity: [0.0, 1.0]"
FAULTS = {
    NAME: "fault: {kind: line, line: [3, 4], position: 0.5}\nclearing: {action: restore}",
    OTHER: "fault: {kind: line, line: [3, 4], position: 0.5}\nclearing: {action: remove-line}",
    THIRD: "fault: {kind: line, line: [2, 4], position: 0.5}\nclearing: {action: restore}",
}
TINY = HeadBudget(
    edge_points=24, edge_steps=120, root_points=60, root_steps=150, spread_points=70, spread_steps=30,
    calibration=140, looks=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with three registered families, one of them trained, distilled and deployed."""
    folder = tmp_path_factory.mktemp("points")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.surrogates.condition_data.OPERATING_POINTS", 8)
        patch.setattr("zoo.surrogates.condition_data.PER_AXIS", 4)
        patch.setattr("zoo.judging.unseen.POINTS", 6)
        patch.setattr("zoo.judging.unseen.LOOKS", 2)
        patch.setattr("zoo.judging.certificates.CERTIFIED_SEVERITIES", 1)
        patch.setattr("zoo.training.figures.MEMBERS_SHOWN", 0)
        patch.setattr("zoo.heads.condition_distill.BUDGET", TINY)
        patch.setattr("zoo.heads.condition_distill.BAND_POINTS", 8)
        for name, lines in FAULTS.items():
            (folder / f"{name}.yaml").write_text(f"name: {name}\nsystem: ieee30\n{lines}\n{WINDOW}\n{CONDITIONS}\n")
        run(folder, "register-contingency", *(str(folder / f"{name}.yaml") for name in FAULTS))
        run(folder, "train", "es-pinn-chained", NAME, "--steps", "20", "--no-mlflow")
        run(folder, "distill", NAME, "--source", "latest", "--strict", "2")
        run(folder, "deploy", NAME, "--reason", "first", "--max-mean-ms", "1000", "--max-ms", "1000", "--accept-worse")
        yield folder


def invoke(home, *arguments):
    return CliRunner().invoke(zoo, [*arguments, "--home", str(home / "home")], catch_exceptions=True)


def run(home, *arguments):
    done = invoke(home, *arguments)
    assert done.exit_code == 0, done.exception or done.output
    return done.stdout


def test_the_deployed_head_answers_at_a_point(home):
    answer = json.loads(run(home, "cct", NAME, "--alpha", "0.95", "--at", "load=1.08", "--json"))
    assert answer["status"] == "finite" and answer["at"] == {"load": 1.08, "generation.2": 40.0}
    with Registry.open(home / "home") as registry:
        asked = registry.cct(NAME, 0.95, load=1.08)
        assert asked.cct == answer["cct_s"] and asked.error_bound == answer["error_bound_s"]
        many = registry.cct(NAME, np.array([0.95, 0.95]), load=np.array([1.08, 1.2]))
        assert many.cct[0] == pytest.approx(asked.cct) and many.status.tolist() == ["finite", "out-of-domain"]


def test_a_range_of_a_condition_gives_one_row_for_each_value(home):
    text = run(
        home, "cct", NAME, "--alpha", "0.95", "--at", "load=0.9:1.1:0.05", "--at", "generation.2=35", "--csv", "-"
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["at_load"]) for row in rows] == pytest.approx([0.9, 0.95, 1.0, 1.05, 1.1])
    assert {row["at_generation.2"] for row in rows} == {"35.0"}
    one = json.loads(
        run(home, "cct", NAME, "--alpha", "0.95", "--at", "load=1.05", "--at", "generation.2=35", "--json")
    )
    assert one["status"] == rows[3]["status"]
    assert one["cct_s"] is None or one["cct_s"] == pytest.approx(float(rows[3]["cct_s"]))


def test_outside_its_domain_the_answer_names_the_domain(home):
    done = invoke(home, "cct", NAME, "--alpha", "0.9", "--at", "load=1.5")
    said = done.stdout
    assert (
        done.exit_code == 3
        and "out-of-domain" in said
        and "load 0.9 to 1.1" in said
        and "generation.2 30 to 50" in said
    )
    answer = json.loads(run(home, "cct", NAME, "--alpha", "0.9", "--at", "load=1.5", "--json"))
    assert answer["domain"] == {"alpha": [0.0, 1.0], "load": [0.9, 1.1], "generation.2": [30.0, 50.0]}
    assert answer["cct_s"] is None


def test_a_condition_that_there_is_not_is_answered_with_those_there_are(home):
    done = invoke(home, "cct", NAME, "--alpha", "0.9", "--at", "wind=1")
    assert isinstance(done.exception, UsageError) and "it has load, generation.2" in str(done.exception)


def test_the_registry_of_points_verifies_and_remembers(home):
    assert "0 files not referred to" in run(home, "verify")
    history = run(home, "history", NAME)
    assert all(word in history for word in ("register", "checkpoint", "distill", "deploy"))


def test_the_sensitivity_of_a_surrogate_names_every_condition(home):
    found = json.loads(
        run(home, "sensitivity", NAME, "--alpha", "0.95", "--at", "load=1.08", "--checkpoint", "1", "--json")
    )
    assert {row["condition"] for row in found["changes"]} == {"severity", "load", "generation.2"}


def test_a_condition_is_either_fixed_or_varied(home):
    done = invoke(home, "surface", NAME, "--alpha", "0.9", "--over", "load", "--at", "load=1.0")
    assert isinstance(done.exception, UsageError) and "both fixed by --at and varied" in str(done.exception)


def test_the_boundary_of_a_surrogate_moves_with_the_point(home):
    def shown(*at):
        asked = ("boundary", NAME, "--alpha", "0.95", "--checkpoint", "1", "--reference", "fast", *at, "--json")
        return json.loads(run(home, *asked))["rows"][0]

    heavy = shown("--at", "load=1.08")
    truth = json.loads(run(home, "reference-cct", NAME, "--alpha", "0.95", "--at", "load=1.08", "--json"))
    assert heavy["true_cct_s"] == pytest.approx(truth["cct_s"], abs=1e-6)
    found = json.loads(
        run(home, "sensitivity", NAME, "--alpha", "0.95", "--at", "load=1.08", "--checkpoint", "1", "--json")
    )
    assert heavy["cct_s"] == pytest.approx(found["cct_s"], abs=1e-5)
    assert abs(shown()["true_cct_s"] - heavy["true_cct_s"]) > 1e-3


def test_certificates_hold_at_a_point_too(home):
    asked = ("certify", NAME, "--alpha", "0.95", "--checkpoint", "1", "--reference", "fast", "--at", "load=1.08")
    row = json.loads(run(home, *asked, "--json"))["certificates"][0]
    assert abs(row["error"]) <= row["bound"]
    assert row["estimate"] == pytest.approx(row["error"], rel=0.2, abs=2e-5)


def test_a_family_over_conditions_is_trained_together_and_grows_by_an_expert(home):
    both = ("--contingency", NAME, "--contingency", OTHER)
    trained = json.loads(run(home, "train-moe", *both, "--steps", "3", "--no-mlflow", "--json"))
    number = str(trained["checkpoint"])
    grown = json.loads(run(home, "add-expert", number, THIRD, "--steps", "2", "--json"))
    slopes = [
        json.loads(run(home, "sensitivity", NAME, "--alpha", "0.95", "--at", "load=1.08", "--checkpoint", n, "--json"))
        for n in (number, str(grown["checkpoint"]))
    ]
    assert slopes[0]["changes"] == slopes[1]["changes"]  # the other members answer as before
    run(home, "train-separate", *both, "--steps", "2", "--no-mlflow")


def test_the_pipeline_deploys_heads_over_conditions(home):
    options = ("--steps", "10", "--strict", "2", "--max-mean-ms", "1000", "--max-ms", "1000", "--jobs", "1")
    run(home, "pipeline", THIRD, *options)
    answer = json.loads(run(home, "cct", THIRD, "--alpha", "1.0", "--at", "load=1.08", "--json"))
    assert answer["status"] == "right-censored"  # this fault is never lost, and has a head that says so


def test_a_one_shot_model_refuses_conditions_in_one_sentence(home):
    done = invoke(home, "train", "es-pinn", NAME, "--steps", "1", "--no-mlflow")
    assert isinstance(done.exception, UsageError) and "use es-pinn-chained or moe-chained" in str(done.exception)


def test_a_surface_is_the_same_whoever_draws_it_or_nearly(home):
    over = ("--alpha", "0.95", "--over", "load,generation.2", "--points", "3", "--json")
    true, learned, answered = (
        json.loads(run(home, "surface", NAME, *over, "--source", source)) for source in ("reference", "1", "head")
    )
    assert true["source"] == "fast ODE" and learned["source"] == "checkpoint 1" and len(true["points"]) == 9
    for a, b in zip(true["points"], answered["points"], strict=True):
        assert (a["load"], a["generation.2"]) == (b["load"], b["generation.2"])
        if a["cct_s"] is not None and b["cct_s"] is not None:
            assert abs(a["cct_s"] - b["cct_s"]) < 0.1  # tiny trainings are poor
    assert any(point["error_bound_s"] is not None for point in answered["points"])


def test_a_surface_beyond_the_studied_severities_says_so(home):
    asked = ("surface", NAME, "--over", "load", "--points", "2", "--alpha")
    assert "outside the studied severities 0 to 1" in run(home, *asked, "7")
    assert "outside" not in run(home, *asked, "0.9")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--over", "wind"), "it has load, generation.2"),
        (("--over", "load,load"), "two different ones"),
        (("--over", "load", "--source", "both"), "is not reference, head or the number"),
    ],
)
def test_a_surface_over_nothing_that_varies_is_refused(home, options, words):
    done = invoke(home, "surface", NAME, "--alpha", "0.9", *options)
    assert isinstance(done.exception, UsageError) and words in str(done.exception)
