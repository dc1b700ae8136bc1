"""One training from names to a checkpoint in the registry: data, model, loop, checkpoint, records.

A training is identified by everything that decides its result (physics, data, model, plan). Its
unfinished state lies under that identity in the home, so the same request after a crash continues
where it was, and a different one never touches it.
"""

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from contingencies.errors import ConflictError, UsageError, ZooError
from contingencies.files import write_atomically
from contingencies.library import Contingency
from contingencies.operators import compile_members
from contingencies.stability import Boundary
from espinn_moe.plan import Clock, Progress, TrainingPlan
from espinn_moe.state_file import tree_from_bytes
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import TrainingError, TrainingResult, train
from registry.home import Home
from registry.records import ContingencyRecord, RunRecord
from registry.spool import RunSpool
from registry.store import runs
from zoo.judging.certificates import member_certificate
from zoo.judging.metrics import CCTErrors, cct_errors
from zoo.judging.unseen import Validation, unseen_boundaries
from zoo.plots import FOLDER as FIGURES
from zoo.surrogates import checkpoints
from zoo.surrogates.budgets import plan_for
from zoo.surrogates.catalogue import create_model, entry_of, make_objective
from zoo.surrogates.datasets import ScenarioSet, training_set
from zoo.training.figures import save_training_figures

FOLDER = "training"  # of the home: states of unfinished trainings
HEARTBEAT_S = 15.0
RECORD_S = 5.0  # between points of the curves in the run's diary


class TooBriefError(TrainingError):
    """A finished training whose model knows no boundary; its checkpoint is kept."""


@dataclass(frozen=True)
class TrainingRequest:
    """What is asked for; the defaults are those of the command line."""

    model: str
    fraction: float = 1.0
    seed: int = 0
    budget: str = "standard"
    minutes: float | None = None
    steps: int | None = None
    clock: Clock = "wall"
    focus: bool = True
    dtype: str | None = None  # the model's own default
    settings: dict[str, Any] | None = None  # further builder arguments


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of a training."""

    run_id: int
    checkpoint_id: int
    surrogate: Surrogate
    result: TrainingResult
    errors: tuple[CCTErrors, ...]  # one per member, on unseen severities
    boundaries: tuple[tuple[Boundary, Boundary], ...]  # learned and reference, likewise
    parameters: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that decides a training's result."""

    request: TrainingRequest
    contingencies: tuple[Contingency, ...]
    scenarios: tuple[ScenarioSet, ...]
    surrogate: Surrogate
    plan: TrainingPlan
    config: dict[str, Any]

    @property
    def identity(self) -> str:
        """SHA-256 over physics, data, model and plan."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()


def prepare(contingencies: Sequence[Contingency], request: TrainingRequest) -> Prepared:
    """Simulate the data and build the untrained model; every bad request is refused here, before any time is spent."""
    entry = entry_of(request.model)
    if not entry.family and len(contingencies) > 1:
        raise UsageError(
            f"{request.model} learns one contingency, not {len(contingencies)}; use train-moe for a family, "
            "or train them one by one."
        )
    plan = plan_for(
        entry.form, len(contingencies), request.budget,
        minutes=request.minutes, steps=request.steps, seed=request.seed, clock=request.clock,
    )  # fmt: skip
    members = compile_members(contingencies)
    scenarios = tuple(training_set(operators, request.fraction, request.seed) for operators in members)
    settings = dict(request.settings or {})
    if request.dtype is not None:
        settings["dtype"] = request.dtype
    surrogate = create_model(request.model, members, seed=request.seed, **settings)
    surrogate.calibrate(scenarios)
    config = {
        "model": request.model,
        "settings": surrogate.settings(),
        "contingencies": [c.sha256 for c in contingencies],
        "datasets": [s.digest for s in scenarios],
        "fraction": request.fraction,
        "seed": request.seed,
        "budget": request.budget,
        "focus": request.focus,
        "plan": asdict(plan),
        "code_version": checkpoints.code_version(),
    }
    return Prepared(request, tuple(contingencies), scenarios, surrogate, plan, config)


def train_surrogate(
    home: Home,
    rows: Sequence[ContingencyRecord],
    request: TrainingRequest,
    *,
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    measured: Callable[[int, int], None] | None = None,
    warm_start: Surrogate | None = None,
    parent_id: int | None = None,
) -> Trained:
    """Train a surrogate for registered contingencies and keep it as their newest checkpoint.

    Parameters
    ----------
    home : Home
        Where states, checkpoint and records go.
    rows : sequence of ContingencyRecord
        The members, in order.
    request : TrainingRequest
    resume : bool
        Whether an unfinished training of the same request is continued.
    report : callable, optional
        Told the progress about once a second.
    measured : callable, optional
        Told how many of the members have been compared with the reference after the training.
    warm_start : Surrogate, optional
        A trained model of the same shape to begin from; `parent_id` is its checkpoint.

    Raises
    ------
    TrainingError
        When the loss is not finite, or when the trained model has no finite CCT for any member although
        the reference has: the checkpoint is kept, but does not become the default.
    """
    names = [row.name for row in rows]
    if len(set(names)) != len(names):
        raise UsageError("a contingency is named twice; give each member once.")
    if len({row.system_id for row in rows}) > 1:
        raise UsageError(f"{names[0]} and others belong to different systems; one model serves one system.")
    prepared = prepare([home.contingency(row) for row in rows], request)
    if warm_start is not None:
        prepared.surrogate.load_state_dict(warm_start.state_dict())
        prepared.config["parent"] = parent_id
    folder = home.path / FOLDER
    state_path = folder / f"{prepared.identity[:24]}.safetensors"
    with _only_process(folder, state_path.stem):
        if not resume:
            state_path.unlink(missing_ok=True)
        record = _Record(home, rows, prepared, state_path)
        try:
            result, balance = _train(prepared, state_path, record, report)
            trained = _keep(home, rows, prepared, result, balance, record, measured, parent_id)
        except BaseException as error:
            if isinstance(error, TooBriefError):  # it is finished, and its checkpoint stored
                state_path.unlink(missing_ok=True)
                record.note.unlink(missing_ok=True)
            record.fail(error)
            raise
        state_path.unlink(missing_ok=True)
        record.finish(trained)
        return trained


def _train(
    prepared: Prepared, state_path: Path, record: "_Record", report: Callable[[Progress], None] | None
) -> tuple[TrainingResult, dict[str, Any]]:
    """Train, and say how the loss terms were scaled and weighed."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    surrogate = prepared.surrogate.to(device)
    objective = make_objective(prepared.request.model, surrogate, prepared.scenarios, focus=prepared.request.focus)
    balance = {"weights": dict(objective.weights), "scales": getattr(objective, "scales", {})}
    record.spool.params(_flat(balance))

    def tell(progress: Progress) -> None:
        record.beat(progress)
        if report is not None:
            report(progress)

    result = train(
        surrogate, objective, prepared.plan,
        state_path=state_path, report=tell, validate=Validation(surrogate), identity=prepared.identity,
    )  # fmt: skip
    return result, balance


def _keep(
    home: Home,
    rows: Sequence[ContingencyRecord],
    prepared: Prepared,
    result: TrainingResult,
    balance: dict[str, Any],
    record: "_Record",
    measured: Callable[[int, int], None] | None,
    parent_id: int | None,
) -> Trained:
    surrogate, run = prepared.surrogate.to("cpu").eval(), record.row
    found, certified = [], dict[str, float]()
    for member in range(len(rows)):
        found.append(unseen_boundaries(surrogate, member))
        certified |= member_certificate(surrogate, found[-1][0], member)
        record.say_alive()
        if measured is not None:
            measured(member + 1, len(rows))
    boundaries = tuple(found)
    errors = tuple(cct_errors(*pair) for pair in boundaries)
    content = checkpoints.to_bytes(
        prepared.request.model,
        surrogate,
        prepared.contingencies,
        {"fraction": prepared.request.fraction, "seed": prepared.request.seed, "steps": result.steps,
         "elapsed_s": result.elapsed_s, "plan": asdict(prepared.plan),
         "datasets": [s.digest for s in prepared.scenarios], "balance": balance},
    )  # fmt: skip
    checkpoint = home.add_checkpoint(
        content,
        surrogate.n_parameters,
        checkpoints.KIND,
        {row.id: k for k, row in enumerate(rows)},
        run_id=run.id,
        parent_id=parent_id,
        metrics=_metrics(errors, result) | certified,
    )
    expected = [error for error in errors if error.reference_finite]
    if expected and not any(error.finite for error in expected):
        raise TooBriefError(
            f"the trained model has no finite CCT although the reference has: it was trained too briefly "
            f"({result.elapsed_s:.0f} s); it is kept as checkpoint {checkpoint.id}, "
            "train again with a larger --budget or more --minutes."
        )
    return Trained(run.id, checkpoint.id, surrogate, result, errors, boundaries, surrogate.n_parameters)


def _metrics(errors: Sequence[CCTErrors], result: TrainingResult) -> dict[str, float]:
    measured = [(e.mae, e.maximum) for e in errors if e.mae is not None and e.maximum is not None]
    metrics = {"loss": result.loss, "train_s": result.used_s, "steps": float(result.steps)}
    if measured:
        metrics["cct_mae_ms"] = 1e3 * sum(mae for mae, _ in measured) / len(measured)
        metrics["cct_max_ms"] = 1e3 * max(largest for _, largest in measured)
    metrics["status_errors"] = float(sum(e.mismatches for e in errors))
    return metrics


class _Record:
    """The run in the registry and in the diary; a killed process's run is taken up again."""

    def __init__(self, home: Home, rows: Sequence[ContingencyRecord], prepared: Prepared, state_path: Path) -> None:
        self.home = home
        self.note = state_path.with_suffix(".json")  # which run an unfinished state belongs to
        request = prepared.request
        row = self._unfinished(state_path)
        if row is None:
            datasets = [
                runs.add_dataset(home.database, r.id, s.digest, s.description, s.fraction, s.seed).id
                for r, s in zip(rows, prepared.scenarios, strict=True)
            ]
            mode = "moe" if entry_of(request.model).family else entry_of(request.model).mode
            members = [(r.id, d) for r, d in zip(rows, datasets, strict=True)]
            row = runs.start_run(
                home.database, mode, request.model, members, config=prepared.config, seed=request.seed,
                fraction=request.fraction, code_version=checkpoints.code_version(),
            )  # fmt: skip
            write_atomically(self.note, json.dumps({"run": row.id}).encode())
        self.row = row
        self.spool = RunSpool(home.path, f"{request.model} {rows[0].name}", uid=row.uid)
        self.spool.params(_flat(prepared.config))
        self.spool.tags({"contingencies": ",".join(r.name for r in rows), "model": request.model})
        self.last_beat = self.last_point = 0.0

    def _unfinished(self, state_path: Path) -> RunRecord | None:
        """The run that a kill left open, when its state is there to be continued."""
        if not (state_path.is_file() and self.note.is_file()):
            return None
        row = runs.get_run(self.home.database, json.loads(self.note.read_text())["run"])
        return row if runs.heartbeat(self.home.database, row.id) else None

    def beat(self, progress: Progress) -> None:
        """Say that the run lives and note its curves; a registry or disk in trouble does not stop the training."""
        self.say_alive()
        now = time.monotonic()
        if now - self.last_point >= RECORD_S or progress.done >= 1.0:
            self.last_point = now
            values = {"loss": progress.loss, "learning_rate": progress.learning_rate, **progress.terms}
            if progress.validation is not None:
                values["validation_cct_ms"] = 1e3 * progress.validation
            with suppress(OSError):
                self.spool.metrics(values, progress.step)

    def say_alive(self) -> None:
        """Beat, unless that was done a moment ago; refused when the run has been given up meanwhile."""
        now, alive = time.monotonic(), True
        if now - self.last_beat >= HEARTBEAT_S:
            self.last_beat = now
            with suppress(ZooError):
                alive = runs.heartbeat(self.home.database, self.row.id)
        if not alive:
            raise ConflictError(
                f"run {self.row.id} was given up as stale while it trained; start it again, its state is kept."
            )

    def finish(self, trained: Trained) -> None:
        metrics = _metrics(trained.errors, trained.result)
        runs.finish_run(self.home.database, self.row.id, metrics)  # first: a figure that fails must not undo it
        self.note.unlink(missing_ok=True)
        figures = save_training_figures(self.home.path / FIGURES / self.row.uid, trained.surrogate, trained.boundaries)
        self.spool.metrics(metrics, trained.result.steps)
        self.spool.tags({"checkpoint": trained.checkpoint_id})
        self.spool.files(figures)
        self.spool.finish()

    def fail(self, error: BaseException) -> None:
        interrupted = isinstance(error, KeyboardInterrupt)
        text = "interrupted; the same command continues it" if interrupted else str(error) or type(error).__name__
        with suppress(OSError):
            self.spool.finish("KILLED" if interrupted else "FAILED")
        with suppress(ZooError):  # what went wrong first is what must be told
            runs.fail_run(self.home.database, self.row.id, text)


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Nested settings with dotted names, for the diary."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": v for inner, v in _flat(value).items()})
        else:
            flat[key] = value
    return flat


@contextmanager
def _only_process(folder: Path, name: str) -> Iterator[None]:
    """One process at a time on one training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / f"{name}.lock", "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{str(folder)!r} cannot be written ({error.strerror}); give another --home.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError("this very training already runs in another process; wait for it.") from None
        yield


def unfinished_step(home: Path, prepared: Prepared) -> int | None:
    """The step at which an interrupted training of this request would continue, if there is one."""
    path = home / FOLDER / f"{prepared.identity[:24]}.safetensors"
    return int(tree_from_bytes(path.read_bytes(), str(path))["step"]) if path.is_file() else None
