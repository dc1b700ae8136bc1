"""The training commands, with budgets of seconds."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load

from cli import zoo
from contingencies.errors import ConflictError, NotFoundError, UsageError, ZooError
from espinn_moe.state_file import tree_from_bytes
from espinn_moe.train import TrainingError
from registry.home import Home
from registry.store import runs
from registry.upkeep import verify
from zoo.lookup import find_registered
from zoo.surrogates.budgets import PLANS, RESIDUALS, parse_schedule, plan_for
from zoo.surrogates.catalogue import residual_of
from zoo.surrogates.checkpoints import from_bytes
from zoo.surrogates.datasets import evaluation_grid
from zoo.training.lock import only_process
from zoo.training.record import Record
from zoo.training.request import TrainingRequest
from zoo.training.series import members_of
from zoo.training.session import Session, describe

torch.set_num_threads(1)
NAME = "ieee9-mech-g2-restore"
CHAINED = ["train", "es-pinn-chained", NAME, "--fraction", "0.1", "--no-mlflow", "--json"]
ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> dict:
    result = CliRunner(catch_exceptions=False).invoke(zoo, list(arguments), standalone_mode=False)
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


@pytest.fixture(scope="module", autouse=True)
def hasty():
    """Look at a model twice while it trains, judge it on five severities instead of fifty, certify one, draw none."""

    def sparse(operators):
        grid = evaluation_grid(operators)
        return replace(grid, alpha=grid.alpha[::10])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.judging.unseen.evaluation_grid", sparse)
        patch.setattr("zoo.judging.certificates.CERTIFIED_SEVERITIES", 1)
        patch.setattr("zoo.training.figures.MEMBERS_SHOWN", 0)
        for form, plan in PLANS.items():
            patch.setitem(PLANS, form, replace(plan, validations=2))
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, dict]:
    """A home with one chained model of the nine-bus contingency, and its figures."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.training.figures.MEMBERS_SHOWN", 1)
        return home, run(*CHAINED, "--steps", "120", "--home", str(home))


def test_training_stores_a_checkpoint_that_becomes_the_default(trained):
    home, made = trained
    with Home.open(home) as opened:
        row = find_registered(opened, NAME)
        checkpoint = runs.default_checkpoint(opened.database, row.id)
        assert checkpoint.id == made["checkpoint"]
        assert checkpoint.parameters == made["parameters"]
        record = runs.get_run(opened.database, made["run"])
    assert record.status == "finished"
    assert record.metrics["steps"] == 120
    assert record.config["fraction"] == 0.1
    assert made["members"][0]["finite"] > 0


def test_finished_training_leaves_a_diary_and_no_state(trained):
    home, _ = trained
    (spool,) = (home / "spool").glob("*.jsonl")
    records = [json.loads(line) for line in spool.read_text().splitlines()]
    kinds = [record["kind"] for record in records]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert {"params", "metrics", "tags"} <= set(kinds)
    assert not list((home / "training").glob("*.safetensors"))
    assert sorted(path.name for path in (home / "figures").rglob("*.png")) == [
        f"{NAME}-boundary.png",
        f"{NAME}-trajectory.png",
    ]
    (noted,) = [record["paths"] for record in records if record["kind"] == "files"]
    assert [Path(path).name for path in noted] == [f"{NAME}-boundary.png", f"{NAME}-trajectory.png"]
    assert all((home / path).is_file() for path in noted)


def weights(home: Path, checkpoint: int) -> dict[str, torch.Tensor]:
    with Home.open(home) as opened:
        return load(opened.load_checkpoint(runs.get_checkpoint(opened.database, checkpoint)))


def assert_same_weights(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_interrupted_command_ends_with_130_and_the_next_one_continues(tmp_path):
    command = [sys.executable, str(ROOT / "cli.py"), *CHAINED, "--steps", "40", "--home", str(tmp_path)]
    code = (
        "import os, signal, runpy, sys\n"
        "from dataclasses import replace\n"
        "from zoo.surrogates.budgets import PLANS\n"
        "PLANS.update({form: replace(plan, validations=2) for form, plan in PLANS.items()})\n"
        "import espinn_moe.train as loop\n"
        "original = loop._Run.descend\n"
        "def descend(self, done):\n"
        "    original(self, done)\n"
        "    if self.step == 20: os.kill(os.getpid(), signal.SIGINT)\n"
        "loop._Run.descend = descend\n"
        f"sys.argv = {command[1:]!r}\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert ended.returncode == 130, ended.stderr
    assert "the same command resumes it" in ended.stderr
    (state,) = (tmp_path / "training").glob("*.safetensors")
    assert tree_from_bytes(state.read_bytes())["step"] == 20
    with Home.open(tmp_path) as opened:
        assert [row.status for row in runs.runs(opened.database)] == ["failed"]

    seen: list[tuple] = []
    said: list[str] = []
    with Home.open(tmp_path) as opened:
        rows = [find_registered(opened, NAME)]
        request = TrainingRequest("es-pinn-chained", fraction=0.1, steps=40)
        try:
            Session(opened, report=lambda *heard: seen.append(heard), say=said.append).train(rows, request)
        except TrainingError as error:  # forty steps may be too few for a finite boundary
            assert "checkpoint" in str(error)
    assert min(done for stage, done, *_ in seen if stage == "training") > 0.5
    assert said == ["Resumes an interrupted training at step 20."]
    assert not list((tmp_path / "training").glob("*.json"))


def test_killed_training_goes_on_in_the_same_run_to_the_very_same_weights(trained, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def die(stage, done, total, detail="") -> None:
        if done > 0.5:
            raise Killed

    request = TrainingRequest("es-pinn-chained", fraction=0.1, steps=120)
    with Home.open(tmp_path) as opened:
        rows = [find_registered(opened, NAME)]
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(Record, "fail", lambda self, error: None)  # a killed process says nothing
            patch.setattr("espinn_moe.train.SAVE_INTERVAL_S", 0.1)
            patch.setattr("espinn_moe.train.REPORT_INTERVAL_S", 0.0)
            Session(opened, report=die).train(rows, request)
        resumed = Session(opened).train(rows, request)
        assert [row.status for row in runs.runs(opened.database)] == ["finished"]
    home, made = trained
    assert_same_weights(weights(tmp_path, resumed.checkpoint.id), weights(home, made["checkpoint"]))


HASTY = """
import sys
from dataclasses import replace
import cli, espinn_moe.train, zoo.judging.certificates, zoo.training.figures, zoo.judging.unseen
from zoo.surrogates.datasets import evaluation_grid
from zoo.surrogates.budgets import PLANS
espinn_moe.train.SAVE_INTERVAL_S = 0.1
zoo.judging.certificates.CERTIFIED_SEVERITIES, zoo.training.figures.MEMBERS_SHOWN = 1, 0
def sparse(operators):
    grid = evaluation_grid(operators)
    return replace(grid, alpha=grid.alpha[::10])
zoo.judging.unseen.evaluation_grid = sparse
PLANS.update({form: replace(plan, validations=2) for form, plan in PLANS.items()})
sys.exit(cli.main())
"""  # the command as the fixture `hasty` has it, with its state saved all the time


def saved_step(home: Path) -> int:
    """The step of an unfinished training's state on disk; 0 before there is one."""
    for state in (home / "training").glob("*.safetensors"):
        return int(tree_from_bytes(state.read_bytes())["step"])
    return 0


def test_process_killed_outright_is_continued_by_the_same_command_bit_for_bit(trained, tmp_path):
    command = [*CHAINED, "--steps", "120", "--home", str(tmp_path)]
    victim = subprocess.Popen(
        [sys.executable, "-c", HASTY, *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while saved_step(tmp_path) < 1 and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    victim.kill()
    assert victim.wait() == -signal.SIGKILL, "it had ended before it was killed"
    assert 1 <= saved_step(tmp_path) < 120
    with Home.open(tmp_path) as opened:
        assert [row.status for row in runs.runs(opened.database)] == ["running"]  # nobody was left to say otherwise
    made, (home, whole) = run(*command), trained
    assert_same_weights(weights(tmp_path, made["checkpoint"]), weights(home, whole["checkpoint"]))
    assert (made["loss"], made["members"]) == (whole["loss"], whole["members"])
    with Home.open(tmp_path) as opened:
        assert [row.status for row in runs.runs(opened.database)] == ["finished"]
        assert verify(opened).problems == []
    assert saved_step(tmp_path) == 0


def test_model_trained_too_briefly_is_kept_but_not_the_default(tmp_path):
    with Home.open(tmp_path) as opened:
        rows = [find_registered(opened, NAME)]
        with pytest.raises(TrainingError, match=r"no finite CCT .* checkpoint 1"):
            Session(opened).train(rows, TrainingRequest("vanilla-pinn", fraction=0.01, steps=1))
        assert runs.get_checkpoint(opened.database, 1).kind == "surrogate"
        with pytest.raises(NotFoundError, match="no finished checkpoint"):
            runs.default_checkpoint(opened.database, rows[0].id)
    assert not list((tmp_path / "training").glob("*.safetensors")), "nothing is left to be continued"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["train", "es-pin", NAME], NotFoundError, "catalogue"),
        (["train", "es-pinn", "nowhere"], NotFoundError, "not registered"),
        (["train", "vanilla-pinn", NAME, "--residual", "shooting"], UsageError, "no event states"),
        (["train", "es-pinn-chained", NAME, "--residual", "shooting"], UsageError, "does not apply"),
        (["train", "es-pinn", NAME, "--minutes", "-1"], UsageError, "minutes"),
        (["train", "es-pinn", NAME, "--minutes", "1", "--steps", "5"], UsageError, "either"),
        (["train-moe"], NotFoundError, "no contingency"),
        (["train-moe", "--contingency", NAME, "--contingency", NAME], ConflictError, "twice"),
        (["train-moe", "--contingency", NAME, "--system", "ieee9"], UsageError, "either"),
        (["train-moe", "--contingency", NAME, "--schedule", "0.5,0.1"], UsageError, "grow"),
        (["train-moe", "--contingency", NAME, "--model", "moe", "--share-topology"], UsageError, "moe-chained"),
        (["train-moe", "--contingency", NAME, "--fraction", "0.1", "--schedule", "0.1,0.5"], UsageError, "either"),
        (["train-separate", "--contingency", NAME, "--model", "moe-chained"], UsageError, "train-moe"),
        (["train-moe", "--contingency", NAME, "--contingency", "ieee30-bus-3-trip"], UsageError, "different systems"),
    ],
)
def test_bad_request_is_one_sentence(arguments, error, words, tmp_path):
    with pytest.raises(error, match=words) as caught:
        run(*arguments, "--no-mlflow", "--json", "--home", str(tmp_path))
    assert isinstance(caught.value, ZooError)
    assert "\n" not in str(caught.value)


def test_mixture_trains_through_growing_fractions_and_serves_every_member(tmp_path):
    members = ["ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"]
    made = run(
        "train-moe", "--contingency", members[0], "--contingency", members[1], "--schedule", "0.01,0.02",
        "--steps", "15", "--no-mlflow", "--json", "--home", str(tmp_path),
    )  # fmt: skip
    assert [stage["fraction"] for stage in made["stages"]] == [0.01, 0.02]
    assert [member["contingency"] for member in made["members"]] == members
    assert made["members"][0]["reference_finite"] == 0
    with Home.open(tmp_path) as opened:
        checkpoint = runs.get_checkpoint(opened.database, made["checkpoint"])
        assert checkpoint.parent_id == made["stages"][0]["checkpoint"]
        assert checkpoint.run is not None
        assert checkpoint.run.mode == "moe"
        for expert, name in enumerate(members):
            row = find_registered(opened, name)
            assert runs.default_checkpoint(opened.database, row.id).id == checkpoint.id
            loaded = from_bytes(opened.load_checkpoint(checkpoint), opened.contingency(row))
            assert loaded.member == expert


@pytest.mark.parametrize(
    "command",
    [
        ["train-moe", "--schedule", "0.01,0.02"],
        ["train-separate", "--fraction", "0.02"],
    ],
)
def test_interrupted_series_of_trainings_goes_on_with_the_unfinished_one(command, tmp_path, monkeypatch):
    members = ["ieee30-line-3-4-remove", "ieee30-line-3-4-restore"]
    named = [part for name in members for part in ("--contingency", name)]
    whole = [*command, *named, "--steps", "15", "--no-mlflow", "--json", "--home", str(tmp_path)]
    asked: list[tuple[tuple[str, ...], float]] = []

    train = Session.train

    def counted(self, rows, request, parent=None):
        asked.append((tuple(row.name for row in rows), request.fraction))
        if len(asked) in (2, 4):
            raise KeyboardInterrupt
        return train(self, rows, request, parent)

    monkeypatch.setattr(Session, "train", counted)
    interrupted = CliRunner().invoke(zoo, whole, standalone_mode=False)
    assert isinstance(interrupted.exception, KeyboardInterrupt | click.Abort)
    made = run(*whole)
    assert asked[2:] == asked[1:2], "only the second is trained"
    stages = made["stages"] if isinstance(made, dict) else made
    assert [bool(stage.get("done_before")) for stage in stages] == [True, False]
    with Home.open(tmp_path) as opened:
        ids = [stage["checkpoint"] for stage in stages]
        assert len(runs.runs(opened.database)) == len(set(ids)) == 2
        if command[0] == "train-moe":
            assert runs.get_checkpoint(opened.database, ids[1]).parent_id == ids[0]
    assert not list((tmp_path / "results").iterdir()), "nothing is left to go on with"
    CliRunner().invoke(zoo, whole, standalone_mode=False)
    assert asked[3:] == asked[:1], "a finished series starts anew"


def test_several_systems_ask_which(tmp_path):
    run("register-contingency", NAME, "ieee30-bus-3-trip", "ieee30-line-3-4-remove", "--json", "--home", str(tmp_path))
    with Home.open(tmp_path) as opened:
        with pytest.raises(UsageError, match="--system"):
            members_of(opened)
        assert [row.name for row in members_of(opened, system="ieee30")] == [
            "ieee30-bus-3-trip",
            "ieee30-line-3-4-remove",
        ]
        assert [row.name for row in members_of(opened, [NAME])] == [NAME]


def test_two_processes_do_not_train_the_same_thing(tmp_path):
    with (
        only_process(tmp_path, "x"),
        pytest.raises(ConflictError, match="another process"),
        only_process(tmp_path, "x"),
    ):
        pass


def test_models_lists_every_surrogate_with_its_size():
    models = run("models", "--json")
    listed = {row["model"]: row["parameters"] for row in models}
    assert listed["es-pinn"] == 118_744
    assert listed["vanilla-pinn"] == 136_494
    assert {"es-pinn-chained", "moe", "moe-chained"} <= listed.keys()
    residuals = {row["model"]: row["residuals"] for row in models}
    assert residuals["es-pinn"] == ["shooting", "pointwise"], "its own first"
    assert residuals["xpinn"] == ["pointwise", "shooting"]
    assert residuals["es-pinn-no-residual"] == residuals["es-pinn-chained"] == []
    for model, chosen in residuals.items():
        if chosen:
            assert residual_of(model) == chosen[0]
        for each in set(RESIDUALS) - set(chosen or RESIDUALS):
            with pytest.raises(UsageError, match="does not apply"):
                residual_of(model, each)


def test_progress_line_says_what_matters():
    from espinn_moe.plan import Progress

    line = describe(Progress(120, 0.25, 1e-4, {"data": 1e-4, "residual_delta": 2e-3}, 5e-5, 30.0, 90.0, 1e-3))
    assert "CCT error 0.05 ms" in line
    assert "residual 2.0e-03" in line
    assert "step 120" in line


def test_schedules_and_budgets():
    assert parse_schedule("0.1,0.5,1") == (0.1, 0.5, 1.0)
    with pytest.raises(UsageError):
        parse_schedule("a,b")
    with pytest.raises(UsageError, match="budget"):
        plan_for("chained", budget="endless")
    quick, standard = (plan_for("chained", budget=b).minutes for b in ("quick", "standard"))
    assert quick < standard <= 5.0
