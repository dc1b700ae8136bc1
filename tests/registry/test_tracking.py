"""Tracking: the spool never waits, MLflow gets every record once, a dead server costs one warning."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contingencies.errors import UsageError
from registry.spool import RunSpool, read_records, run_file, spooled_runs
from registry.store import runs
from registry.tracking import CONNECT_S, safe_uri, sync_runs, tracking_uri, ui_command
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


def test_recording_metrics_appends_to_the_spool_and_reads_nothing_back(tmp_path: Path, monkeypatch) -> None:
    spool = RunSpool(tmp_path, "demo")
    monkeypatch.setattr("registry.spool.read_records", None)
    for step in range(1000):
        spool.metrics({"loss": 1.0, "mae": 2.0}, step)
    assert [json.loads(line)["kind"] for line in spool.path.read_text().splitlines()] == ["start", *["metrics"] * 1000]


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

    from registry.synchronising import synchronise

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


def with_figures(home: Path, *names: str) -> RunSpool:
    spool = RunSpool(home, "figures")
    for name in names:
        (home / "figures" / spool.uid).mkdir(parents=True, exist_ok=True)
        (home / "figures" / spool.uid / name).write_bytes(name.encode())
    spool.files([home / "figures" / spool.uid / name for name in names])
    spool.metrics({"loss": 1.0})
    spool.finish()
    return spool


def artifacts(home: Path, run_id: str) -> list[str]:
    from mlflow import MlflowClient

    return [each.path for each in MlflowClient(tracking_uri(home)).list_artifacts(run_id, "figures")]


def test_figures_reach_mlflow_and_one_that_is_gone_costs_a_warning(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    spool = with_figures(tmp_path, "boundary.png", "gone.png", "trajectory.svg")
    (tmp_path / "figures" / spool.uid / "gone.png").unlink()
    done = sync_runs(tmp_path)
    run_id = done.runs[spool.uid]
    assert done.warning is not None and "gone.png" in done.warning
    assert artifacts(tmp_path, run_id) == ["figures/boundary.png", "figures/trajectory.svg"]
    run = MlflowClient(tracking_uri(tmp_path)).get_run(run_id)
    assert run.info.status == "FINISHED" and run.data.metrics == {"loss": 1.0}
    assert sync_runs(tmp_path).runs == {}  # nothing is left, and nothing is asked for again

    (tmp_path / "spool" / f"{spool.uid}.state").unlink()  # a replay that died: the same again
    assert sync_runs(tmp_path).runs == {spool.uid: run_id}
    assert artifacts(tmp_path, run_id) == ["figures/boundary.png", "figures/trajectory.svg"]


def test_figures_that_are_refused_hold_up_no_numbers_and_are_sent_later(tmp_path: Path, monkeypatch) -> None:
    from mlflow import MlflowClient

    spools = [with_figures(tmp_path, "a.png", "b.png") for _ in range(3)]
    asked = []

    def refuse(self, run_id, path, folder):
        asked.append(Path(path).name)
        raise PermissionError("the bucket is closed")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifact", refuse)
        first = sync_runs(tmp_path)
    assert asked == ["a.png"]  # one refusal is enough
    assert first.warning is not None and "the bucket is closed" in first.warning
    client = MlflowClient(tracking_uri(tmp_path))
    assert {client.get_run(run_id).info.status for run_id in first.runs.values()} == {"FINISHED"}

    second = sync_runs(tmp_path)
    assert second.warning is None and second.records == 0 and second.runs == first.runs
    for spool in spools:
        assert artifacts(tmp_path, first.runs[spool.uid]) == ["figures/a.png", "figures/b.png"]
    assert sync_runs(tmp_path).runs == {}


@pytest.mark.parametrize("name", ["home/weights.pkl", "home/model.pt", "outside.png", "home/../outside.png"])
def test_a_run_keeps_plain_files_of_its_home_only(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    spool = RunSpool(home, "demo")
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match="plain files"):
        spool.files([tmp_path / name])
    assert run_file(home, name.removeprefix("home/")) is None
    assert run_file(home, str(tmp_path / name)) is None


@pytest.mark.parametrize("uri", ["http://user:s3cr3t@127.0.0.1:9", "postgresql://user:s3cr3t@192.0.2.1/mlflow"])
def test_a_dead_store_is_met_once_for_seconds_and_loses_nothing(tmp_path: Path, monkeypatch, uri: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setitem(sys.modules, "mlflow", None)  # its drivers, which try for minutes, are not reached
    tried = []

    def unreachable(address: tuple[str, int], timeout: float) -> None:
        tried.append((address, timeout))
        raise TimeoutError("timed out")

    monkeypatch.setattr("registry.tracking.socket.create_connection", unreachable)
    for _ in range(5):
        RunSpool(tmp_path, "demo").finish()
    done = sync_runs(tmp_path)
    assert tried == [((urlsplit(uri).hostname, urlsplit(uri).port or 5432), CONNECT_S)] and CONNECT_S <= 5
    assert done.runs == {} and done.warning is not None
    assert "sync-runs" in done.warning and "s3cr3t" not in done.warning and str(urlsplit(uri).hostname) in done.warning
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
from urllib.parse import urlsplit
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
