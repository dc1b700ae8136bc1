"""Letting a head answer, from Python."""

from dataclasses import dataclass
from typing import Any

from registry.query import Registry
from registry.records import DeploymentRecord
from registry.store import deployments
from registry.store.deployments import PRODUCTION, Gate
from registry.texts import split_reference
from zoo.facade.frames import to_frame
from zoo.facade.registries import opened


@dataclass(frozen=True)
class Deployment:
    """A head that answers for a contingency, and whether it did so already."""

    record: DeploymentRecord
    changed: bool

    @property
    def head(self) -> int:
        """Number of the head."""
        return self.record.head_id

    def report(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return deployment_report(self.record) | {"changed": self.changed}

    def to_frame(self) -> Any:
        """A pandas table with one row."""
        return to_frame([self.report()])


def deployment_report(row: DeploymentRecord) -> dict[str, Any]:
    """A deployment as plain values."""
    return {
        "deployment": row.id,
        "contingency": row.contingency,
        "alias": row.alias,
        "head": row.head_id,
        "contingency_version": row.head.contingency.version,
        "checkpoint": row.head.checkpoint_id,
        "action": row.action,
        "active": row.active,
        "forced": row.forced,
        "reason": row.reason,
        "actor": row.actor,
        "created_at": row.created_at.isoformat(timespec="seconds"),
        "ended_at": None if row.ended_at is None else row.ended_at.isoformat(timespec="seconds"),
    }


def deploy(
    name: str,
    head: int | None = None,
    *,
    reason: str,
    alias: str = PRODUCTION,
    force: bool = False,
    accept_worse: bool = False,
    gate: Gate | None = None,
    registry: Registry | None = None,
) -> Deployment:
    """Let a head answer for a contingency.

    Parameters
    ----------
    name : str
        A registered contingency.
    head : int, optional
        Number of the head; default: the newest.
    reason : str
        Why, for the record.
    alias : str
        Which deployment of the name.
    force, accept_worse : bool
        Deploy although the gate objects, or although the head in place is better; it is recorded.
    gate : Gate, optional
        Largest errors with which a head is deployed.
    registry : Registry, optional
        Default: the home of `CCT_ZOO_HOME`, else `.cct-zoo`.

    Raises
    ------
    GateError
        The measured error exceeds the gate, or the head in place is better.
    """
    with opened(registry) as place:
        history = deployments.history(place.home.database, split_reference(name)[0], alias)
        before = next((row.id for row in history if row.active), None)
        row = place.home.deploy(
            name, head, alias=alias, reason=reason, force=force, accept_worse=accept_worse, gate=gate
        )
    return Deployment(row, row.id != before)
