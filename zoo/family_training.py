"""Training a family of contingencies: who belongs to it, and one model through growing data fractions."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from contingencies.errors import NotFoundError, UsageError
from espinn_moe.train import Progress
from registry.home import Home
from registry.schema import ContingencyRow
from registry.store import contingencies as store
from zoo.catalogue import entry_of
from zoo.resolve import find_registered
from zoo.schedules import plan_for
from zoo.training import Trained, TrainingRequest, train_surrogate


def members_of(home: Home, names: Sequence[str] = (), system: str | None = None) -> list[ContingencyRow]:
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


def train_through(
    home: Home,
    rows: Sequence[ContingencyRow],
    request: TrainingRequest,
    fractions: Sequence[float],
    *,
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    measured: Callable[[int, int], None] | None = None,
) -> list[tuple[TrainingRequest, Trained]]:
    """Train one model through growing data fractions, each stage from the weights of the last.

    The budget is shared equally by the stages. Every stage leaves a checkpoint whose parent is the last one's.
    """
    minutes = request.minutes
    if len(fractions) > 1 and request.steps is None:
        total = plan_for(entry_of(request.model).form, len(rows), request.budget, minutes=minutes).minutes
        assert total is not None
        minutes = total / len(fractions)
    stages: list[tuple[TrainingRequest, Trained]] = []
    for fraction in fractions:
        stage = replace(request, fraction=fraction, minutes=minutes)
        previous = stages[-1][1] if stages else None
        trained = train_surrogate(
            home, rows, stage, resume=resume, report=report, measured=measured,
            warm_start=previous.surrogate if previous else None,
            parent_id=previous.checkpoint_id if previous else None,
        )  # fmt: skip
        stages.append((stage, trained))
    return stages
