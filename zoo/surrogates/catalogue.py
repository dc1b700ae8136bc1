"""Every surrogate of the zoo by name: how it is built, and what it is trained on.

A builder takes the members' operators and plain keyword arguments and returns a `Surrogate`; the
numbers of the paper are its defaults. Adding a surrogate means one file and one line here.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from contingencies.errors import NotFoundError, UsageError
from contingencies.operators import PhaseOperators
from zoo.surrogates.budgets import RESIDUALS, Form, Residual

if TYPE_CHECKING:  # a name is checked before torch is loaded
    from espinn_moe.surrogate import Scenarios, Surrogate
    from espinn_moe.train import Objective

DTYPES = ("float32", "float64")
WHOLE_SHARE = 0.5  # of post-clearing windows taken after synchronism was lost, without focus

NO_EVENTS = "it has no event states from which the swing equation could be followed"
WINDOWS = "its windows are steps of the swing equation already"


@dataclass(frozen=True)
class Entry:
    """One surrogate: its builder as "module:name", and how it differs from the builder's defaults."""

    name: str
    builder: str
    form: Form
    summary: str
    family: bool = False  # whether one model serves several contingencies
    settings: Mapping[str, Any] = field(default_factory=dict)
    objective: Mapping[str, Any] = field(default_factory=dict)
    mode: Literal["separate", "baseline"] = "separate"  # of its runs; those of a family are "moe"
    residual: Residual = "pointwise"  # unless another is asked for
    no_shooting: str = ""  # why the shooting residual does not apply, if it does not


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "es-pinn", "espinn_moe.one_shot:ESPINN", "one-shot", "hard-chained phases, Taylor-gated (the paper)",
            residual="shooting",
        ),
        Entry(
            "es-pinn-chained", "espinn_moe.chained:ChainedESPINN", "chained", "hard-chained short windows",
            no_shooting=WINDOWS,
        ),
        Entry(
            "vanilla-pinn", "zoo.surrogates.baselines.vanilla_pinn:VanillaPINN", "one-shot", "one global tanh network",
            mode="baseline", no_shooting=NO_EVENTS,
        ),
        Entry(
            "xpinn", "zoo.surrogates.baselines.xpinn:EnhancedXPINN", "one-shot", "phase networks, soft interfaces",
            mode="baseline",
        ),
        Entry(
            "pi-deeponet", "zoo.surrogates.baselines.pi_deeponet:PIDeepONet", "one-shot", "branch and trunk networks",
            mode="baseline", no_shooting=NO_EVENTS,
        ),
        Entry(
            "es-pinn-state-only", "espinn_moe.one_shot:ESPINN", "one-shot", "ablation: event derivatives left free",
            settings={"event_rate": "free"},
        ),
        Entry(
            "es-pinn-soft-chain", "espinn_moe.one_shot:ESPINN", "one-shot", "ablation: penalty instead of chaining",
            settings={"chain": "soft"},
        ),
        Entry(
            "es-pinn-no-residual", "espinn_moe.one_shot:ESPINN", "one-shot", "ablation: no physics residuals",
            objective={"residual_weight": 0.0}, no_shooting="it is the ablation without residuals",
        ),
        Entry(
            "moe", "espinn_moe.one_shot:HardRoutedMoE", "one-shot", "experts of a family (the paper)", family=True,
            residual="shooting",
        ),
        Entry(
            "moe-chained", "espinn_moe.reduced:chained_family", "chained", "experts on short windows", family=True,
            no_shooting=WINDOWS,
        ),
    )
}  # fmt: skip


def entry_of(name: str) -> Entry:
    """The catalogue's entry of a name."""
    if name not in CATALOGUE:
        raise NotFoundError(f"model {name[:60]!r} is not in the catalogue; use one of {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def residual_of(name: str, residual: Residual | None = None) -> Residual:
    """The residual a model is trained with: the one asked for, or its own; refused where it does not apply."""
    entry = entry_of(name)
    chosen = residual or entry.residual
    if chosen not in RESIDUALS:
        raise UsageError(f"residual {chosen!r} is not known; use {' or '.join(RESIDUALS)}.")
    if chosen == "shooting" and entry.no_shooting:
        raise UsageError(
            f"the shooting residual does not apply to {name}: {entry.no_shooting}; use --residual pointwise."
        )
    return chosen


def list_models() -> list[str]:
    """All names, in the order of the catalogue."""
    return list(CATALOGUE)


def create_model(name: str, members: Sequence[PhaseOperators], seed: int = 0, **settings: Any) -> "Surrogate":
    """An untrained surrogate.

    Parameters
    ----------
    name : str
        One of `list_models()`.
    members : sequence of PhaseOperators
        The contingencies it is to serve; one, unless the model is one for families.
    seed : int
        Of the initial weights; the global random state is left as it was.
    settings
        Builder arguments that replace the catalogue's.
    """
    import torch

    from espinn_moe.surrogate import Surrogate

    entry = entry_of(name)
    if settings.get("dtype", "float64") not in DTYPES:
        raise UsageError(f"dtype {settings['dtype']!r} is not known; use {' or '.join(DTYPES)}.")
    module, _, attribute = entry.builder.partition(":")
    builder = getattr(importlib.import_module(module), attribute)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        surrogate = builder(members, **{**entry.settings, **settings})
    assert isinstance(surrogate, Surrogate)
    return surrogate


def make_objective(
    name: str,
    surrogate: "Surrogate",
    scenarios: "Sequence[Scenarios]",
    *,
    focus: bool = True,
    residual: Residual | None = None,
    **options: Any,
) -> "Objective":
    """What a surrogate of this name is trained on.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    surrogate : Surrogate
        Built and calibrated.
    scenarios : sequence of Scenarios
        Training trajectories, one entry per member.
    focus : bool
        Learn the part of a trajectory that decides stability (before the separation first passes 1.5 pi); chained
        models see a little of the rest even so, because their chain runs on to the end of the study.
    residual : "pointwise" or "shooting", optional
        How the swing equation is held to; by default the model's own way. Shooting needs a plan with two stages
        (`zoo.surrogates.budgets.plan_for`).
    options
        Objective arguments that replace the catalogue's.
    """
    from espinn_moe.chained import Chained
    from espinn_moe.losses import TrajectoryObjective
    from espinn_moe.reduced import ReducedMoE
    from espinn_moe.reduced_losses import ReducedObjective
    from espinn_moe.shooting import ShootingObjective
    from espinn_moe.surrogate import EventSurrogate
    from espinn_moe.window_losses import WindowObjective

    chosen = {**entry_of(name).objective, **options}
    if isinstance(surrogate, Chained):
        if not focus:
            chosen.setdefault("lost_share", WHOLE_SHARE)
        if isinstance(surrogate, ReducedMoE):
            return ReducedObjective(surrogate, scenarios, **chosen)
        return WindowObjective(surrogate, scenarios, **chosen)
    if residual_of(name, residual) == "shooting":
        assert isinstance(surrogate, EventSurrogate)
        return ShootingObjective(surrogate, scenarios, decisive=focus, **chosen)
    return TrajectoryObjective(surrogate, scenarios, decisive=focus, **chosen)
