"""Which contingencies are critical: every one of a system at a severity and point, with its margin.

A margin is what remains of the critical duration after the head's error bound and the required time. Where a head
has no number the window still says something: right-censored leaves at least, left-censored at most, so much.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from contingencies.conditions import Conditions
from contingencies.errors import UsageError
from contingencies.points import Axis
from espinn_moe.condition_head import AnyHead
from registry.query import Registry
from registry.records import ContingencyRecord, DeploymentRecord
from registry.service.answers import NO_HEAD
from registry.service.points import answer_at
from registry.store import contingencies, deployments
from registry.store.deployments import PRODUCTION
from registry.store.required_times import RequiredTime, required_times


@dataclass(frozen=True)
class Element:
    """Where a fault is: a bus, a generator's bus, or a circuit between two buses."""

    kind: str  # bus, line or mechanical
    buses: tuple[int, ...]
    circuit: int | None = None


@dataclass(frozen=True)
class Outline:
    """What of a contingency's description is shown in lists."""

    fault: str
    clearing: str
    element: Element
    t_f: float
    t_c: tuple[float, float]
    T: float
    severity: tuple[float, float]
    axes: tuple[Axis, ...]  # conditions, none for most


@dataclass(frozen=True)
class Asked:
    """What a ranking is about: a system (None: all), a severity (None: the largest of each), an operating point."""

    system: str | None = None
    alpha: float | None = None
    alias: str = PRODUCTION
    at: Mapping[str, float] = field(default_factory=dict)  # conditions; those left out have the case's own values


@dataclass(frozen=True)
class Ranked:
    """One contingency at one severity."""

    contingency: str
    system: str
    version: int  # the latest registered
    alpha: float | None
    status: str  # that of the answer, or no-head
    cct_s: float | None
    duration_s: float | None
    error_bound_s: float | None
    required_s: float | None
    margin_s: float | None
    margin_is: str | None  # exact, at-least or at-most
    head: int | None
    checkpoint: int | None
    head_version: int | None
    source: str | None  # reference or checkpoint
    deployment: int | None
    deployed_at: datetime | None
    fault: str
    clearing: str
    alerts: tuple[str, ...]  # of below-required, stale, missing


@lru_cache(maxsize=20_000)
def outline(spec_json: str) -> Outline:
    """The outline of a stored description."""
    spec = json.loads(spec_json)
    fault, clearing, window = spec["fault"], spec["clearing"], spec["window"]
    kind = fault["kind"]
    if kind == "line":
        circuit = fault.get("circuit")
        words = f"line {fault['line'][0]}-{fault['line'][1]}"
        words += (f" circuit {circuit}" if circuit else "") + f" at {100 * fault['position']:.0f} %"
        element = Element("line", tuple(fault["line"]), circuit)
    elif kind == "bus":
        words, element = f"bus {fault['bus']}", Element("bus", (fault["bus"],))
    else:
        words = f"P_m of generator {fault['generator']}"
        element = Element("mechanical", (fault["generator"],))
    return Outline(
        words,
        _clearing_words(clearing),
        element,
        window["t_f"],
        (window["t_c"][0], window["t_c"][1]),
        window["T"],
        (spec["severity"][0], spec["severity"][1]),
        Conditions.model_validate_json(json.dumps(spec["conditions"])).axes if spec.get("conditions") else (),
    )


def _clearing_words(clearing: dict[str, Any]) -> str:
    words = str(clearing["action"]).replace("-", " ")
    lines = [clearing["line"]] if clearing.get("line") else clearing.get("lines", [])
    places = ["-".join(map(str, line[:2])) for line in lines]
    places += [f"generator {bus}" for bus in clearing.get("generators", [])]
    return f"{words} {', '.join(places)}".strip()


def rank(registry: Registry, asked: Asked | None = None) -> list[Ranked]:
    """Every contingency that is asked for, most critical first.

    Raises
    ------
    NotFoundError
        There is no such system.
    UsageError
        A condition that is given is none of any of the contingencies.
    """
    asked = asked or Asked()
    database = registry.home.database
    rows = [row for row in contingencies.latest(database) if asked.system in (None, row.system.name)]
    if not rows and asked.system is not None:
        contingencies.check_system(database, asked.system)
    _check_conditions(asked, rows)
    active = {row.contingency: row for row in deployments.all_active(database) if row.alias == asked.alias}
    required = required_times(database)
    ranked = [_ranked(registry, row, active.get(row.name), required.get(row.name), asked) for row in rows]
    return sorted(ranked, key=urgency)


def axes_among(rows: list[ContingencyRecord]) -> list[Axis]:
    """The conditions that some contingencies have, each once, over its widest range."""
    found: dict[str, Axis] = {}
    for axis in (axis for row in rows for axis in outline(row.spec_json).axes):
        other = found.get(axis.name, axis)
        found[axis.name] = Axis(axis.name, min(axis.low, other.low), max(axis.high, other.high), axis.unit)
    return list(found.values())


def _check_conditions(asked: Asked, rows: list[ContingencyRecord]) -> None:
    if not asked.at:
        return
    known = [axis.name for axis in axes_among(rows)]
    for name in asked.at:
        if name not in known:
            whose = "any system" if asked.system is None else asked.system
            some = f"they have {', '.join(known)}" if known else "they have none"
            raise UsageError(f"no contingency of {whose} has a condition {name[:60]!r}; {some}.")


def urgency(one: Ranked) -> tuple[int, float, str]:
    """Sort key: unstable from the start, then by duration, then stable throughout, then without an answer."""
    order = {"left-censored": 0, "finite": 1, "right-censored": 2, "uncertain": 3, "out-of-domain": 4, NO_HEAD: 5}
    return order[one.status], one.duration_s if one.duration_s is not None else math.inf, one.contingency


def _ranked(
    registry: Registry,
    row: ContingencyRecord,
    deployment: DeploymentRecord | None,
    required: RequiredTime | None,
    asked: Asked,
) -> Ranked:
    shape = outline(row.spec_json)
    severity = shape.severity[1] if asked.alpha is None else asked.alpha
    required_s = None if required is None else required.required_s
    if deployment is None:
        return Ranked(
            row.name, row.system.name, row.version, severity, NO_HEAD, None, None, None, required_s, None, None,
            None, None, None, None, None, None, shape.fault, shape.clearing, ("missing",),
        )  # fmt: skip
    stored = deployment.head
    head: AnyHead = registry.head(stored)
    cct, status, bound = answer_at(head, severity, asked.at)
    duration = None if cct is None else cct - head.t_f
    margin, margin_is = margin_of(status, duration, bound, required_s, shape)
    alerts = ("below-required",) if is_below(status, margin, margin_is, required_s) else ()
    if stored.contingency.version != row.version:
        alerts = (*alerts, "stale")
    return Ranked(
        row.name, row.system.name, row.version, severity, status, cct, duration, bound, required_s, margin, margin_is,
        stored.id, stored.checkpoint_id, stored.contingency.version, stored.source, deployment.id,
        deployment.created_at, shape.fault, shape.clearing, alerts,
    )  # fmt: skip


def margin_of(
    status: str, duration: float | None, bound: float | None, required: float | None, shape: Outline
) -> tuple[float | None, str | None]:
    """The margin in s and whether it is exact, at least or at most that; (None, None) when there is none."""
    if required is None:
        return None, None
    if status == "finite" and duration is not None:
        return duration - (bound or 0.0) - required, "exact"
    if status == "right-censored":
        return shape.t_c[1] - shape.t_f - required, "at-least"
    if status == "left-censored":
        return shape.t_c[0] - shape.t_f - required, "at-most"
    return None, None


def is_below(status: str, margin: float | None, margin_is: str | None, required: float | None) -> bool:
    """Whether a contingency does not surely leave the required time."""
    if required is None or status == "out-of-domain":
        return False
    if margin_is == "at-most" or status == "uncertain":
        return True  # how much less is not known, and nothing shows that it suffices
    return margin is not None and margin < 0
