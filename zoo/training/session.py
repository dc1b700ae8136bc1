"""The one way to train: lock, run, heartbeat, diary, resume, checkpoint. Every command that trains uses a session.

A training is identified by everything that decides its result (physics, data, model, plan, code). Its unfinished state
lies under that identity in the home, so the same request after a crash resumes where it was, and a different one
never touches it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from contingencies.errors import ConflictError, UsageError
from espinn_moe.plan import Progress
from espinn_moe.state_file import tree_from_bytes
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import TrainingResult, train
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from zoo.judging.measuring import MemberMeasured, measure_members
from zoo.judging.metrics import cct_errors
from zoo.judging.unseen import Validation
from zoo.surrogates import checkpoints
from zoo.training.lock import only_process
from zoo.training.outcome import TooBriefError, Trained, training_metrics
from zoo.training.record import Record
from zoo.training.request import Parent, Prepared, TrainingRequest, prepare
from zoo.work.executor import Executor
from zoo.work.reporting import Report, Say, quiet, silent

FOLDER = "training"  # of the home: states of unfinished trainings
SUFFIX = ".safetensors"
COMPARING = "comparing with the reference ODE"
RESUMABLE = "The training is saved; the same command resumes it."


@dataclass(frozen=True, eq=False)
class Session:
    """Trainings in one home.

    Parameters
    ----------
    home : Home
        Where states, checkpoints and records go.
    resume : bool
        Whether an unfinished training of the same request is resumed.
    report : Report
        Hears how far a training is, about once a second.
    say : callable
        Hears that a training resumes, and from where, or that what other code left is not reused.
    executor : Executor, optional
        Where the members of a trained family are compared with the reference; default: in this process.
    """

    home: Home
    resume: bool = True
    report: Report = silent
    say: Say = quiet
    executor: Executor | None = None

    def train(
        self, rows: Sequence[ContingencyRecord], request: TrainingRequest, parent: Parent | None = None
    ) -> Trained:
        """Train a surrogate for registered contingencies and keep it as their newest checkpoint.

        Raises
        ------
        TrainingError
            When the loss is not finite.
        TooBriefError
            When the trained model has no finite CCT for any member although the reference has: the checkpoint is
            kept, but does not become the default.
        """
        names = [row.name for row in rows]
        if len(set(names)) != len(names):
            raise ConflictError("a contingency is named twice; give each member once.")
        if len({row.system_id for row in rows}) > 1:
            raise UsageError(f"{names[0]} and others belong to different systems; one model serves one system.")
        return self.run(rows, prepare(self.home.contingencies(rows), request, parent, self.report))

    def run(self, rows: Sequence[ContingencyRecord], prepared: Prepared) -> Trained:
        """Train what has been prepared; `rows` are all members of the model that is kept."""
        folder, learned = self.home.path / FOLDER, [rows[k] for k in prepared.learned]
        with only_process(folder, prepared.identity) as lock:
            state_path = lock.path.with_suffix(SUFFIX)
            resumed = self._find_state(prepared, state_path)
            record = Record(self.home, learned, prepared, lock, resumed)
            try:
                result = self._train(prepared, state_path, record)
                trained = self._keep(rows, prepared, result, record)
                _refuse_too_brief(trained)
            except BaseException as error:
                if isinstance(error, TooBriefError):  # it is finished, and its checkpoint stored
                    state_path.unlink(missing_ok=True)
                    record.note.unlink(missing_ok=True)
                record.fail(error)
                if isinstance(error, KeyboardInterrupt):
                    self.say(RESUMABLE)
                raise
            state_path.unlink(missing_ok=True)
            record.finish(trained)
            return trained

    def _find_state(self, prepared: Prepared, state_path: Path) -> bool:
        """Whether there is a state to resume; with `resume` off it is deleted instead."""
        if not self.resume:
            state_path.unlink(missing_ok=True)
        elif state_path.is_file():
            step = tree_from_bytes(state_path.read_bytes(), f"training state {str(state_path)!r}").get("step", 0)
            self.say(f"Resumes an interrupted training at step {step}.")
            return True
        elif any(state_path.parent.glob(f"{prepared.subject[:24]}*{SUFFIX}")):
            self.say("An interrupted training of this request was begun by other code and is not resumed.")
        return False

    def _train(self, prepared: Prepared, state_path: Path, record: Record) -> TrainingResult:
        def hear(progress: Progress) -> None:
            record.beat(progress)
            self.report("training", progress.done, 1, describe(progress))

        return train(
            prepared.surrogate, prepared.objective, prepared.plan, state_path=state_path, report=hear,
            validate=Validation(prepared.surrogate), identity=prepared.identity,
        )  # fmt: skip

    def _keep(
        self, rows: Sequence[ContingencyRecord], prepared: Prepared, result: TrainingResult, record: Record
    ) -> Trained:
        """Measure the model and store it."""
        surrogate = prepared.complete(prepared.surrogate.to("cpu").eval()).eval()
        found: dict[int, MemberMeasured] = {}
        self.report(COMPARING, 0, len(prepared.learned))
        for each in measure_members(surrogate, prepared.learned, self.executor):
            found[each.member] = each
            record.say_alive()
            self.report(COMPARING, len(found), len(prepared.learned))
        boundaries = {member: (found[member].learned, found[member].truth) for member in prepared.learned}
        certificates = {name: value for each in found.values() for name, value in each.certificate.items()}
        errors = [cct_errors(*pair) for pair in boundaries.values()]
        metrics = dict(prepared.parent.metrics) if prepared.parent else {}
        metrics |= training_metrics(errors, result) | certificates
        if len(prepared.learned) < len(rows):  # the errors are not those of the whole family
            metrics["measured_member"] = float(prepared.learned[0])
        record.lock.check()
        checkpoint = self._store(rows, prepared, surrogate, result, metrics, record.row.id)
        return Trained(record.row.id, checkpoint, surrogate, result, boundaries)

    def _store(
        self,
        rows: Sequence[ContingencyRecord],
        prepared: Prepared,
        surrogate: Surrogate,
        result: TrainingResult,
        metrics: dict[str, float],
        run_id: int,
    ) -> CheckpointRecord:
        request, parent = prepared.request, prepared.parent
        training = {
            "fraction": request.fraction, "seed": request.seed, "steps": result.steps, "elapsed_s": result.elapsed_s,
            "plan": asdict(prepared.plan), "datasets": [each.digest for each in prepared.scenarios],
            "balance": dict(prepared.balance),
        }  # fmt: skip
        if parent is not None:
            training["parent"] = parent.digest
        return self.home.add_checkpoint(
            checkpoints.to_bytes(request.model, surrogate, prepared.contingencies, training),
            surrogate.n_parameters,
            checkpoints.KIND,
            {row.id: k for k, row in enumerate(rows)},
            run_id=run_id,
            parent_id=None if parent is None else parent.checkpoint_id,
            metrics=metrics,
        )


def train_however_briefly(session: Session, rows: Sequence[ContingencyRecord], request: TrainingRequest) -> Trained:
    """Train, and take also a model without any finite CCT: comparisons measure it like the others."""
    try:
        return session.train(rows, request)
    except TooBriefError as error:
        return error.trained


def describe(progress: Progress) -> str:
    """Where a training stands, in a few words."""
    residuals = [value for name, value in progress.terms.items() if name.startswith(("residual", "shooting"))]
    residual = f"  residual {sum(residuals):.1e}" if residuals else ""
    checked = "" if progress.validation is None else f"  CCT error {1e3 * progress.validation:.3g} ms"
    return f"step {progress.step}  loss {progress.loss:.2e}{residual}{checked}"


def _refuse_too_brief(trained: Trained) -> None:
    expected = [error for error in trained.errors if error.reference_finite]
    if expected and not any(error.finite for error in expected):
        raise TooBriefError(trained)
