"""What Prometheus is told: requests and their times, answers by status, heads by age, alerts.

Counters are those of one process, or of all workers when `PROMETHEUS_MULTIPROC_DIR` is set (the command sets it).
Gauges are read from the registry when they are asked for.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from espinn_moe.head import STATUSES
from registry.service.answers import NO_HEAD

if TYPE_CHECKING:
    from registry.service.ranking import Ranked

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
AGES_S = {"day": 86400.0, "week": 7 * 86400.0, "month": 30 * 86400.0, "older": float("inf")}


class Metrics:
    """Counters of one process; safe to use from several threads."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._registry = own
        requests = Counter("cct_zoo_requests", "Requests", ["method", "route", "status"], registry=own)
        seconds = Histogram("cct_zoo_request_seconds", "Time to answer", ["route"], buckets=BUCKETS_S, registry=own)
        answers = Counter("cct_zoo_answers", "Critical clearing times answered", ["status"], registry=own)
        self._requests = lru_cache(maxsize=4096)(lambda *labels: requests.labels(*labels))
        self._seconds = lru_cache(maxsize=1024)(lambda route: seconds.labels(route))
        self._answers = {status: answers.labels(status) for status in (*STATUSES, NO_HEAD)}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests(method, route, str(status)).inc()
        self._seconds(route).observe(seconds)

    def answer(self, status: str, count: int = 1) -> None:
        """Count answers of one status."""
        self._answers[status].inc(count)

    def text(self, gauges: Iterable[GaugeMetricFamily]) -> bytes:
        """Everything in Prometheus' format."""
        shown = CollectorRegistry()
        if os.environ.get(FOLDER_VARIABLE):
            MultiProcessCollector(shown)
        else:
            shown.register(_Collected(self._registry.collect))
        shown.register(_Collected(lambda: gauges))
        return generate_latest(shown)


class _Collected:
    """A collector that gives what a function returns."""

    def __init__(self, collect: Callable[[], Iterable[Any]]) -> None:
        self._collect = collect

    def collect(self) -> Iterator[Any]:
        yield from self._collect()


def gauges(ranked: "list[Ranked]", at: datetime, away: bool) -> list[GaugeMetricFamily]:
    """Gauges of the deployed heads and their alerts.

    Parameters
    ----------
    ranked : list of Ranked
        Every contingency at full severity; empty while the registry is away.
    at : datetime
        Now, UTC.
    away : bool
        Whether the registry cannot be reached.
    """
    reachable = GaugeMetricFamily("cct_zoo_registry_reachable", "1 when the registry answers", value=0 if away else 1)
    ages = GaugeMetricFamily("cct_zoo_deployed_heads", "Deployed heads by age", labels=["age"])
    counts = dict.fromkeys(AGES_S, 0)
    margins = GaugeMetricFamily(
        "cct_zoo_margin_seconds", "Margin to the required time at full severity", labels=["contingency"]
    )
    alerts = GaugeMetricFamily("cct_zoo_alerts", "Contingencies that need attention", labels=["kind"])
    kinds = {"below-required": 0, "stale": 0, "missing": 0}
    for one in ranked:
        if one.deployed_at is not None:
            age = (at - one.deployed_at).total_seconds()
            counts[next(name for name, limit in AGES_S.items() if age < limit)] += 1
        if one.margin_s is not None:
            margins.add_metric([one.contingency], one.margin_s)
        for kind in one.alerts:
            kinds[kind] += 1
    for name, count in counts.items():
        ages.add_metric([name], count)
    for name, count in kinds.items():
        alerts.add_metric([name], count)
    return [reachable, ages, margins, alerts]


def use_folder(folder: Path) -> None:
    """Share counters between worker processes through files in a folder."""
    os.environ[FOLDER_VARIABLE] = str(folder)
