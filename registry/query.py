"""Asking the registry for critical clearing times: `Registry.open(...).cct(name, alpha)`.

A deployed head is loaded once and kept; each call first asks, in microseconds, whether the
registry has changed, so a new deployment answers the next call of a process that runs for
months. Nothing here imports torch, pandapower or mlflow.
"""

import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from contingencies.errors import UsageError
from contingencies.points import check_names
from espinn_moe.condition_head import AnyHead, ConditionHead
from espinn_moe.head import STATUSES, Array, Codes, Head
from registry.changes import Changes, changes_of
from registry.home import DEFAULT_HOME, Home
from registry.records import DeploymentRecord, HeadRecord
from registry.store import contingencies, deployments, heads
from registry.store.deployments import PRODUCTION

MOST_LISTED = 100  # heads, unless more are asked for


class CCTAnswer(NamedTuple):
    """The answer for one severity; times are None unless the status is "finite"."""

    cct: float | None  # critical clearing instant on the simulation clock, s
    duration: float | None  # cct - t_f: how long the fault may last, s
    status: str  # finite, right-censored, left-censored, uncertain or out-of-domain
    error_bound: float | None  # |cct error| against the reference ODE with 95 % confidence, s
    head: int  # number of the head that answered
    checkpoint: int | None  # the surrogate it was distilled from; None: from the reference itself
    contingency_version: int
    strict_severities: int | None = None  # at which the head was measured against the strict ODE; None: not told

    def to_frame(self) -> Any:
        """A pandas table with one row, times in s, as that of many answers."""
        import pandas

        times = {"cct": "cct_s", "duration": "duration_s", "error_bound": "error_bound_s"}
        return pandas.DataFrame([{times.get(name, name): value for name, value in self._asdict().items()}])


@dataclass(frozen=True, eq=False)
class CCTAnswers:
    """Answers for many severities of one contingency; arrays have the shape of `alpha`."""

    contingency: str
    alpha: Array
    cct: Array  # s, NaN unless finite
    status_code: Codes  # index into `espinn_moe.head.STATUSES`
    t_f: float
    error_bound: float | Array | None  # s, for the finite ones; one for each answer over conditions
    head: int
    checkpoint: int | None
    contingency_version: int
    strict_severities: int | None = None

    @property
    def duration(self) -> Array:
        """How long the fault may last, s; NaN unless finite."""
        result: Array = self.cct - self.t_f
        return result

    @property
    def status(self) -> np.ndarray:
        """The status of each answer, as text."""
        return np.array(STATUSES)[self.status_code]

    def to_frame(self) -> Any:
        """A pandas table with one row per answer."""
        import pandas

        columns = (self.alpha, self.status, self.cct, self.duration)
        names = ("alpha", "status", "cct_s", "duration_s")
        frame = pandas.DataFrame({name: np.ravel(values) for name, values in zip(names, columns, strict=True)})
        frame.insert(0, "contingency", self.contingency)
        frame["error_bound_s"] = np.where(np.isfinite(frame["cct_s"]), np.ravel(_number(self.error_bound)), np.nan)
        return frame


def _number(bound: float | Array | None) -> Array:
    """A bound that may be missing, as numbers."""
    return np.asarray(np.nan if bound is None else bound, dtype=np.float64)


class Deployed(NamedTuple):
    """A loaded head with its provenance."""

    head: AnyHead
    head_id: int
    checkpoint_id: int | None
    version: int
    strict_severities: int


_open: "weakref.WeakSet[Registry]" = weakref.WeakSet()


def at_point(deployed: Deployed, name: str, alpha: float, conditions: Mapping[str, Any]) -> "CCTAnswer | CCTAnswers":
    """The answer at an operating point; conditions that are arrays make many answers."""
    head, head_id, checkpoint_id, version, strict = deployed
    if not isinstance(head, ConditionHead):
        check_names(name, (), conditions)
        raise UsageError(f"{name} has no conditions; leave them out.")
    values = head.values(conditions, name)
    if any(np.ndim(value) for value in values):
        return at_points(deployed, name, np.asarray(alpha), conditions)
    try:
        cct, status, bound = head.bounded(alpha, [float(value) for value in values])
    except (TypeError, ValueError):
        raise UsageError(f"{name}: a condition is not a number; give numbers.") from None
    return CCTAnswer(
        cct, None if cct is None else cct - head.t_f, status, bound, head_id, checkpoint_id, version, strict
    )


def at_points(deployed: Deployed, name: str, alpha: Array, conditions: Mapping[str, Any]) -> CCTAnswers:
    """Answers at severities and conditions that broadcast with each other."""
    head, head_id, checkpoint_id, version, strict = deployed
    if not isinstance(head, ConditionHead):
        check_names(name, (), conditions)
        raise UsageError(f"{name} has no conditions; leave them out.")
    try:
        columns = [np.asarray(value, dtype=np.float64) for value in head.values(conditions, name)]
        severities, *columns = np.broadcast_arrays(alpha, *columns)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: severities and conditions are not numbers of one shape; give such.") from None
    cct, code, bound = head.bounded_answers(severities, np.stack(columns, -1))
    return CCTAnswers(name, severities, cct, code, head.t_f, bound, head_id, checkpoint_id, version, strict)


class Registry:
    """Deployed heads of one registry, cached, never stale; safe to share between threads."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._lock = threading.RLock()
        self._changes: Changes = changes_of(home.database)
        self._stamp: object = None
        self._current: dict[tuple[str, str], Deployed] = {}  # valid until something changes
        self._heads: dict[tuple[int, str], AnyHead] = {}  # immutable, by row and digest
        _open.add(self)

    @staticmethod
    def open(home: str | Path | None = None, url: str | None = None, create: bool = False) -> "Registry":
        """The registry of a zoo home.

        Parameters
        ----------
        home : path, optional
            The home folder; default: `CCT_ZOO_HOME`, else `.cct-zoo`.
        url : str, optional
            A PostgreSQL registry; default: `CCT_ZOO_REGISTRY`, else the SQLite file of the home.
        create : bool
            Make the SQLite file when there is none.
        """
        home = home or os.environ.get("CCT_ZOO_HOME") or DEFAULT_HOME
        return Registry(Home.open(home, url or os.environ.get("CCT_ZOO_REGISTRY") or None, create))

    def close(self) -> None:
        self._changes.close()
        self.home.close()

    def __enter__(self) -> "Registry":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- questions ----------------------------------------------------------------------------

    @overload
    def cct(self, name: str, alpha: float, alias: str = ..., **conditions: float) -> CCTAnswer: ...
    @overload
    def cct(self, name: str, alpha: ArrayLike, alias: str = ..., **conditions: ArrayLike) -> CCTAnswers: ...
    @overload
    def cct(
        self, name: list[str] | tuple[str, ...], alpha: float, alias: str = ..., **conditions: float
    ) -> list[CCTAnswer]: ...
    @overload
    def cct(
        self, name: list[str] | tuple[str, ...], alpha: ArrayLike, alias: str = ..., **conditions: ArrayLike
    ) -> list[CCTAnswers]: ...

    def cct(self, name, alpha, alias=PRODUCTION, **conditions):  # type: ignore[no-untyped-def]
        """The critical clearing time of a contingency by its deployed head.

        Parameters
        ----------
        name : str or several
            Contingency; several give a list of answers in the same order.
        alpha : float or array
            Severity; a number gives a `CCTAnswer`, an array a `CCTAnswers`.
        alias : str
            Which deployment answers.
        conditions : float or array
            Operating point, as `load=1.1` or `**{"generation.2": 35.0}`; arrays go with alpha, and one that is left
            out has the case's own value. Outside their ranges the answer is out-of-domain.

        Raises
        ------
        NotFoundError
            No such contingency, or nothing deployed under the alias.
        UsageError
            alpha is not finite, or a condition is not known.
        """
        if type(alpha) is float and type(name) is str:  # the hot path: one question, some microseconds
            stamp = self._changes.stamp()
            if stamp != self._stamp:
                self._forget(stamp)
            deployed = self._current.get((name, alias)) or self._look_up(name, alias)
            head, head_id, checkpoint_id, version, strict = deployed
            if conditions or type(head) is not Head:
                return at_point(deployed, name, alpha, conditions)
            cct, status = head.answer(alpha)
            if cct is None:
                return CCTAnswer(None, None, status, None, head_id, checkpoint_id, version, strict)
            return CCTAnswer(cct, cct - head.t_f, status, head.error_bound_s, head_id, checkpoint_id, version, strict)
        if not isinstance(name, str):
            return [self.cct(one, alpha, alias, **conditions) for one in name]
        if isinstance(alpha, bool | np.bool_ | str | bytes) or alpha is None:
            raise UsageError(f"alpha = {alpha!r} is not a severity; give a number or an array of numbers.")
        if isinstance(alpha, int | float | np.integer | np.floating):
            return self.cct(name, float(alpha), alias, **conditions)
        return self._many(name, alpha, alias, conditions)

    def _many(self, name: str, alpha: ArrayLike, alias: str, conditions: Mapping[str, ArrayLike]) -> CCTAnswers:
        try:
            severities = np.asarray(alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError("alpha holds something that is not a number; give an array of severities.") from None
        deployed = self.deployed(name, alias)
        head, head_id, checkpoint_id, version, strict = deployed
        if conditions or type(head) is not Head:
            return at_points(deployed, name, severities, conditions)
        cct, code = head.answers(severities)
        bound = head.error_bound_s
        return CCTAnswers(name, severities, cct, code, head.t_f, bound, head_id, checkpoint_id, version, strict)

    def deployed(self, name: str, alias: str = PRODUCTION) -> Deployed:
        """The loaded head that answers now; `NotFoundError` when there is none."""
        stamp = self._changes.stamp()
        if stamp != self._stamp:
            self._forget(stamp)
        return self._current.get((name, alias)) or self._look_up(name, alias)

    def domain(self, name: str, alias: str = PRODUCTION) -> dict[str, tuple[float, float]]:
        """Where the deployed head answers: the range of severities, and of each condition."""
        head = self.deployed(name, alias).head
        axes = head.axes if isinstance(head, ConditionHead) else ()
        return {"alpha": head.severity} | {axis.name: (axis.low, axis.high) for axis in axes}

    def head(self, record: HeadRecord) -> AnyHead:
        """A stored head, deployed or not; each is read and verified once."""
        key = (record.id, record.digest)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self.home.load_head(record)
        return head

    # --- lists --------------------------------------------------------------------------------

    def names(self, system: str | None = None) -> list[str]:
        """Registered contingencies, of one system or of all."""
        rows = contingencies.latest(self.home.database)
        return [row.name for row in rows if system is None or row.system.name == system]

    def heads(self, name: str | None = None, limit: int = MOST_LISTED) -> list[HeadRecord]:
        """Stored heads, newest first: of a contingency (`name`, or `name@version`) or all."""
        if name is not None:
            contingencies.find(self.home.database, name)  # a name that nobody registered is an error, not an empty list
        return heads.heads_of(self.home.database, name, limit)

    def deployments(self) -> list[DeploymentRecord]:
        """The deployments that answer now, of all names and aliases."""
        return deployments.all_active(self.home.database)

    def stamp(self) -> object:
        """Another value whenever the registry may have changed."""
        return self._changes.stamp()

    # --- cache --------------------------------------------------------------------------------

    def _forget(self, stamp: object) -> None:
        self._current = {}  # replaced, not emptied: another thread may be reading the old one
        self._stamp = stamp  # last, so that no thread takes the new stamp for the old rows

    def _look_up(self, name: str, alias: str) -> Deployed:
        if not isinstance(alias, str):
            raise UsageError(f"alias {alias!r} is not text.")
        with self._lock:
            current = self._current  # an entry found now belongs to this generation of the cache only
            row = deployments.active(self.home.database, name, alias).head
            deployed = Deployed(self.head(row), row.id, row.checkpoint_id, row.contingency.version, row.strict_count)
            current[(name, alias)] = deployed
            return deployed

    def _reopen(self) -> None:
        """A forked child has locks and a view of its own; `registry.engine` sees to the connections."""
        self._lock = threading.RLock()
        self._changes = changes_of(self.home.database)
        self._forget(None)


def _after_fork() -> None:
    for registry in list(_open):
        registry._reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
