"""Where the swing equation, followed from a surrogate's own event states, loses synchronism.

Not the boundary that the surrogate's post-clearing part has learned, but the one it is to learn: it depends on the
fault-on part alone, costs no evaluation of the post-clearing one, and is where labels jump.
"""

import math

import numpy as np
import torch
from torch import Tensor

from contingencies.network import Float
from contingencies.rollouts import after_clearing
from contingencies.separation import spread
from espinn_moe.surrogate import EventSurrogate

MAP_POINTS = 51  # per axis of a look at the whole domain
HALVINGS = 11  # of a cell of it: 20 ms to 0.01 ms
AT_ONCE = 512  # rollouts held in memory at a time


@torch.no_grad()
def event_states(model: EventSurrogate, member: int, alpha: Float, t: Float) -> Float:
    """The model's fault-on states (p, 2 n) of severities alpha (p,) at instants t (p,), without gradient."""
    device = next(model.parameters()).device
    when, severity = (torch.as_tensor(values, dtype=model.dtype, device=device) for values in (t, alpha))
    routed = torch.full((len(t),), member, device=device) if len(model.members) > 1 else 0
    states: Float = model.fault_on_states(when, severity, routed).double().numpy(force=True)
    return states


def unstable(model: EventSurrogate, member: int, pairs: Float) -> np.ndarray:
    """Whether rollouts of pairs (p, 2) of severity and clearing instant lose synchronism, (p,)."""
    operators, answers = model.members[member], []
    for part in np.array_split(pairs, math.ceil(len(pairs) / AT_ONCE)):
        x = event_states(model, member, part[:, 0], part[:, 1])
        _, states = after_clearing(operators, x, part[:, 1])
        answers.append((spread(states[..., : model.n_machines]) > operators.max_separation).any(axis=1))
    return np.concatenate(answers)


def boundary_points(model: EventSurrogate, member: int, generator: torch.Generator) -> Tensor:
    """Points (b, 2) in (alpha, t_c) where rollouts from the model's event states change sides.

    Found in the cells of a map, along both of its axes, so that neither a flat nor a steep piece is missed; the axes
    are shifted at random each time.
    """
    operators = model.members[member]
    shift = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
    alpha, t_c = (
        low + (high - low) * (np.arange(MAP_POINTS) + u) / MAP_POINTS
        for (low, high), u in zip((operators.severity, operators.window.t_c), shift, strict=True)
    )
    grid = np.stack(np.meshgrid(alpha, t_c, indexing="ij"), axis=-1)  # (a, c, 2)
    lost = unstable(model, member, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    later, worse = lost[:, :-1] != lost[:, 1:], lost[:-1] != lost[1:]
    begin = np.concatenate([grid[:, :-1][later], grid[:-1][worse]])
    end = np.concatenate([grid[:, 1:][later], grid[1:][worse]])
    before = np.concatenate([lost[:, :-1][later], lost[:-1][worse]])
    for _ in range(HALVINGS if len(begin) else 0):
        middle = 0.5 * (begin + end)
        same = (unstable(model, member, middle) == before)[:, None]
        begin, end = np.where(same, middle, begin), np.where(same, end, middle)
    return torch.as_tensor(0.5 * (begin + end))
