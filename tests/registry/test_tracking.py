"""Tracking: the spool never waits, MLflow gets every record once, a dead server costs one warning."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from contingencies.errors import UsageError
from registry.spool import RunSpool, read_records, spooled_runs
from registry.store import runs
from registry.tracking import safe_uri, sync_runs, tracking_uri, ui_command
from tests.registry.makers import Zoo, contingency


@pytest.fixture(autouse=True)
def _own_store(monkeypatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_a_spool_holds_what_was_recorded_in_order(tmp_path: Path) -> None:
    spool = RunSpool(tmp_path, "demo")
    spool.params({"width": 64})
    spool.metrics({"loss": 0.5, "bad": float("nan")}, step=3)
    spool.finish("FAILED")
    records, _ = read_records(tmp_path, spool.uid, 0)
    assert [r["kind"] for r in records] == ["start", "params", "metrics", "end"]
    assert records[2]["values"] == {"loss": 0.5} and records[2]["step"] == 3
    assert spooled_runs(tmp_path) == [spool.uid]


def test_a_line_cut_short_by_a_crash_is_waited_for(tmp_path: Path) -> None:
    spool = RunSpool(tmp_path, "demo")
    with open(spool.path, "a") as file:
        file.write('{"kind": "metrics", "val')
    records, offset = read_records(tmp_path, spool.uid, 0)
    assert [r["kind"] for r in records] == ["start"]
    with open(spool.path, "a") as file:
        file.write('ues": {}, "step": 0}\n')
    assert [r["kind"] for r in read_records(tmp_path, spool.uid, offset)[0]] == ["metrics"]


def test_recording_a_thousand_metrics_takes_well_under_a_second(tmp_path: Path) -> None:
    spool = RunSpool(tmp_path, "demo")
    started = time.process_time()
    for step in range(1000):
        spool.metrics({"loss": 1.0, "mae": 2.0}, step)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("uid", ["../../x", "", "a" * 31, "A" * 32])
def test_a_uid_that_is_no_uid_never_becomes_a_path(tmp_path: Path, uid: str) -> None:
    with pytest.raises(UsageError):
        read_records(tmp_path, uid, 0)


def test_records_reach_mlflow_once_and_dead_runs_are_closed(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    zoo = Zoo(tmp_path, None)
    home = zoo.again()
    member = home.register([contingency()])[0].row.id
    options = {"config": {}, "seed": 0, "fraction": 1.0, "code_version": "1"}
    done_run = runs.start_run(home.database, "moe", "m", [(member, None)], **options)
    dead_run = runs.start_run(home.database, "moe", "m", [(member, None)], **options)
    done, dead = RunSpool(tmp_path, "done", uid=done_run.uid), RunSpool(tmp_path, "dead", uid=dead_run.uid)
    done.params({"width": 64})
    for step in range(1500):  # more than one batch
        done.metrics({"loss": 1.0 / (step + 1)}, step)
    dead.metrics({"loss": 3.0}, 0)

    from zoo.tracking import synchronise

    first = synchronise(tmp_path)
    assert first.warning is None and set(first.runs) == {done.uid, dead.uid}
    done.metrics({"loss": 0.0}, 1500)
    done.finish()
    runs.finish_run(home.database, done_run.id)
    assert synchronise(tmp_path, silent_for=timedelta(0)).records == 2
    assert synchronise(tmp_path).runs == {}
    home.close()

    client = MlflowClient(tracking_uri(tmp_path))
    finished = client.get_run(first.runs[done.uid])
    assert finished.info.status == "FINISHED" and finished.data.params == {"width": "64"}
    assert len(client.get_metric_history(finished.info.run_id, "loss")) == 1501
    assert client.get_run(first.runs[dead.uid]).info.status == "KILLED"
    home = zoo.again()
    assert runs.get_run(home.database, done_run.id).mlflow_run_id == first.runs[done.uid]
    assert runs.get_run(home.database, dead_run.id).status == "stale"
    home.close()

    # A replay that died after creating the run finds it again instead of making a second one.
    (tmp_path / "spool" / f"{dead.uid}.state").unlink()
    assert sync_runs(tmp_path).runs == {dead.uid: first.runs[dead.uid]}


def test_a_dead_server_costs_seconds_and_one_warning_and_loses_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:s3cr3t@127.0.0.1:9")
    for _ in range(5):
        RunSpool(tmp_path, "demo").finish()
    import mlflow  # noqa: F401 - its import is not what is timed

    started = time.monotonic()
    done = sync_runs(tmp_path)
    assert time.monotonic() - started < 20
    assert done.runs == {} and done.warning is not None
    assert "sync-runs" in done.warning and "s3cr3t" not in done.warning and "http://127.0.0.1:9" in done.warning
    assert all(len(read_records(tmp_path, uid, 0)[0]) == 2 for uid in spooled_runs(tmp_path))


def test_the_ui_runs_on_the_homes_store_without_job_runners_or_telemetry(tmp_path: Path) -> None:
    arguments, environment = ui_command(tmp_path, "127.0.0.1", 5001)
    assert f"sqlite:///{tmp_path / 'mlflow.db'}" in arguments and "5001" in arguments
    assert environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    with pytest.raises(UsageError):
        ui_command(tmp_path, "127.0.0.1", 99999)


def test_secrets_of_a_tracking_uri_are_not_shown() -> None:
    assert safe_uri("https://me:pw@host:8080/path?token=x") == "https://host:8080/path"
    assert safe_uri("sqlite:////a/b.db") == "sqlite:////a/b.db"


SYNC = """
import sys
from pathlib import Path
from registry.tracking import sync_runs
sys.exit(sync_runs(Path(sys.argv[1])).warning)
"""


def test_processes_that_initialise_a_fresh_store_at_once_do_not_break_it(tmp_path: Path) -> None:
    uids = []
    for i in range(3):
        spool = RunSpool(tmp_path, f"run {i}")
        spool.metrics({"loss": 1.0})
        spool.finish()
        uids.append(spool.uid)
    environment = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    command = [sys.executable, "-c", SYNC, str(tmp_path)]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    errors = [child.communicate(timeout=300)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], errors
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri(tmp_path))
    experiment = client.get_experiment_by_name("cct-zoo")
    found = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags["cct_zoo.uid"] for run in found) == sorted(uids)
    assert {run.info.status for run in found} == {"FINISHED"}
