"""Distilling a CCT head from Python."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.operators import PhaseOperators, compile_contingency
from espinn_moe.condition_head import AnyHead, ConditionHead
from espinn_moe.head import STATUSES
from registry.query import Registry
from registry.records import CheckpointRecord, HeadRecord
from registry.store.deployments import Gate
from zoo.facade.frames import to_frame
from zoo.facade.registries import opened
from zoo.heads import distill as distilling
from zoo.heads.distill import DEFAULT, HeadSettings
from zoo.heads.figures import plot_head
from zoo.lookup import find_checkpoint, find_registered
from zoo.work.reporting import Report, silent

CURVE_POINTS = 201  # severities of a head's table and figure


@dataclass(frozen=True, eq=False)
class DistilledHead:
    """A stored head with what was measured of it."""

    record: HeadRecord
    head: AnyHead
    operators: PhaseOperators
    checkpoint: CheckpointRecord | None  # that it was distilled from; None: the reference

    @property
    def id(self) -> int:
        """Number of the head, as `deploy(name, head=...)` takes it."""
        return self.record.id

    @property
    def error_bound(self) -> float | None:
        """95 % bound of the CCT error, s; None where it has no number to measure."""
        return self.record.error_bound_s

    @property
    def objections(self) -> list[str]:
        """Why the gate of `deploy` would refuse it; empty where it would not."""
        return Gate().objections(self.record)

    def to_frame(self) -> Any:
        """A pandas table of CCT over severity, at the case's own operating point."""
        alpha = np.linspace(*self.operators.severity, CURVE_POINTS)
        cct, code = self.head.answers(alpha)
        duration = cct - self.operators.window.t_f
        columns = zip(alpha, np.array(STATUSES)[code], cct, duration, strict=True)
        return to_frame({"alpha": a, "status": s, "cct_s": t, "duration_s": d} for a, s, t, d in columns)

    def plot(self) -> Any:
        """A matplotlib figure: the head's CCT over severity, and below its error where the strict ODE was asked."""
        points = [] if isinstance(self.head, ConditionHead) else self.record.errors["detail"].get("strict_points", [])
        strict = np.array([(alpha, cct) for alpha, cct, _ in points if cct is not None]).reshape(-1, 2)
        return plot_head(self.operators, self.head, strict)


def distill(
    name: str,
    source: str | int = "reference",
    settings: HeadSettings = DEFAULT,
    registry: Registry | None = None,
    report: Report = silent,
) -> DistilledHead:
    """Distill a CCT head of a contingency, measure its error and store it.

    Parameters
    ----------
    name : str
        A registered contingency, or a shipped one, which is registered on the way.
    source : "reference", "latest" or int
        The reference ODE, the newest checkpoint of `name`, or the number of a checkpoint.
    settings : HeadSettings
        Kind of head, and at how many severities the strict ODE is asked.
    registry : Registry, optional
        Default: the home of `CCT_ZOO_HOME`, else `.cct-zoo`, made when there is none.
    report : callable
        Called with stage, how much is done and of how much.
    """
    with opened(registry, create=True) as place:
        row = find_registered(place.home, name)
        checkpoint = None if source == "reference" else find_checkpoint(place.home, row, str(source))
        chosen = "reference" if checkpoint is None else str(checkpoint.id)  # what is newest may change meanwhile
        record = distilling.distill(place.home, row, chosen, settings, report)
        operators = compile_contingency(place.home.contingency(row))
        return DistilledHead(record, place.home.load_head(record), operators, checkpoint)
