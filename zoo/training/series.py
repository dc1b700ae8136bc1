"""Training a family of contingencies: who belongs to it, and trainings that follow one another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from contingencies.errors import NotFoundError, UsageError
from espinn_moe.plan import Progress
from espinn_moe.surrogate import Surrogate
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from registry.store import contingencies as store
from registry.store import runs
from zoo.lookup import find_registered
from zoo.surrogates import checkpoints
from zoo.surrogates.budgets import plan_for
from zoo.surrogates.catalogue import entry_of
from zoo.training.session import Trained, TrainingRequest, train_surrogate
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
        if len(set(names)) != len(names):
            raise UsageError("a contingency is named twice; give each member once.")
        rows = [find_registered(home, name) for name in names]
        systems = {row.system_id: row.system.name for row in rows}
        if len(systems) > 1:
            raise UsageError(
                f"the members belong to different systems ({', '.join(systems.values())}); one model serves one system."
            )
        return rows
    rows = store.latest(home.database)
    if system is not None:
        rows = [row for row in rows if row.system.name == system]
    if not rows:
        whose = f" of system {system!r}" if system else ""
        raise NotFoundError(f"no contingency{whose} is registered; 'cct-zoo register-contingency' adds some.")
    present = {row.system_id: row.system.name for row in rows}
    if len(set(present.values())) > 1:
        raise UsageError(
            f"contingencies of several systems are registered ({', '.join(sorted(set(present.values())))}); "
            "say which with --system."
        )
    newest = max(present)  # a changed system file is another system; its latest version is meant
    return [row for row in rows if row.system_id == newest]


class DoneBefore:
    """Which trainings of a command that makes several are finished, kept until all are: it goes on where it stopped.

    Parameters
    ----------
    home : Home
    command : str
        The function that makes them.
    rows : sequence of ContingencyRecord
        The members.
    request : TrainingRequest
        What the command asks for.
    fractions : sequence of float
        Data fractions that it goes through.
    resume : bool
        Whether what an interrupted command finished counts.
    """

    def __init__(
        self,
        home: Home,
        command: str,
        rows: Sequence[ContingencyRecord],
        request: TrainingRequest,
        fractions: Sequence[float] = (),
        *,
        resume: bool = True,
    ) -> None:
        self._home, self._results = home, Results(home.path / FOLDER)
        asked = {
            "members": [row.sha256 for row in rows],
            "request": repr(request),
            "fractions": list(fractions),
            "version": checkpoints.code_version(),
        }
        self._job = Job(f"{__name__}:{command}", asked, {})
        if not resume:
            self.forget()
        self._finished: dict[str, int] = self._results.get(self._job.key) or {}

    def checkpoint(self, training: str) -> CheckpointRecord | None:
        """What a training of this name left, unless it is unfinished or its checkpoint is gone."""
        with suppress(NotFoundError):
            if training in self._finished:
                return runs.get_checkpoint(self._home.database, self._finished[training])
        return None

    def add(self, training: str, checkpoint_id: int) -> None:
        """A training is finished."""
        self._finished[training] = checkpoint_id
        self._results.put(self._job, self._finished)

    def forget(self) -> None:
        """All are finished: the same command starts anew."""
        self._results.path(self._job.key).unlink(missing_ok=True)


def train_through(
    home: Home,
    rows: Sequence[ContingencyRecord],
    request: TrainingRequest,
    fractions: Sequence[float],
    *,
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    measured: Callable[[int, int], None] | None = None,
) -> list[tuple[TrainingRequest, Trained | CheckpointRecord]]:
    """Train one model through growing data fractions, each stage from the weights of the last.

    The budget is shared equally by the stages. Every stage leaves a checkpoint whose parent is the last one's; stages
    that an interrupted command finished are not trained again, and given by their checkpoints.
    """
    minutes = request.minutes
    if len(fractions) > 1 and request.steps is None:
        total = plan_for(entry_of(request.model).form, len(rows), request.budget, minutes=minutes).minutes
        assert total is not None
        minutes = total / len(fractions)
    before = DoneBefore(home, "train_through", rows, request, fractions, resume=resume)
    stages: list[tuple[TrainingRequest, Trained | CheckpointRecord]] = []
    parent_id: int | None = None
    parent: Surrogate | None = None
    for fraction in fractions:
        stage = replace(request, fraction=fraction, minutes=minutes)
        finished = before.checkpoint(f"{fraction:g}")
        if finished is not None:
            content = home.load_checkpoint(finished)
            parent_id, parent = finished.id, checkpoints.from_bytes(content, home.contingency(rows[0])).surrogate
            stages.append((stage, finished))
            continue
        trained = train_surrogate(
            home, rows, stage, resume=resume, report=report, measured=measured, warm_start=parent, parent_id=parent_id
        )
        before.add(f"{fraction:g}", trained.checkpoint_id)
        parent_id, parent = trained.checkpoint_id, trained.surrogate
        stages.append((stage, trained))
    before.forget()
    return stages


def train_each(
    home: Home,
    rows: Sequence[ContingencyRecord],
    request: TrainingRequest,
    *,
    resume: bool = True,
    train: Callable[[ContingencyRecord], Trained],
) -> Iterator[tuple[ContingencyRecord, Trained | CheckpointRecord]]:
    """One model for each member, in order; those that an interrupted command finished are given by their checkpoints.

    Parameters
    ----------
    home, rows, request
        As for `train_surrogate`.
    resume : bool
        Whether what an interrupted command finished counts.
    train : callable
        Trains one member.
    """
    before = DoneBefore(home, "train_each", rows, request, resume=resume)
    for row in rows:
        finished = before.checkpoint(row.name)
        if finished is not None:
            yield row, finished
            continue
        trained = train(row)
        before.add(row.name, trained.checkpoint_id)
        yield row, trained
    before.forget()
