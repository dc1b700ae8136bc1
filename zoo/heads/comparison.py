"""Deployed answers beside the reference ODEs."""

from dataclasses import dataclass
from pathlib import Path

from contingencies.library import Contingency
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct
from registry.home import Home
from registry.query import Registry
from registry.records import ContingencyRecord
from registry.store.deployments import PRODUCTION, active


@dataclass(frozen=True)
class Example:
    """A deployed answer beside the references; times in s, None unless finite."""

    contingency: str
    alpha: float
    status: str
    cct: float | None
    error_bound: float | None
    strict_status: str
    strict: float | None
    fast: float | None

    @property
    def error(self) -> float | None:
        """Difference from the strict ODE, s."""
        return None if self.cct is None or self.strict is None else abs(self.cct - self.strict)


def example(
    home: Path,
    row: ContingencyRecord,
    contingency: Contingency,
    alpha: float | None = None,
    url: str | None = None,
    alias: str = PRODUCTION,
) -> Example:
    """Ask the deployed head of a contingency and both reference ODEs.

    Parameters
    ----------
    home : Path
    row : ContingencyRecord
    contingency : Contingency
    alpha : float, optional
        Severity; default: the middle of the severities that have a number, else the largest.
    """
    with Registry.open(home, url) as registry:
        if alpha is None:
            alpha = _telling_severity(registry.home, row, alias)
        answer = registry.cct(row.name, alpha, alias)
    operators = compile_contingency(contingency)
    strict, fast = (reference_cct(operators, alpha, reference) for reference in ("strict", "fast"))
    return Example(row.name, alpha, answer.status, answer.cct, answer.error_bound, strict.status, strict.cct, fast.cct)


def _telling_severity(home: Home, row: ContingencyRecord, alias: str) -> float:
    head = home.load_head(active(home.database, row.name, alias).head)
    intervals = head.finite_intervals
    if not intervals:
        return head.severity[1]
    low, high = max(intervals, key=lambda interval: interval[1] - interval[0])
    return round(0.5 * (low + high), 3)
