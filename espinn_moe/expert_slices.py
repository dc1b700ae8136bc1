"""Which part of a family's weights belongs to which member: the key to adding and removing experts.

Experts of a family are kept as one tensor with a slice per expert. Everything else (trunk, necks, scales of the
inputs) is shared by all members.
"""

import torch
from torch import Tensor

from contingencies.errors import UsageError
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.one_shot import HardRoutedMoE
from espinn_moe.reduced import BASIS, NAMES, ReducedMoE
from espinn_moe.surrogate import Surrogate

Slices = dict[str, tuple[int, ...]]  # name of a stored tensor -> the slice that each member uses


def member_slices(surrogate: Surrogate) -> Slices:
    """For every stored tensor with one slice per expert, the slice of each member; members may share one."""
    own = tuple(range(len(surrogate.members)))
    if isinstance(surrogate, ChainedMoE):
        fault, post = surrogate.expert_of
        slices: Slices = {"fault_scale": fault, "post_scale": post}
    elif isinstance(surrogate, ReducedMoE):
        fault, post = own, own
        slices = {f"{phase}_{part}": own for phase in NAMES for part in ("scale", *BASIS)}
    elif isinstance(surrogate, HardRoutedMoE):
        fault, post = own, own
        slices = {"output_scale": own}
    else:
        raise UsageError(f"{type(surrogate).__name__} has no experts; use a model of train-moe.")
    for phase, index in enumerate((fault, post)):
        names = surrogate.experts[phase].state_dict()
        slices |= {f"experts.{phase}.{name}": index for name in names}
    return slices


def new_slices(surrogate: Surrogate, member: int) -> set[str]:
    """Names of the tensors in which no earlier member uses the slice of `member`."""
    return {name for name, index in member_slices(surrogate).items() if index[member] not in index[:member]}


def copy_members(source: Surrogate, target: Surrogate, members: dict[int, int]) -> None:
    """Give the shared part and some members' experts of one family to another.

    Parameters
    ----------
    source, target : Surrogate
        Families of the same model and settings.
    members : {member of the source: member of the target}
    """
    theirs, ours = member_slices(source), member_slices(target)
    state: dict[str, Tensor] = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    for name, tensor in source.state_dict().items():
        if name not in theirs:
            state[name] = tensor
            continue
        for before, after in members.items():
            state[name][ours[name][after]] = tensor[theirs[name][before]]
    target.load_state_dict(state)


def answers_equal(first: Surrogate, second: Surrogate, members: dict[int, int], samples: int = 64) -> bool:
    """Whether members {of the first: of the second} give the same states, bit for bit, at random scenarios."""
    generator = torch.Generator().manual_seed(0)
    window = first.members[0].window
    share = torch.rand(3, samples, generator=generator, dtype=torch.float64).to(first.dtype)
    t, t_c = window.T * share[0], window.t_c[0] + (window.t_c[1] - window.t_c[0]) * share[2]
    for before, after in members.items():
        low, high = first.members[before].severity
        alpha = low + (high - low) * share[1]
        with torch.no_grad():
            if not torch.equal(first.states(t, alpha, t_c, before), second.states(t, alpha, t_c, after)):
                return False
    return True
