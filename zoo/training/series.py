"""Trainings that follow one another: through growing data fractions, or one for each member of a family.

A command that makes several trainings remembers those that are finished until all are, so that an interrupted one
resumes with the next.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from contingencies.errors import ConflictError, NotFoundError, UsageError
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from registry.store import contingencies as store
from registry.store import runs
from zoo.lookup import find_registered
from zoo.surrogates import checkpoints
from zoo.training.outcome import Trained
from zoo.training.request import Parent, TrainingRequest
from zoo.training.session import Session
from zoo.work.code import code_digest
from zoo.work.jobs import FOLDER, Job, Results


def members_of(home: Home, names: Sequence[str] = (), system: str | None = None) -> list[ContingencyRecord]:
    """The contingencies of a family, in order of name unless named.

    Parameters
    ----------
    home : Home
    names : sequence of str, optional
        Members by name; shipped ones are registered on the way.
    system : str, optional
        All registered contingencies of this system. With neither, those of the only system there is.
    """
    if names and system:
        raise UsageError("name either the members (--contingency) or their system (--system), not both.")
    if names:
        return _named_members(home, names)
    rows = store.latest(home.database)
    if system is not None:
        rows = [row for row in rows if row.system.name == system]
    if not rows:
        whose = f" of system {system!r}" if system else ""
        raise NotFoundError(f"no contingency{whose} is registered; 'cct-zoo register-contingency' adds some.")
    systems = {row.system_id: row.system.name for row in rows}
    if len(set(systems.values())) > 1:
        raise UsageError(
            f"contingencies of several systems are registered ({', '.join(sorted(set(systems.values())))}); "
            "say which with --system."
        )
    newest = max(systems)  # a changed system file is another system; its latest version is meant
    return [row for row in rows if row.system_id == newest]


def _named_members(home: Home, names: Sequence[str]) -> list[ContingencyRecord]:
    if len(set(names)) != len(names):
        raise ConflictError("a contingency is named twice; give each member once.")
    rows = [find_registered(home, name) for name in names]
    systems = {row.system_id: row.system.name for row in rows}
    if len(systems) > 1:
        raise UsageError(
            f"the members belong to different systems ({', '.join(systems.values())}); one model serves one system."
        )
    return rows


class Finished:
    """Remembers the finished trainings of a series, so that an interrupted command resumes with the next.

    Parameters
    ----------
    session : Session
    series : str
        The function that makes them.
    rows : sequence of ContingencyRecord
        The members.
    request : TrainingRequest
        What the command asks for.
    fractions : sequence of float
        Data fractions that it goes through.
    """

    def __init__(
        self,
        session: Session,
        series: str,
        rows: Sequence[ContingencyRecord],
        request: TrainingRequest,
        fractions: Sequence[float] = (),
    ) -> None:
        self._home, self._results = session.home, Results(session.home.path / FOLDER)
        inputs = {"members": [row.sha256 for row in rows], "request": repr(request), "fractions": list(fractions)}
        self._job = Job(f"{__name__}:{series}", inputs, code=code_digest())
        if not session.resume:
            self.forget()
        self._checkpoints: dict[str, int] = self._results.get(self._job) or {}
        if session.resume and not self._checkpoints and self._results.has_outdated(self._job):
            session.say("Trainings that an interrupted command finished were made by other code and are not reused.")

    def checkpoint(self, training: str) -> CheckpointRecord | None:
        """What a training of this name left, unless it is unfinished or its checkpoint is gone."""
        with suppress(NotFoundError):
            if training in self._checkpoints:
                return runs.get_checkpoint(self._home.database, self._checkpoints[training])
        return None

    def add(self, training: str, checkpoint_id: int) -> None:
        """A training is finished."""
        self._checkpoints[training] = checkpoint_id
        self._results.put(self._job, self._checkpoints)

    def forget(self) -> None:
        """All are finished: the same command starts anew."""
        self._results.forget(self._job)


def train_through(
    session: Session, rows: Sequence[ContingencyRecord], request: TrainingRequest, fractions: Sequence[float]
) -> list[tuple[TrainingRequest, Trained | CheckpointRecord]]:
    """Train one model through growing data fractions, each stage from the weights of the last.

    The budget is shared equally by the stages. Every stage leaves a checkpoint whose parent is the last one's; stages
    that an interrupted command finished are not trained again, and given by their checkpoints.
    """
    minutes = request.minutes
    if len(fractions) > 1 and request.steps is None:
        total = request.plan(len(rows)).minutes
        assert total is not None
        minutes = total / len(fractions)
    finished = Finished(session, "train_through", rows, request, fractions)
    stages: list[tuple[TrainingRequest, Trained | CheckpointRecord]] = []
    parent: Parent | None = None
    for fraction in fractions:
        stage = replace(request, fraction=fraction, minutes=minutes)
        checkpoint = finished.checkpoint(f"{fraction:g}")
        if checkpoint is not None:
            content = session.home.load_checkpoint(checkpoint)
            surrogate = checkpoints.from_bytes(content, session.home.contingency(rows[0])).surrogate
            stages.append((stage, checkpoint))
        else:
            trained = session.train(rows, stage, parent)
            checkpoint, surrogate = trained.checkpoint, trained.surrogate
            finished.add(f"{fraction:g}", checkpoint.id)
            stages.append((stage, trained))
        parent = Parent(checkpoint.id, checkpoint.digest, surrogate)
    finished.forget()
    return stages


def train_each(
    session: Session, rows: Sequence[ContingencyRecord], request: TrainingRequest
) -> Iterator[tuple[ContingencyRecord, Trained | CheckpointRecord]]:
    """One model for each member; those that an interrupted command finished are given by their checkpoints."""
    finished = Finished(session, "train_each", rows, request)
    for row in rows:
        checkpoint = finished.checkpoint(row.name)
        if checkpoint is not None:
            yield row, checkpoint
            continue
        trained = session.train([row], request)
        finished.add(row.name, trained.checkpoint.id)
        yield row, trained
    finished.forget()
