"""What every surrogate answers: states over time, severity and clearing instant, differentiable in all three.

Boundary extraction, metrics, training and registration work on this interface alone. A surrogate
carries the operators of its members (one entry for a single-contingency model); a row of a batch
belongs to one member.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from contingencies.points import Axis

Member = int | Tensor  # index into Surrogate.members; a tensor of indices broadcasts with the other arguments
# Severities by position (s,), times (k,) or (s, k), clearing instants (s, c), a limit or none, as `trajectories` takes
# them -> states (s, c, k, 2 n)
Follow = Callable[[Tensor, Tensor, Tensor, float | None], Tensor]


class Scenarios(Protocol):
    """Complete trajectories of one member, as NumPy arrays."""

    @property
    def alpha(self) -> np.ndarray:
        """(s,) severities"""

    @property
    def t_c(self) -> np.ndarray:
        """(s,) clearing instants, s"""

    @property
    def t(self) -> np.ndarray:
        """(k,) output times, s, evenly spaced from 0 to T"""

    @property
    def states(self) -> np.ndarray:
        """(s, k, 2 n) angles in rad, then speeds in pu"""

    @property
    def conditions(self) -> np.ndarray | None:
        """(s, d) operating points; None for members without conditions"""


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples of trajectories: one instant of one scenario of one member each."""

    t: Tensor  # (m,) s
    alpha: Tensor  # (m,)
    t_c: Tensor  # (m,) s
    member: Tensor  # (m,) int64
    states: Tensor  # (m, 2 n) angles in rad, then speeds in pu


class Surrogate(torch.nn.Module, ABC):
    """A model of all trajectories of its members.

    Parameters
    ----------
    members : sequence of PhaseOperators
        Contingencies of one system with one study window.
    dtype : torch.dtype
        Of parameters and answers.
    """

    knows_conditions = False  # whether rows may have operating points of their own
    margin_kind: Literal["smooth", "hard"] = "smooth"  # by which margin its boundary is read unless told otherwise

    def __init__(self, members: Sequence[PhaseOperators], dtype: torch.dtype) -> None:
        super().__init__()
        check_members(members)
        if members[0].family is not None and not self.knows_conditions:
            raise UsageError(
                f"{members[0].name} has conditions, and this model learns one operating point only; "
                "use es-pinn-chained or moe-chained."
            )
        self.members = tuple(members)
        self.dtype = dtype
        family = members[0].family
        self.axes: tuple[Axis, ...] = () if family is None else family.axes  # conditions that the model knows

    @property
    def n_machines(self) -> int:
        return self.members[0].n_machines

    @property
    def n_parameters(self) -> int:
        """Trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    @abstractmethod
    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        """States at instants t of scenarios (alpha, t_c).

        Parameters
        ----------
        t, alpha, t_c : Tensor
            Broadcastable to a common shape (...); s, 1, s.
        member : int or int64 Tensor
            Which contingency; a tensor broadcasts with the others.

        Returns
        -------
        Tensor (..., 2 n)
            Angles in rad, then absolute speeds in pu.
        """

    @abstractmethod
    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        """States and their right-hand time derivatives (rad/s, pu/s), each (..., 2 n), in one forward pass."""

    def states_and_first_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        """States (m, 2 n) of rows (m,), and right-hand time derivatives (r, 2 n) of the first r = `rated` of them."""

        def part(rows: slice) -> tuple[Tensor, Tensor, Tensor, Member]:
            return t[rows], alpha[rows], t_c[rows], member[rows] if isinstance(member, Tensor) else member

        states, rates = self.states_and_rates(*part(slice(rated)))
        return torch.cat([states, self.states(*part(slice(rated, None)))]), rates

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Builder arguments as plain JSON values: with the members enough to rebuild the model."""

    def trajectories(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: int = 0, limit: float | None = None
    ) -> Tensor:
        """States (a, c, k, 2 n) of severities alpha (a,), each with its clearing instants and times.

        Parameters
        ----------
        t : Tensor (k,) or (a, k)
            Times in order, s; the same for all severities, or each its own.
        alpha : Tensor (a,)
        t_c : Tensor (c,) or (a, c)
            Clearing instants in order, s; likewise.
        member : int
            Which contingency.
        limit : float, optional
            Separation, rad, beyond which nothing more is asked of a trajectory: once it has passed the limit after
            clearing, it may stay where it is.
        """
        return self.states(t[..., None, :], alpha[:, None, None], t_c[..., None], member)

    def follow(self, alpha: Tensor, member: int = 0) -> Follow:
        """Trajectories of severities alpha (a,) that are asked for again and again, with other clearing instants."""
        return lambda row, t, t_c, limit: self.trajectories(t, alpha[row], t_c, member, limit)

    def calibrate(self, scenarios: Sequence[Scenarios]) -> None:
        """Fix the scales of inputs and outputs from training trajectories, one entry per member; once per model."""

    def extra_terms(self, rows: Rows) -> dict[str, Tensor]:
        """Named mean-squared penalties beside data and residuals, each made comparable to the data misfit."""
        return {}


class EventSurrogate(Surrogate):
    """A surrogate whose learned phases meet in event states, from which the swing equation can be followed.

    *Forward-only* answers have the same values, but what is learned after clearing does not change the fault-on part:
    the post-clearing part follows it, not the other way round.
    """

    @abstractmethod
    def fault_on_states(self, t: Tensor, alpha: Tensor, member: Member = 0) -> Tensor:
        """States (..., 2 n) at instants t from t_f on while the fault lasts; at t = t_c, the event states."""

    @abstractmethod
    def states_and_first_rates_forward_only(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        """The same for rows from t_f on, without gradients from post-clearing into fault-on parameters."""

    def states_forward_only(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        """States (m, 2 n) of such rows alone, likewise."""
        return self.states_and_first_rates_forward_only(t, alpha, t_c, member, 0)[0]

    def extra_terms_forward_only(self, rows: Rows) -> dict[str, Tensor]:
        """The penalties of `extra_terms`, one-sided."""
        return self.extra_terms(rows)


def check_members(members: Sequence[PhaseOperators]) -> None:
    """Refuse members that one model cannot hold: none, duplicates, other machines, other windows, tripped machines."""
    if not members:
        raise UsageError("a model needs at least one contingency.")
    first, names = members[0], set()
    for operators in members:
        if operators.name in names:
            raise UsageError(f"contingency {operators.name} is named twice; give each member once.")
        names.add(operators.name)
        if operators.machine_buses != first.machine_buses or not np.array_equal(operators.delta_0, first.delta_0):
            raise UsageError(
                f"{operators.name} and {first.name} belong to different systems; one model serves one system."
            )
        if operators.window != first.window:
            raise UsageError(
                f"{operators.name} and {first.name} have different study windows; one model serves one window."
            )
        if operators.tripped_machines:
            raise UsageError(
                f"{operators.name} trips a generator at clearing, whose angle then no longer counts; surrogates do not "
                "learn that, so ask 'cct-zoo reference-cct', or distill a head from the ODE."
            )
