"""The one way to train: runs whose process was killed, homes that vanish, models without a CCT."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from contingencies.errors import ConflictError, IntegrityError, ZooError
from contingencies.library import load_contingency
from contingencies.stability import Boundary
from registry.home import Home
from registry.store import runs
from zoo.lookup import find_registered
from zoo.surrogates.budgets import PLANS
from zoo.training.outcome import TooBriefError
from zoo.training.record import Record
from zoo.training.request import Parent, TrainingRequest, prepare
from zoo.training.session import FOLDER, Session, train_however_briefly

NAME = "ieee9-mech-g2-restore"
REQUEST = TrainingRequest("es-pinn-chained", fraction=0.01, steps=6)
CENSORED = Boundary(np.array([0.5]), np.array([np.nan]), ("right-censored",), np.array([False]), "learned")
FINITE = Boundary(np.array([0.5]), np.array([0.7]), ("finite",), np.array([False]), "fast")


class Killed(BaseException):
    """As a process that is killed outright: nobody is left to close its run."""


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Boundaries are beside the point here; states are saved all the time."""
    monkeypatch.setattr("zoo.judging.measuring.unseen_boundaries", lambda surrogate, member: (CENSORED, CENSORED))
    monkeypatch.setattr("zoo.training.figures.MEMBERS_SHOWN", 0)
    monkeypatch.setattr("espinn_moe.train.SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr("espinn_moe.train.REPORT_INTERVAL_S", 0.0)
    for form, plan in PLANS.items():
        monkeypatch.setitem(PLANS, form, replace(plan, validations=1))


@pytest.fixture
def home(tmp_path):
    with Home.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def rows(home):
    return [find_registered(home, NAME)]


def killed_training(home, rows, monkeypatch):
    """A training whose process dies in the middle."""

    def die(stage, done, total, detail=""):
        if stage == "training" and done >= 0.5:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Record, "fail", lambda self, error: None)
        Session(home, report=die).train(rows, REQUEST)


def statuses(home):
    return [run.status for run in sorted(runs.runs(home.database), key=lambda run: run.id)]


def test_a_killed_training_is_resumed_in_its_own_run_and_says_from_where(home, rows, monkeypatch):
    killed_training(home, rows, monkeypatch)
    assert statuses(home) == ["running"]
    said = []
    Session(home, say=said.append).train(rows, REQUEST)
    assert statuses(home) == ["finished"]
    assert len(said) == 1 and said[0].startswith("Resumes an interrupted training at step ")


def test_the_run_of_a_killed_process_is_closed_when_its_training_starts_anew(home, rows, monkeypatch):
    killed_training(home, rows, monkeypatch)
    trained = Session(home, resume=False).train(rows, REQUEST)
    assert statuses(home) == ["failed", "finished"]
    (killed,) = [run for run in runs.runs(home.database) if run.id != trained.run_id]
    assert killed.error == f"its process was killed; run {trained.run_id} trained anew"


def test_an_interrupted_training_of_other_code_is_not_resumed_and_that_is_said(home, rows, monkeypatch):
    killed_training(home, rows, monkeypatch)
    monkeypatch.setattr("zoo.training.request.code_digest", lambda: "other-code")
    said = []
    Session(home, say=said.append).train(rows, REQUEST)
    assert said == ["An interrupted training of this request was begun by other code and is not resumed."]


def test_an_interrupted_training_says_that_the_same_command_resumes_it(home, rows):
    def interrupt(stage, done, total, detail=""):
        if stage == "training":
            raise KeyboardInterrupt

    said = []
    with pytest.raises(KeyboardInterrupt):
        Session(home, report=interrupt, say=said.append).train(rows, REQUEST)
    assert said == ["The training is saved; the same command resumes it."]
    (run,) = runs.runs(home.database)
    assert (run.status, run.error) == ("failed", "interrupted; the same command resumes it")


def test_a_home_that_vanishes_while_training_is_an_error(home, rows):
    def vanish(stage, done, total, detail=""):
        if stage == "training" and done >= 0.5 and home.path.exists():
            shutil.rmtree(home.path)

    with pytest.raises(ZooError, match="deleted or replaced while a training ran"):
        Session(home, report=vanish).train(rows, REQUEST)


def test_a_registry_that_is_replaced_while_training_is_an_error_at_the_next_heartbeat(home, rows, monkeypatch):
    monkeypatch.setattr("zoo.training.record.HEARTBEAT_S", 0.0)
    file, told = home.path / "registry.db", []

    def replace_it(stage, done, total, detail=""):
        if stage != "training":
            return
        told.append(done)
        copy = file.with_name("copy.db")
        shutil.copyfile(file, copy)
        copy.replace(file)

    with pytest.raises(IntegrityError, match="removed or replaced"):
        Session(home, report=replace_it).train(rows, REQUEST)
    assert len(told) == 1


def test_a_member_that_is_named_twice_is_a_conflict(home, rows):
    with pytest.raises(ConflictError, match="named twice"):
        Session(home).train([*rows, *rows], REQUEST)


def test_a_run_that_was_given_up_as_stale_stops(home, rows, monkeypatch):
    monkeypatch.setattr("zoo.training.record.HEARTBEAT_S", 0.0)

    def give_up(stage, done, total, detail=""):
        for run in runs.runs(home.database, "running"):
            runs.fail_run(home.database, run.id, "given up")

    with pytest.raises(ConflictError, match="given up as stale"):
        Session(home, report=give_up).train(rows, REQUEST)


def test_a_model_trained_too_briefly_is_carried_by_its_error(home, rows, monkeypatch):
    monkeypatch.setattr("zoo.judging.measuring.unseen_boundaries", lambda surrogate, member: (CENSORED, FINITE))
    with pytest.raises(TooBriefError) as caught:
        Session(home).train(rows, REQUEST)
    kept = runs.get_checkpoint(home.database, caught.value.trained.checkpoint.id)
    assert kept.digest == caught.value.trained.checkpoint.digest
    assert statuses(home) == ["failed"]
    assert not [path for path in (home.path / FOLDER).iterdir() if path.suffix != ".lock"], "nothing is left to resume"
    again = train_however_briefly(Session(home), rows, REQUEST)
    assert again.checkpoint.id != kept.id


def test_what_decides_a_result_is_fixed_when_it_is_prepared():
    contingency = load_contingency(NAME)
    prepared = prepare([contingency], REQUEST)
    with pytest.raises(TypeError):
        prepared.config["parent"] = 1
    child = prepare([contingency], REQUEST, Parent(1, "ab" * 32, prepared.surrogate))
    assert child.subject != prepared.subject
    assert prepare([contingency], REQUEST).identity == prepared.identity


def test_the_residual_is_part_of_what_decides_a_result():
    contingency = load_contingency(NAME)
    request = TrainingRequest("es-pinn", fraction=0.01, steps=6)
    default, paper = (prepare([contingency], replace(request, residual=residual)) for residual in (None, "pointwise"))
    assert (default.config["residual"], paper.config["residual"]) == ("shooting", "pointwise")
    assert default.plan.restart is not None
    assert paper.plan.restart is None
    assert default.subject != paper.subject
    assert default.subject == prepare([contingency], replace(request, residual="shooting")).subject


def test_a_killed_shooting_training_is_resumed_by_the_session(home, rows, monkeypatch):
    request = TrainingRequest("es-pinn", fraction=0.01, steps=6)

    def die(stage, done, total, detail=""):
        if stage == "training" and done >= 0.7:  # in its second stage
            raise Killed

    with pytest.raises(Killed):
        Session(home, report=die).train(rows, request)
    said = []
    trained = Session(home, say=said.append).train(rows, request)
    assert any("Resumes" in line for line in said)
    assert {"data", "shooting"} == set(trained.result.terms)
