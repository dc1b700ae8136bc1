"""Operators as smooth functions of the conditions: solved at some points, interpolated everywhere.

Everything that a phase operator is made of (internal voltages, initial angles, mechanical powers, reduced
admittances, transfers to and from the buses of the fault) is analytic in loads and dispatch, so polynomials of low
degree in the scaled conditions reproduce it to 1e-9 (`contingencies.smooth_fit`). The position of a line fault
enters in closed form, theory.md eq. (71). No power flow is solved afterwards, and the coefficients are all that a
differentiable version needs (`espinn_moe.condition_physics`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from contingencies.errors import SolverError, SpecError, UsageError
from contingencies.library import Contingency
from contingencies.network import Complex, Float, Int, Network
from contingencies.operators import PhaseOperators, compile_contingency, compile_family, severity_law
from contingencies.point_networks import PointNetworks, axes_of, point_networks
from contingencies.points import Axis, limits_of
from contingencies.reduction import Reduction
from contingencies.smooth_fit import Array, Parts, SmoothFit, fit_smooth, stacked

REAL = ("E", "delta_0", "P_m_pre", "P_m_slope", "P_m_post")


@dataclass(frozen=True, eq=False)
class OperatorFamily:
    """Operators of one contingency over its conditions.

    `fit` holds the real quantities E, delta_0, P_m_pre, P_m_slope, P_m_post (n,), and the real and imaginary parts
    (suffix _re, _im) of Y_pre and Y_post (n, n), of w and u (q, n) and of z (q, q) at the q buses of the fault.
    Y_post is left out where it equals Y_pre.
    """

    base: PhaseOperators  # at the case's own point
    axes: tuple[Axis, ...]
    own: Float  # (d,) the case's own values
    moving: Int  # (q,) places of the conditions that move the network: all but position
    fit: SmoothFit

    @property
    def position(self) -> int | None:
        """Which of the conditions is the position of the fault."""
        return next((place for place, axis in enumerate(self.axes) if axis.name == "position"), None)

    def scaled(self, conditions: Array) -> Array:
        """Conditions (..., d) in [-1, 1]."""
        low, high = limits_of(self.axes)
        if not isinstance(conditions, np.ndarray):
            low, high = conditions.new_tensor(low), conditions.new_tensor(high)
        return 2.0 * (conditions - low) / (high - low) - 1.0

    def fault_weights(self, conditions: Array) -> tuple[Array, Array]:
        """Weights (..., q) of the fault's buses, impedance (...) of the line's two parts, theory.md eq. (71)."""
        point, place = self.base.fault_point, self.position
        if point is None:
            return np.zeros(1), 0j
        if place is None:
            return point.weights.real, point.z_series
        own, far = float(point.weights[1].real), conditions[..., place]
        z_line = point.z_series / (own * (1.0 - own))
        return stacked(1.0 - far, far), far * (1.0 - far) * z_line

    def operators_at(self, values: Float) -> PhaseOperators:
        """Operators at one point (d,), without a power flow; for the reduced simulators, not for the full network."""
        values = np.asarray(values, dtype=float)
        parts = self.fit(self.scaled(values)[self.moving])
        weights, z_series = self.fault_weights(values)
        w, u, z, Y_pre = (_complex(parts, name) for name in ("w", "u", "z", "Y_pre"))
        changes = "Y_post_re" in parts
        eye = np.eye(self.base.n_machines, dtype=complex)[:, : None if changes else 0]
        core = _complex(parts, "Y_post") - Y_pre if changes else np.zeros((0, 0), dtype=complex)
        z_th = complex(weights @ z @ weights + z_series)
        gain, bend = severity_law(self.base.fault_point, z_th)
        return replace(
            self.base, **{name: parts[name] for name in REAL}, Y_pre=Y_pre, fault_from=weights @ w,
            fault_to=weights @ u, fault_gain=gain, fault_bend=bend, fault_z_th=z_th,
            post_from=eye, post_to=eye, post_core=core,
        )  # fmt: skip


def operator_family(contingency: Contingency) -> OperatorFamily:
    """The smooth family of one contingency."""
    return operator_families((contingency,))[0]


@lru_cache(maxsize=8)
def operator_families(contingencies: tuple[Contingency, ...]) -> tuple[OperatorFamily, ...]:
    """Smooth families of contingencies of one system with the same conditions, sharing every power flow."""
    first = contingencies[0]
    axes, networks = axes_of(first), point_networks(first)
    for one in contingencies:
        if axes_of(one) != axes:
            raise UsageError(
                f"{one.name} and {first.name} have different conditions; one model serves one set of them."
            )
    own = np.array([networks.own[axis.name] for axis in axes])
    moving = np.array([place for place, axis in enumerate(axes) if axis.name != "position"], dtype=np.int64)
    bases = [compile_contingency(one) for one in contingencies]
    solver = _Solver(contingencies, networks, bases, own, moving)
    try:
        fit = fit_smooth(solver.parts, len(moving))
    except SolverError as error:
        where = first.where("conditions")
        raise SpecError(f"{where}: operators are not smooth over these ranges ({error}); narrow the ranges.") from None
    families = []
    for k, (one, base) in enumerate(zip(contingencies, bases, strict=True)):
        mine = {name.partition(":")[2]: v for name, v in fit.coefficients.items() if name.startswith(f"{k}:")}
        own_values = own.copy()
        place = OperatorFamily(base, axes_of(one), own, moving, fit).position
        if place is not None and base.fault_point is not None:
            own_values[place] = base.fault_point.weights[1].real
        families.append(OperatorFamily(base, axes_of(one), own_values, moving, replace(fit, coefficients=mine)))
    return tuple(families)


@dataclass(frozen=True, eq=False)
class _Solver:
    """Quantities of several contingencies at points, named by the contingency's number and their own name."""

    contingencies: tuple[Contingency, ...]
    networks: PointNetworks
    bases: Sequence[PhaseOperators]
    own: Float
    moving: Int

    def parts(self, x: Float) -> Parts:
        """Quantities (m, ...) at points (m, q) in [-1, 1]."""
        low, high = (ends[self.moving] for ends in limits_of(self.networks.axes))
        rows = []
        for moved in low + 0.5 * (x + 1.0) * (high - low):
            values = self.own.copy()
            values[self.moving] = moved
            rows.append(self._on(self.networks.at(values)))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if rows else {}

    def _on(self, network: Network) -> Parts:
        reduction = Reduction.of(network)
        compiled = compile_family(self.contingencies, reduction)
        groups = [operators.fault_point.nodes for operators in compiled if operators.fault_point is not None]
        transfers = reduction.transfers(groups)
        found: Parts = {}
        for k, (operators, base) in enumerate(zip(compiled, self.bases, strict=True)):
            turns = (
                2 * np.pi * np.round((operators.delta_0 - base.delta_0) / (2 * np.pi))
            )  # angles never jump by a turn
            mine: Parts = {name: getattr(operators, name) for name in REAL}
            mine["delta_0"] = mine["delta_0"] - turns
            none = np.zeros((1, operators.n_machines), dtype=complex)
            matrices = {"Y_pre": operators.Y_pre, "w": none, "u": none, "z": none[:, :1]}
            if operators.fault_point is not None:
                nodes = operators.fault_point.nodes
                matrices |= {
                    "w": transfers.to_machines(nodes).T,
                    "u": reduction.T[nodes],
                    "z": transfers.between(nodes),
                }
            if operators.post_core.size:
                matrices["Y_post"] = operators.Y_post
            for name, value in matrices.items():
                mine[f"{name}_re"], mine[f"{name}_im"] = value.real, value.imag
            found |= {f"{k}:{name}": value for name, value in mine.items()}
        return found


def _complex(parts: Parts, name: str) -> Complex:
    value: Complex = parts[f"{name}_re"] + 1j * parts[f"{name}_im"]
    return value
