"""Bases of the experts of a reduced family: principal components of a member's windows.

Inputs come in kinds (angles, speeds, accelerations, their derivatives, severity). Within a kind all machines are
measured by one size, so that those that move most count most; the kinds count alike. Remainders are measured in
the norm of kinetic energy, in which a machine counts by its inertia.
"""

import torch
from torch import Tensor

from espinn_moe.inputs import SMALLEST_SPREAD, StateInputs
from espinn_moe.reduced import ReducedMoE
from espinn_moe.window_data import SMALLEST_SCALE

FAINTEST = 1e-3  # of the largest component: fainter ones are not magnified further, they carry chained errors too


@torch.no_grad()
def set_basis(model: ReducedMoE, phase: int, member: int, inputs: Tensor, left: Tensor) -> None:
    """Give an expert its basis.

    Parameters
    ----------
    model : ReducedMoE
    phase, member : int
    inputs : Tensor (m, width)
        Descriptions of the member's windows.
    left : Tensor (m, n, terms)
        What its network has to give, pu.
    """
    center = inputs.mean(0)
    metric = _metric(model.inputs(phase), inputs - center)
    sizes, axes = _components((inputs - center) / metric)
    count = min(model.components, len(sizes))
    view = torch.zeros_like(model.view(phase)[member])
    faded = sizes[:count].clamp(min=float(FAINTEST * sizes[0].clamp(min=SMALLEST_SPREAD)))
    view[:, :count] = axes[:count].T / faded / metric[:, None]
    model.center(phase)[member], model.view(phase)[member] = center, view

    by_inertia = (len(model.physics.H) * model.physics.inertia_share).rsqrt()  # a unit of energy, as a speed
    size = (left / by_inertia[:, None]).square().mean().sqrt().clamp(min=SMALLEST_SCALE)
    model.scale(phase)[member] = (size * by_inertia)[:, None]
    sizes, shapes = _components((left / model.scale(phase)[member]).flatten(1))
    count = min(model.modes, len(sizes))
    modes = torch.zeros_like(model.shapes(phase)[member])
    modes[:count] = sizes[:count, None] * shapes[:count]
    model.shapes(phase)[member] = modes


@torch.no_grad()
def coordinates_of(model: ReducedMoE, phase: int, member: int, left: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinates (m, modes) of what is left to an expert (m, n, terms), and its mean square (m,) in units of usual."""
    scaled = (left / model.scale(phase)[member]).flatten(1)
    shapes = model.shapes(phase)[member]
    power = shapes.square().sum(-1).clamp(min=SMALLEST_SCALE**2)
    return scaled @ (shapes / power[:, None]).T, scaled.square().mean(-1)


def _metric(inputs: StateInputs, apart: Tensor) -> Tensor:
    """Unit of each input (width,): that of its kind, by the variation of the whole kind."""
    variance = apart.square().mean(0)
    unit = torch.empty_like(variance)
    begin = 0
    for width in inputs.kinds:
        kind = slice(begin, begin + width)
        unit[kind] = variance[kind].sum().sqrt()
        begin += width
    return torch.where(unit > SMALLEST_SPREAD, unit, torch.ones_like(unit))


def _components(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Root-mean-square sizes (q,) and axes (q, width) of rows (m, width), largest first."""
    values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
    return values.flip(0).clamp(min=0.0).sqrt(), vectors.flip(1).T
