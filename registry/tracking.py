"""MLflow: the only module that imports it. It replays spools in batches and starts the UI.

MLflow is a diary beside the registry, never in the way: training writes to a spool
(`registry.spool`), and this module copies spools to MLflow when somebody asks. A server that
does not answer costs seconds and one warning, and the spool waits. The default store is a
SQLite file in the home, initialised once under a lock, because several processes that
initialise it at once break it for good.
"""

import contextlib
import hashlib
import os
import socket
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from contingencies.errors import UsageError, ZooError
from registry.spool import ReplayState, read_records, read_state, run_file, spooled_runs, write_state

STORE_FILE = "mlflow.db"
BATCH = 1000  # metrics per call, MLflow's limit
PARAMS_BATCH = 100
CONNECT_S = 3.0
DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
UID_TAG = "cct_zoo.uid"
QUIET = {  # set before mlflow is imported
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "GIT_PYTHON_REFRESH": "quiet",
}


@dataclass
class Synced:
    """What a replay did: MLflow's id for each run, how many records went over, and what went wrong."""

    runs: dict[str, str] = field(default_factory=dict)
    records: int = 0
    warning: str | None = None
    takes_files: bool = True  # False once its artifact store has refused one


def tracking_uri(home: Path) -> str:
    """`MLFLOW_TRACKING_URI`, else the SQLite store of the home."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(home / STORE_FILE).resolve()}"


def safe_uri(uri: str) -> str:
    """The tracking URI without user, password or query."""
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else parts.path


def sync_runs(home: Path, abandoned: Collection[str] = ()) -> Synced:
    """Replay every spool to MLflow, from where each was left; never raises for a dead server.

    Parameters
    ----------
    home : Path
        The zoo home.
    abandoned : uids
        Runs that will write no more although they did not end: they are closed as KILLED.

    Returns
    -------
    Synced
        With a warning, and the spools as they were, when MLflow could not be reached.
    """
    uri = tracking_uri(home)
    done = Synced()
    store = hashlib.sha256(uri.encode()).hexdigest()[:16] if "MLFLOW_TRACKING_URI" in os.environ else "home"
    waiting = [uid for uid in spooled_runs(home) if _has_news(home, uid, store, abandoned)]
    if not waiting:
        return done
    with _lock(home):  # one replay at a time, or two would write the same records
        failures = 0  # in a row: one may be the fault of a run, two are the server's
        client = None
        for uid in waiting:
            try:
                client = client or _client(uri, home)
                _replay(client, home, uid, store, uid in abandoned, done)
                failures = 0
            except Exception as error:  # MLflow and its transports raise many kinds; none may reach training
                done.warning = (
                    f"MLflow at {safe_uri(uri)} did not take the records ({_reason(error, uri)}); "
                    "they stay in the spool, 'cct-zoo sync-runs' sends them."
                )
                failures += 1
                if client is None or failures == 2:
                    break
    return done


def _reason(error: Exception, uri: str) -> str:
    text = " ".join(str(error).split())[:200].replace(uri, safe_uri(uri))
    for secret in (urlsplit(uri).password, urlsplit(uri).username):
        if secret:
            text = text.replace(secret, "***")
    return f"{type(error).__name__}: {text}"


def _has_news(home: Path, uid: str, store: str, abandoned: Collection[str]) -> bool:
    state = _state(home, uid, store)
    if state.files:
        return True
    if state.ended:
        return False
    return uid in abandoned or bool(read_records(home, uid, state.offset)[0])


def _state(home: Path, uid: str, store: str) -> ReplayState:
    state = read_state(home, uid)
    return state if state.store == store else ReplayState(store=store)


def _check_reachable(uri: str) -> None:
    """Fail within seconds where MLflow's drivers would try for minutes."""
    parts = urlsplit(uri)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme.partition("+")[0])
    if parts.hostname and port:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_S).close()


def _client(uri: str, home: Path) -> Any:
    _check_reachable(uri)
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    with contextlib.redirect_stdout(sys.stderr):  # migrations chatter; standard output belongs to commands
        import logging

        import mlflow

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.ERROR)
        home.mkdir(parents=True, exist_ok=True)
        return mlflow.MlflowClient(tracking_uri=uri)


def _replay(client: Any, home: Path, uid: str, store: str, abandoned: bool, done: Synced) -> None:
    state = _state(home, uid, store)
    records, offset = read_records(home, uid, state.offset)
    if state.mlflow_run_id is None:
        start = next((r for r in records if r.get("kind") == "start"), None)
        if start is None:
            return
        state = replace(state, mlflow_run_id=_run_id(client, home, uid, start))
        write_state(home, uid, state)
    run_id = str(state.mlflow_run_id)
    _send(client, run_id, records)
    ended = next((r for r in reversed(records) if r.get("kind") == "end"), None)
    if ended is not None:
        client.set_terminated(run_id, status=ended["status"], end_time=ended["at_ms"])
    elif abandoned and not state.ended:
        client.set_terminated(run_id, status="KILLED")
    noted = [str(name) for record in records if record["kind"] == "files" for name in record.get("paths", ())]
    state = replace(
        state,
        offset=offset,
        ended=state.ended or ended is not None or abandoned,
        files=tuple(dict.fromkeys((*state.files, *noted))),
    )
    write_state(home, uid, state)  # records are in; files may take their time
    if state.files:
        write_state(home, uid, replace(state, files=_send_files(client, run_id, home, state.files, done)))
    done.runs[uid] = run_id
    done.records += len(records)


def _run_id(client: Any, home: Path, uid: str, start: dict[str, Any]) -> str:
    """The MLflow run of a spool: found again if an earlier replay died after creating it."""
    name = str(start.get("experiment", "cct-zoo"))
    experiment = client.get_experiment_by_name(name)
    # A store of our own must not put folders where the command happened to be started.
    place = None if "MLFLOW_TRACKING_URI" in os.environ else (home / "mlflow-artifacts").resolve().as_uri()
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(name, place)
    found = client.search_runs([experiment_id], filter_string=f"tags.`{UID_TAG}` = '{uid}'", max_results=1)
    if found:
        return str(found[0].info.run_id)
    run = client.create_run(
        experiment_id, start_time=start["at_ms"], run_name=str(start.get("name", uid)), tags={UID_TAG: uid}
    )
    return str(run.info.run_id)


def _send(client: Any, run_id: str, records: list[dict[str, Any]]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    metrics, params, tags = [], {}, {}
    for record in records:
        values = record.get("values", {})
        if record["kind"] == "metrics":
            metrics += [Metric(k, v, record["at_ms"], record["step"]) for k, v in values.items()]
        elif record["kind"] == "params":
            params.update(values)
        elif record["kind"] == "tags":
            tags.update(values)
    settings, labels = [Param(k, v) for k, v in params.items()], [RunTag(k, v) for k, v in tags.items()]
    for begin in range(0, max(len(settings), len(labels)), PARAMS_BATCH):
        part = slice(begin, begin + PARAMS_BATCH)
        client.log_batch(run_id, params=settings[part], tags=labels[part])
    for begin in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[begin : begin + BATCH])


def _send_files(client: Any, run_id: str, home: Path, names: tuple[str, ...], done: Synced) -> tuple[str, ...]:
    """Send a run's files, each under the first folder of its place in the home; returns those to be tried again.

    A file sent twice is the same file. An artifact store may be broken while the tracking server is well: one
    refusal is enough for one replay, and no run's numbers wait for it.
    """
    for position, name in enumerate(names):
        if not done.takes_files:
            return names[position:]
        path = run_file(home, name)
        if path is None:
            done.warning = f"the file {name!r} of run {run_id} is no longer in the home; MLflow has the run without it."
            continue
        try:
            client.log_artifact(run_id, str(path), Path(name).parts[0] if "/" in name else None)
        except Exception as error:  # as many kinds as there are artifact stores
            done.takes_files = False
            done.warning = (
                f"MLflow did not take the file {name!r} ({_reason(error, tracking_uri(home))}); it stays in the home, "
                "'cct-zoo sync-runs' sends it."
            )
            return names[position:]
    return ()


@contextmanager
def _lock(home: Path) -> Iterator[None]:
    """One process at a time on the tracking store of a home."""
    import fcntl

    home.mkdir(parents=True, exist_ok=True)
    with open(home / "mlflow.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def initialise_store(home: Path) -> None:
    """Make the local store before workers or the UI touch it."""
    with _lock(home):
        try:
            _client(tracking_uri(home), home).search_experiments(max_results=1)
        except Exception as error:  # as in sync_runs, but here somebody waits for the store
            raise ZooError(
                f"MLflow at {safe_uri(tracking_uri(home))} cannot be used ({type(error).__name__}); "
                "check MLFLOW_TRACKING_URI."
            ) from None


def ui_command(home: Path, host: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of the MLflow UI on the home's store."""
    if not 0 < port < 65536:
        raise UsageError(f"port {port} is not between 1 and 65535.")
    arguments = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", tracking_uri(home)]
    arguments += ["--default-artifact-root", (home / "mlflow-artifacts").resolve().as_uri()]
    arguments += ["--host", host, "--port", str(port), "--workers", "1"]
    environment = {**os.environ, **QUIET, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    return arguments, environment
