"""Simulations on request: the compiled ODE for one scenario or a few severities, bounded in cost and in number.

A few threads simulate; a few more requests may wait; whoever comes then is asked to come back. The compiled
integrator lets go of the interpreter, so that queries are answered meanwhile.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from contingencies.errors import UsageError
from registry.home import Home
from registry.records import ContingencyRecord
from registry.service.problems import BUSY_RETRY_S, Problem

if TYPE_CHECKING:  # they compile or import for a while; only the first simulation pays
    from contingencies.network import Network
    from contingencies.operators import PhaseOperators
    from contingencies.stability import CCT

T = TypeVar("T")

MAX_COST = 2e10  # multiplications of one CCT: seconds
MAX_SEVERITIES = 101  # of one request
KEPT_OPERATORS = 256
KEPT_CCTS = 10_000
OUTPUT_POINTS = 401  # of a trajectory: enough for a plot


@dataclass(frozen=True, eq=False)
class Scenario:
    """One simulated scenario."""

    t: np.ndarray  # (k,) s
    delta: np.ndarray  # (k, n) rad, relative to the centre of inertia
    omega: np.ndarray  # (k, n) pu
    machines: tuple[int, ...]
    separation_rad: float
    at_s: float
    max_separation_rad: float
    cct: "CCT"
    t_c: float
    at: dict[str, float]  # conditions of the operating point

    @property
    def stable(self) -> bool:
        return self.separation_rad < self.max_separation_rad

    @property
    def spare_s(self) -> float | None:
        """How much later clearing could have come; negative: how much too late it came; None: not known."""
        return None if self.cct.cct is None else self.cct.cct - self.t_c

    @property
    def sentence(self) -> str:
        """The verdict as one says it."""
        if self.stable and self.spare_s is not None and self.spare_s >= 0:
            return f"stable: {1e3 * self.spare_s:.0f} ms to spare"
        if self.stable and self.cct.status == "right-censored":
            return "stable: at every clearing instant of the study"
        if self.stable:
            return "stable: but clearing a little earlier or later is not"
        if self.spare_s is not None and self.spare_s < 0:
            return f"unstable: cleared {-1e3 * self.spare_s:.0f} ms too late"
        return "unstable: at the first clearing instant of the study already"


class Kept:
    """The newest of some values, by key; safe between threads."""

    def __init__(self, size: int) -> None:
        self._size, self._values, self._lock = size, OrderedDict[Hashable, object](), threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made when it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]  # type: ignore[return-value]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


class WhatIf:
    """Simulations of a service."""

    def __init__(self, home: Home, simulations: int, waiting: int) -> None:
        self._home = home
        self._threads = ThreadPoolExecutor(simulations, thread_name_prefix="what-if")
        self._room = simulations + waiting
        self._underway = 0
        self._operators, self._ccts = Kept(KEPT_OPERATORS), Kept(KEPT_CCTS)

    def close(self) -> None:
        """Let running simulations end and take no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Do work on a simulating thread, or refuse when too many wait."""
        if self._underway >= self._room:
            raise Problem(
                429,
                "busy",
                f"{self._underway} simulations are under way already; try again in a second.",
                {"Retry-After": str(BUSY_RETRY_S)},
            )
        self._underway += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        finally:
            self._underway -= 1

    def operators(self, row: ContingencyRecord, at: Mapping[str, float]) -> "PhaseOperators":
        """The compiled contingency of a record at an operating point; what is not given has the case's own value."""
        from contingencies.operators import compile_contingency
        from contingencies.point_networks import axes_of, point_of

        def compiled() -> "PhaseOperators":
            contingency = self._home.contingency(row)
            point = point_of(contingency, at) if at or axes_of(contingency) else None
            return compile_contingency(contingency, point)

        return self._operators.get((row.sha256, tuple(sorted(at.items()))), compiled)

    def network(self, row: ContingencyRecord) -> "Network":
        """The solved network of a contingency's system."""
        from contingencies.network import solve_network

        return solve_network(self._home.contingency(row).system)

    def reference(self, row: ContingencyRecord, alpha: float, at: Mapping[str, float]) -> "CCT":
        """The critical clearing time by the compiled ODE at an operating point."""
        from contingencies.references import reference_cct

        operators = self.operators(row, at)
        _check_cost(operators)
        key = (row.sha256, alpha, operators.point.values)
        return self._ccts.get(key, lambda: reference_cct(operators, alpha, "fast"))

    def simulate(self, row: ContingencyRecord, alpha: float, t_c: float, at: Mapping[str, float]) -> Scenario:
        """One scenario at an operating point, with its verdict."""
        from contingencies.ode import fast_trajectory
        from contingencies.stability import check_scenario

        operators = self.operators(row, at)
        check_scenario(operators, alpha, t_c)
        _check_cost(operators)
        full = fast_trajectory(operators, alpha, t_c)
        peak = int(full.separation.argmax())
        some = np.unique(np.linspace(0, len(full.t) - 1, OUTPUT_POINTS).round().astype(int))
        centre = full.delta[some] @ operators.H / operators.H.sum()
        return Scenario(
            t=full.t[some],
            delta=full.delta[some] - centre[:, None],
            omega=full.omega[some],
            machines=tuple(int(bus) for bus in operators.machine_buses),
            separation_rad=float(full.separation[peak]),
            at_s=float(full.t[peak]),
            max_separation_rad=operators.max_separation,
            cct=self.reference(row, alpha, at),
            t_c=t_c,
            at=operators.point.to_dict(),
        )


def _check_cost(operators: "PhaseOperators") -> None:
    """Refuse what would keep a thread busy for long."""
    from contingencies.ode import rk4_step
    from contingencies.stability import candidates

    steps = operators.window.T / rk4_step(operators)
    cost = steps * 4 * operators.n_machines**2 * len(candidates(operators))
    if cost > MAX_COST:
        raise UsageError(
            f"{operators.name}: a simulation of {operators.n_machines} machines over {operators.window.T:g} s is too "
            "long for the service; use 'cct-zoo simulate' or 'cct-zoo reference-cct'."
        )
