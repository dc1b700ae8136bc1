"""Runs and checkpoints: statuses that mean what they say, lineage, and the default checkpoint."""

from datetime import timedelta

import pytest

from contingencies.errors import ConflictError, NotFoundError, UsageError
from registry.home import Home
from registry.records import RunRecord
from registry.schema import RunRow
from registry.store import runs
from registry.store.events import now
from tests.registry.makers import Zoo, contingency, head, measured


def start(home: Home, *contingencies: int, **options) -> RunRecord:
    settings = {"config": {"width": 64}, "seed": 1, "fraction": 0.2, "code_version": "1.0"} | options
    return runs.start_run(home.database, "moe", "es-pinn", [(c, None) for c in contingencies], **settings)


def registered(home: Home, name: str = "fault-a", position: float = 0.5) -> int:
    return home.register([contingency(name, position)])[0].row.id


def test_a_run_is_running_until_it_finishes_with_its_metrics(zoo: Zoo) -> None:
    home = zoo.again()
    run = start(home, registered(home))
    assert runs.heartbeat(home.database, run.id)
    assert [r.id for r in runs.runs(home.database, "running")] == [run.id]
    runs.finish_run(home.database, run.id, {"mae_ms": 0.02, "diverged": float("nan")})
    done = runs.get_run(home.database, run.id)
    assert done.status == "finished" and done.finished_at is not None
    assert done.metrics == {"mae_ms": 0.02, "diverged": None}
    assert [member.contingency_id for member in done.members] == [1]
    with pytest.raises(ConflictError, match="is finished"):
        runs.fail_run(home.database, run.id, "too late")


def test_a_failed_run_keeps_what_went_wrong(zoo: Zoo) -> None:
    home = zoo.again()
    run = start(home, registered(home))
    runs.fail_run(home.database, run.id, "loss is nan \x00" + "x" * 10_000)
    failed = runs.get_run(home.database, run.id)
    assert failed.status == "failed" and failed.error is not None and failed.error.startswith("loss is nan ")
    assert len(failed.error) <= runs.MAX_ERROR


def test_a_silent_run_becomes_stale_and_learns_that_it_was_given_up(zoo: Zoo) -> None:
    home = zoo.again()
    member = registered(home)
    silent, alive = start(home, member), start(home, member)
    with home.database.write() as session:
        session.get_one(RunRow, silent.id).heartbeat_at = now() - timedelta(minutes=20)
    assert [r.id for r in runs.mark_stale(home.database, timedelta(minutes=10))] == [silent.id]
    assert runs.mark_stale(home.database, timedelta(minutes=10)) == []
    assert not runs.heartbeat(home.database, silent.id)
    assert runs.heartbeat(home.database, alive.id)
    assert runs.get_run(home.database, silent.id).status == "stale"
    with pytest.raises(ConflictError):
        runs.finish_run(home.database, silent.id)


def test_runs_whose_processes_were_killed_are_closed_when_their_training_is_finished(zoo: Zoo) -> None:
    home = zoo.again()
    member = registered(home)
    killed, of_another_seed, alive = start(home, member), start(home, member, seed=2), start(home, member)
    with home.database.write() as session:
        for run in (killed, of_another_seed):
            session.get_one(RunRow, run.id).heartbeat_at = now() - timedelta(minutes=1)
    last = start(home, member)
    runs.heartbeat(home.database, alive.id)
    runs.finish_run(home.database, last.id)
    statuses = {run.id: run.status for run in runs.runs(home.database)}
    assert statuses == {killed.id: "stale", of_another_seed.id: "running", alive.id: "running", last.id: "finished"}
    assert f"run {last.id} finished" in str(runs.get_run(home.database, killed.id).error)


def test_runs_that_make_no_sense_are_refused(zoo: Zoo) -> None:
    home = zoo.again()
    member = registered(home)
    with pytest.raises(UsageError, match="run mode"):
        runs.start_run(home.database, "magic", "m", [(member, None)], config={}, seed=0, fraction=1, code_version="")
    with pytest.raises(UsageError, match="JSON"):
        start(home, member, config={"x": float("inf")})
    with pytest.raises(ConflictError):
        start(home, 999)
    with pytest.raises(NotFoundError):
        runs.get_run(home.database, 999)
    with pytest.raises(NotFoundError):
        runs.finish_run(home.database, 999)
    assert runs.runs(home.database) == []


def test_a_dataset_is_known_by_its_digest(zoo: Zoo) -> None:
    home = zoo.again()
    member = registered(home)
    first = runs.add_dataset(home.database, member, "a" * 64, {"alpha": 51, "t_c": 51}, 0.2, 7)
    assert runs.add_dataset(home.database, member, "a" * 64, {"alpha": 51}, 0.2, 7).id == first.id
    assert runs.add_dataset(home.database, member, "b" * 64, {"alpha": 51}, 0.5, 7).id != first.id
    run = runs.start_run(
        home.database, "separate", "m", [(member, first.id)], config={}, seed=0, fraction=0.2, code_version="1"
    )
    assert runs.get_run(home.database, run.id).members[0].dataset_id == first.id


def test_the_default_checkpoint_is_the_newest_of_a_finished_run(zoo: Zoo) -> None:
    home = zoo.again()
    a, b = registered(home, "fault-a"), registered(home, "fault-b", 0.3)
    with pytest.raises(NotFoundError, match="no finished checkpoint"):
        runs.default_checkpoint(home.database, a)
    finished, running = start(home, a, b), start(home, a)
    old = home.add_checkpoint(b"1", 10, "moe", {a: 0, b: 1}, run_id=finished.id)
    best = home.add_checkpoint(b"2", 10, "moe", {a: 0, b: 1}, run_id=finished.id, parent_id=old.id)
    home.add_checkpoint(b"3", 10, "moe", {a: 0}, run_id=running.id)
    with pytest.raises(NotFoundError):
        runs.default_checkpoint(home.database, a)
    runs.finish_run(home.database, finished.id)
    assert runs.default_checkpoint(home.database, a).id == best.id
    runs.finish_run(home.database, running.id)
    assert home.load_checkpoint(runs.default_checkpoint(home.database, a)) == b"3"
    assert {m.contingency_id: m.expert for m in runs.default_checkpoint(home.database, b).members} == {a: 0, b: 1}


def test_two_contingencies_cannot_share_an_expert_number_and_none_is_no_checkpoint(zoo: Zoo) -> None:
    home = zoo.again()
    a, b = registered(home, "fault-a"), registered(home, "fault-b", 0.3)
    with pytest.raises(ConflictError):
        home.add_checkpoint(b"1", 10, "moe", {a: 0, b: 0})
    with pytest.raises(UsageError):
        home.add_checkpoint(b"1", 10, "moe", {})


def test_a_head_of_a_surrogate_names_its_checkpoint_which_must_serve_the_contingency(zoo: Zoo) -> None:
    home = zoo.again()
    a, b = (home.register([contingency(n, p)])[0].row for n, p in (("fault-a", 0.5), ("fault-b", 0.3)))
    checkpoint = home.add_checkpoint(b"weights", 10, "moe", {a.id: 0})
    made = home.add_head(a, head(), measured(), checkpoint.id)
    assert made.source == "checkpoint" and made.checkpoint_id == checkpoint.id
    assert home.add_head(a, head(), measured()).id != made.id
    with pytest.raises(NotFoundError, match="no expert"):
        home.add_head(b, head(), measured(), checkpoint.id)


def test_mlflow_ids_are_kept_by_the_runs_uid(zoo: Zoo) -> None:
    home = zoo.again()
    run = start(home, registered(home), uid="f" * 32)
    assert runs.set_mlflow_run(home.database, "f" * 32, "abc")
    assert not runs.set_mlflow_run(home.database, "e" * 32, "abc")
    assert runs.get_run(home.database, run.id).mlflow_run_id == "abc"
