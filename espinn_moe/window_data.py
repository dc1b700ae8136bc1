"""What chained models learn from: windows cut out of training trajectories.

A window starts at any stored sample of a learned phase and ends `window_s` later in the same
phase; the samples in between are its targets. Only the given scenarios are used. Fault-on samples do not
depend on t_c, so each severity contributes its longest fault.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from espinn_moe.ansatz import taylor
from espinn_moe.chained import Chained
from espinn_moe.phases import FAULT_ON, POST_CLEARING, settled
from espinn_moe.physics import Expansion
from espinn_moe.surrogate import Scenarios

NODES = 3  # samples per window; with angles and speeds at each they outnumber the terms of the remainder
ROWS_AT_ONCE = 8192  # windows whose operators are held in memory together
SMALLEST_SCALE = 1e-12  # pu; a machine that never moves leaves no remainder to scale by


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Windows of one learned phase, sorted by member."""

    x: Tensor  # (m, 2 n) states at the start
    targets: Tensor  # (m, J, 2 n) states at the nodes
    alpha: Tensor  # (m,)
    member: Tensor  # (m,) int64
    lost: Tensor  # (m,) bool: synchronism was lost before the start
    nodes: Tensor  # (J,) fractions of the window
    conditions: Tensor | None = None  # (m, d) operating points, of a model with conditions


def cut_windows(
    model: Chained, scenarios: Sequence[Scenarios], per_member: int, generator: np.random.Generator
) -> tuple[WindowSet, WindowSet]:
    """Windows of both learned phases, at most `per_member` of each phase and member, chosen at random.

    Parameters
    ----------
    model : Chained
        Says how long a window is and when the fault begins.
    scenarios : sequence of Scenarios
        One entry per member, on output times that divide a window.
    per_member : int
    generator : numpy Generator
        Of the choice.
    """
    found = [member_windows(model, member, data, per_member, generator) for member, data in enumerate(scenarios)]
    return _joined([fault_on for fault_on, _ in found]), _joined([post_clearing for _, post_clearing in found])


def member_windows(
    model: Chained, member: int, data: Scenarios, per_member: int, generator: np.random.Generator
) -> tuple[WindowSet, WindowSet]:
    """Windows of both learned phases of one member; arguments as for `cut_windows`."""
    name = model.members[member].name
    if len(data.alpha) == 0:
        raise UsageError(f"{name} has no training scenario left; use a larger data fraction.")
    spacing = float(data.t[1] - data.t[0])
    nodes = round(model.window_s / spacing)
    if nodes < 1 or abs(nodes * spacing - model.window_s) > 1e-6 * spacing:
        raise UsageError(
            f"windows of {model.window_s} s are not whole steps of the trajectories' {spacing:.3g} s grid; "
            "choose one that is."
        )
    kept = np.unique(np.ceil(np.linspace(0, nodes, min(nodes, NODES) + 1)[1:]).astype(int))
    lost = settled(data.states[..., : model.n_machines])
    phases = []
    for phase in (FAULT_ON, POST_CLEARING):
        scenario, sample = _starts(data, phase, nodes, model.t_f)
        if len(scenario) == 0:
            raise UsageError(
                f"{name}: its {len(data.alpha)} training scenarios hold no complete window of {model.window_s} s; "
                "use a larger data fraction or shorter windows."
            )
        chosen = np.sort(generator.permutation(len(scenario))[:per_member])
        scenario, sample = scenario[chosen], sample[chosen]
        parts = (
            data.states[scenario, sample],
            data.states[scenario[:, None], sample[:, None] + kept],
            data.alpha[scenario],
            np.full(len(scenario), member),
            lost[scenario, sample],
            data.conditions[scenario] if data.conditions is not None else np.empty((len(scenario), 0)),
        )
        phases.append(_window_set(model, parts, torch.as_tensor(kept / nodes, dtype=model.dtype)))
    return phases[0], phases[1]


def calibrate(model: Chained, windows: tuple[WindowSet, WindowSet]) -> None:
    """Standardise the inputs of a chained model and size its remainders, from training windows; once per model."""
    if model.calibrated:
        return
    for phase, data in zip((FAULT_ON, POST_CLEARING), windows, strict=True):
        decisive = ~data.lost
        raw = model.described(phase, starts(model, phase, data), data.alpha, data.conditions, raw=True)
        model.inputs(phase).calibrate(raw[decisive])
        coefficients = fitted_remainder(model, phase, data)
        experts = model.expert(phase, data.member)
        assert isinstance(experts, Tensor)
        for expert in set(model.expert_of[phase]):
            rows = decisive & (experts == expert)
            rows = rows if rows.any() else experts == expert
            size = coefficients[rows].square().mean(0).sqrt()
            model.scale(phase)[expert] = size.clamp(min=SMALLEST_SCALE)
    model.calibrated.fill_(True)


def starts(model: Chained, phase: int, data: WindowSet) -> Expansion:
    """Local expansions at the start of all windows, some thousand at a time: each has an operator of its own."""
    parts = []
    for rows in torch.arange(len(data.x), device=data.x.device).split(ROWS_AT_ONCE):
        point = None if data.conditions is None else data.conditions[rows]
        operator = model.operator(phase, data.alpha[rows], data.member[rows], point)
        parts.append(model.physics.expand(operator, data.x[rows]))
    columns = zip(*((part.delta, part.omega, part.v, part.a, part.b) for part in parts), strict=True)
    return Expansion(*(torch.cat(column) for column in columns))


def remainders(model: Chained, phase: int, data: WindowSet) -> tuple[Tensor, Tensor]:
    """Taylor expansion at the nodes, and what the targets leave beyond it, (m, J, 2 n) each."""
    expansion = taylor(
        starts(model, phase, data).for_samples(),
        (model.window_s * data.nodes).expand(len(data.x), -1),
        model.physics.omega_b,
    )
    return expansion, data.targets - expansion


def fitted_remainder(model: Chained, phase: int, data: WindowSet) -> Tensor:
    """Coefficients (m, n, terms) that fit the remainder of speeds and angles at the nodes best."""
    _, left = remainders(model, phase, data)
    delta, omega = left.mT.chunk(2, dim=1)  # (m, n, J) each
    phi, _, integral = model.basis(data.nodes)
    observed = torch.cat([omega, delta / (model.physics.omega_b * model.window_s)], dim=-1)
    return observed @ torch.linalg.pinv(torch.cat([phi, integral])).mT


def _starts(data: Scenarios, phase: int, nodes: int, t_f: float) -> tuple[np.ndarray, np.ndarray]:
    """Scenario and sample (m,) each of all windows of a phase."""
    begins = np.broadcast_to(t_f, data.t_c.shape) if phase == FAULT_ON else data.t_c
    ends = data.t_c if phase == FAULT_ON else np.broadcast_to(data.t[-1], data.t_c.shape)
    rounding = 1e-6 * (data.t[1] - data.t[0])
    inside = (data.t >= begins[:, None] - rounding) & (data.t <= ends[:, None] + rounding)
    starts = np.zeros_like(inside)
    starts[:, : inside.shape[1] - nodes] = inside[:, :-nodes] & inside[:, nodes:]
    if phase == FAULT_ON:
        order = np.lexsort((-data.t_c, data.alpha))
        point = np.zeros((len(order), 0)) if data.conditions is None else data.conditions
        fault = np.column_stack([data.alpha, point])  # what the fault-on states depend on
        longest = order[np.unique(fault[order], axis=0, return_index=True)[1]]
        repeated = np.ones(len(data.alpha), dtype=bool)
        repeated[longest] = False
        starts[repeated] = False
    scenario, sample = np.nonzero(starts)
    return scenario, sample


def _joined(sets: list[WindowSet]) -> WindowSet:
    """Windows of several members, one after another."""
    columns = {
        name: torch.cat([getattr(each, name) for each in sets]) for name in ("x", "targets", "alpha", "member", "lost")
    }
    points = [each.conditions for each in sets if each.conditions is not None]
    return WindowSet(**columns, nodes=sets[0].nodes, conditions=torch.cat(points) if points else None)


def _window_set(model: Chained, parts: tuple[np.ndarray, ...], nodes: Tensor) -> WindowSet:
    x, targets, alpha, member, lost, conditions = parts
    device = model.calibrated.device
    return WindowSet(
        x=torch.as_tensor(x, dtype=model.dtype, device=device),
        targets=torch.as_tensor(targets, dtype=model.dtype, device=device),
        alpha=torch.as_tensor(alpha, dtype=model.dtype, device=device),
        member=torch.as_tensor(member, device=device),
        lost=torch.as_tensor(lost, device=device),
        nodes=nodes.to(device),
        conditions=torch.as_tensor(conditions, dtype=model.dtype, device=device) if conditions.shape[1] else None,
    )
