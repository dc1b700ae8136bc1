"""The power flow of a plain network: sparse Newton from the stored state, theory.md eq. (41).

Units at PV and slack buses hold the voltage of the last of them in service (MATPOWER's rule), units at PQ buses
inject their P and Q. Reactive limits are ignored unless asked for; then a PV bus beyond the limits of its units
becomes a PQ bus at the limit, and holds its voltage again when the limit no longer binds. The slack bus takes
up the imbalance of active power unless `slack_shares` spreads it over units.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.energised import bus_kinds, energised, live_buses
from contingencies.formats.stamps import bus_matrix
from contingencies.formats.tables import PQ, PV, SLACK, Complex, Float, Int, sum_at
from contingencies.power_flow_limits import MAX_ROUNDS, ReactiveLimits
from contingencies.power_flow_newton import Equations, Point, VoltageLoad

LOWEST_V = 0.3  # pu; grids at the nose of their curves are near 0.5, the other solution is far below
TOLERANCE_MVA = 1e-8  # far below what moves a CCT; Newton usually ends well below it


@dataclass(frozen=True, eq=False)
class Options:
    """How a power flow is solved."""

    tolerance_mva: float = TOLERANCE_MVA  # largest mismatch of P or Q at a bus
    reactive_limits: bool = False
    slack_shares: Float | None = None  # (units,) shares of the imbalance of active power; any positive scale


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved operating point."""

    V: Complex  # (n,) bus voltages, pu; 0 at buses that are not live
    S_units: Complex  # (n,) power of all units of each bus, pu
    iterations: int
    mismatch_mva: float  # largest that is left
    limited: Int  # positions of PV buses held at a reactive limit


def solve_power_flow(case: Case, options: Options | None = None) -> Solution:
    """Solve the power flow of a network, dead parts left out.

    Raises
    ------
    SpecError
        When no start converges; it names the largest mismatch in MVA and its bus.
    """
    live = live_buses(case)
    options = options or Options()
    if options.slack_shares is not None:
        counted = case.units.in_service & live[case.units.bus]
        options = Options(options.tolerance_mva, options.reactive_limits, options.slack_shares[counted])
    part = PowerFlow(energised(case), options).solve()
    V, S_units = np.zeros(len(live), dtype=complex), np.zeros(len(live), dtype=complex)
    V[live], S_units[live] = part.V, part.S_units
    return Solution(V, S_units, part.iterations, part.mismatch_mva, np.flatnonzero(live)[part.limited])


def stored_mismatch(case: Case) -> tuple[float, int]:
    """How far the stored state is from a solution: the largest mismatch, MVA, and its printed bus number.

    Compared are P and Q at PQ buses and P at PV buses, with the stored magnitudes; a slack bus has no equation.
    """
    live = energised(case)
    flow = PowerFlow(live)
    V = live.buses.v * np.exp(1j * live.buses.angle)
    S, load = flow.injections(live)
    excess = V * np.conj(flow.Y @ V) - S + load.power(live.buses.v)
    kind = live.buses.kind
    size = np.where(kind == PQ, np.abs(excess), np.where(kind == PV, np.abs(excess.real), 0.0))
    worst = int(size.argmax())
    return float(size[worst] * case.base_mva), int(live.buses.number[worst])


class PowerFlow:
    """The power flow of one network, for many operating points.

    Keeps the bus matrix, the pattern of the Jacobian and its elimination order. An operating point is the same
    network with other loads or units (`dataclasses.replace(case, loads=..., units=...)`); solved from a known
    solution nearby it costs two or three iterations: 0.5 ms on 39 buses.

    Parameters
    ----------
    case : Case
        A live network, see `energised`.
    options : Options, optional
        Tolerance, reactive limits, distributed slack.
    """

    def __init__(self, case: Case, options: Options | None = None) -> None:
        self.case, self.options = case, options or Options()
        self.Y = bus_matrix(case)
        self.Y.sort_indices()
        self._equations: dict[bytes, Equations] = {}

    def solve(self, case: Case | None = None, start: Complex | None = None) -> Solution:
        """Solve an operating point, from `start` (n,) first if given, else from the stored state; then afresh.

        `case` has the buses, branches and shunts of the network, and loads and units of its own.
        """
        case = case or self.case
        if not (case.branches is self.case.branches and case.shunts is self.case.shunts):
            raise ValueError("an operating point keeps the branches and shunts of its network; make a new PowerFlow")
        kind = bus_kinds(case)
        best: Point | None = None
        collapsed: Solution | None = None  # the low-voltage solution, to which a start far off may lead
        for guess in self._starts(case, kind, start):
            point, held = self._solve_from(case, kind, guess)
            if point.converged:
                solution = self._solution(case, np.flatnonzero(held != kind), point)
                if np.abs(point.V).min() > LOWEST_V:
                    return solution
                collapsed = collapsed or solution
            elif best is None or np.abs(point.mismatch).max() < np.abs(best.mismatch).max():
                best = point
        if collapsed is not None:
            return collapsed
        assert best is not None
        raise SpecError(self._failure(best))

    def injections(self, case: Case) -> tuple[Complex, VoltageLoad]:
        """Scheduled power of units less constant-power loads (n,), and the loads that follow the voltage."""
        n, units, loads = len(case.buses), case.units, case.loads
        running = units.in_service
        generated = sum_at(n, units.bus[running], units.P[running] + 1j * units.Q[running])
        drawn = [sum_at(n, loads.bus, S) for S in (loads.S_power, loads.S_current, loads.S_impedance)]
        return generated - drawn[0], VoltageLoad(drawn[1], drawn[2])

    def _starts(self, case: Case, kind: Int, start: Complex | None) -> Iterator[Complex]:
        """Guesses in the order in which they are tried: known or stored, DC angles, flat."""
        known = case.buses.v * np.exp(1j * case.buses.angle) if start is None else start
        if np.isfinite(known).all() and (np.abs(known) > LOWEST_V).all():  # a file without a state may store zeros
            yield _with_set_points(case, kind, known)
        yield _with_set_points(case, kind, self._dc_start(case, kind))
        yield _with_set_points(case, kind, np.full(len(kind), np.exp(1j * case.buses.angle[kind == SLACK][0])))

    def _dc_start(self, case: Case, kind: Int) -> Complex:
        """Angles of the lossless network at 1 pu: B theta = P, with the shifts as injections."""
        n, branches = len(kind), case.branches
        x = np.where(np.abs(branches.x) > 1e-6, branches.x, 1e-6)
        b = np.where(branches.in_service, 1.0 / (x * branches.tap), 0.0)
        i, j = branches.start, branches.end
        B = sp.csc_matrix(
            (np.concatenate([b, b, -b, -b]), (np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i]))), shape=(n, n)
        )
        P = (
            self.injections(case)[0].real
            + sum_at(n, i, b * branches.shift).real
            - sum_at(n, j, b * branches.shift).real
        )
        angle = np.where(kind == SLACK, case.buses.angle, 0.0)
        free = np.flatnonzero(kind != SLACK)
        if len(free):
            try:
                angle[free] = splu(B[free][:, free]).solve((P - B @ angle)[free])
            except RuntimeError:  # singular where reactances cancel: the flat start is left
                angle[:] = case.buses.angle[kind == SLACK][0]
        started: Complex = np.exp(1j * angle)
        return started

    def _solve_from(self, case: Case, kind: Int, V: Complex) -> tuple[Point, Int]:
        S, load = self.injections(case)
        tolerance = self.options.tolerance_mva / case.base_mva
        point = self._equations_for(case, kind).solve(V, S, load, tolerance)
        if not self.options.reactive_limits:
            return point, kind
        drawn = sum_at(len(V), case.loads.bus, case.loads.S_power)
        limits = ReactiveLimits(case, kind, np.abs(_with_set_points(case, kind, V)))
        for _ in range(MAX_ROUNDS):
            change = limits.next_round(point.V, self._unit_power(case, point.V).imag) if point.converged else None
            if change is None:
                break
            kind, Q_held, V = change
            S = np.where(np.isnan(Q_held), S, S.real + 1j * (np.nan_to_num(Q_held) - drawn.imag))
            point = self._equations_for(case, kind).solve(V, S, load, tolerance)
        return point, kind

    def _equations_for(self, case: Case, kind: Int) -> Equations:
        slack, shares = np.flatnonzero(kind == SLACK), self.options.slack_shares
        if shares is not None:
            shares = _bus_shares(case, shares, slack)
        key = kind.tobytes() + (b"" if shares is None else shares.tobytes())
        if key not in self._equations:
            pv, pq = np.flatnonzero(kind == PV), np.flatnonzero(kind == PQ)
            self._equations[key] = Equations(self.Y, pv, pq, slack, shares)
        return self._equations[key]

    def _unit_power(self, case: Case, V: Complex) -> Complex:
        """What the units of each bus give, from the solved voltages, (n,) pu."""
        loads, v = case.loads, np.abs(V)[case.loads.bus]
        drawn = loads.S_power + loads.S_current * v + loads.S_impedance * v**2
        power: Complex = V * np.conj(self.Y @ V) + sum_at(len(V), loads.bus, drawn)
        return power

    def _solution(self, case: Case, limited: Int, point: Point) -> Solution:
        power = self._unit_power(case, point.V)
        has_unit = np.zeros(len(power), dtype=bool)
        has_unit[case.units.bus[case.units.in_service]] = True
        mismatch = float(np.abs(point.mismatch).max() * case.base_mva)
        return Solution(point.V, np.where(has_unit, power, 0.0), point.iterations, mismatch, limited)

    def _failure(self, point: Point) -> str:
        size = np.abs(point.mismatch)
        worst = int(np.nan_to_num(size, nan=np.inf).argmax())
        number = self.case.buses.number[worst]
        return (
            f"the power flow does not converge: the largest mismatch is {size[worst] * self.case.base_mva:.4g} MVA "
            f"at bus {number} after {point.iterations} iterations; check loads, generation and branches near it."
        )


def capacity_shares(case: Case) -> Float:
    """Shares of a distributed slack by machine base; units whose base the file does not say take no part."""
    return np.where(case.units.in_service, case.units.mva, 0.0)


def _with_set_points(case: Case, kind: Int, V: Complex) -> Complex:
    """V with the magnitudes that units hold, and the stored angle at slack buses."""
    v, angle, units = np.abs(V), np.angle(V), case.units
    running = np.flatnonzero(units.in_service)
    holds = running[np.isin(kind[units.bus[running]], (PV, SLACK))]
    v[units.bus[holds]] = units.v_set[holds]  # the last unit of a bus decides
    angle = np.where(kind == SLACK, case.buses.angle, angle)
    set_: Complex = v * np.exp(1j * angle)
    return set_


def _bus_shares(case: Case, shares: Float, slack: Int) -> Float:
    if len(slack) != 1:
        raise SpecError(f"a distributed slack needs one slack bus, and the network has {len(slack)}; make one PV.")
    total = sum_at(len(case.buses), case.units.bus, np.where(case.units.in_service, shares, 0.0)).real
    if not (np.isfinite(total).all() and total.min() >= 0 and total.sum() > 0):
        raise SpecError(
            "the shares of the distributed slack must be positive for at least one unit and never negative."
        )
    return np.asarray(total / total.sum())
