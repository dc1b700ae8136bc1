"""From a boundary to a stored head: fit it, measure it, keep it with what was measured.

Three measurements travel with a head, all on severities drawn at random that no fit has seen:
how well it reconstructs the boundary it came from; its error against the fast reference ODE,
which calibrates the split-conformal bound; and its error against the strict reference ODE,
which decides whether it may be deployed. The strict ODE costs seconds per severity, so it is
asked at few of them; the largest difference between both references found there is added to
the bound, which therefore holds for the strict one. A few severities drawn at random may miss a
short finite range, so the statuses are compared over the whole domain too, with the fast ODE.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from contingencies.library import Contingency
from contingencies.references import reference_boundary
from contingencies.stability import Boundary
from espinn_moe.head import STATUSES, Array, Head, HeadKind
from espinn_moe.head_fit import TOLERANCE_S, BoundaryOf, draw_severities, errors_against, fit_head
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord, HeadRecord
from registry.store.heads import Measured, Statuses
from zoo.heads.sources import checkpoint_source, reference_source
from zoo.judging.certificates import certificate_prefix
from zoo.lookup import expert_of, find_checkpoint

CALIBRATION = 99  # severities behind the bound: the 95th smallest of 99 errors is the 95 % bound
LOOKS = 101  # severities at which the statuses are compared
STRICT = 12  # severities asked of the strict ODE, half of them where the head has a number
COARSEST_S = 1e-4  # a head follows even a poor surrogate to a tenth of a millisecond
Report = Callable[[str, int, int], None]  # stage, done, total


def _silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Distilled:
    """A head with its bound, and what was measured."""

    head: Head
    measured: Measured
    evaluations: int


def distill_boundary(
    boundary: BoundaryOf,
    contingency: Contingency,
    *,
    kind: HeadKind = "chebyshev",
    strict: int = STRICT,
    tolerance_s: float = TOLERANCE_S,
    seed: int = 0,
    report: Report = _silent,
) -> Distilled:
    """Fit a head to any boundary of a contingency and measure it against the references.

    Parameters
    ----------
    boundary : callable
        Severities (m,) -> Boundary: a reference's or a surrogate's.
    contingency : Contingency
        What the boundary belongs to; its references are compiled from it.
    kind : "chebyshev" or "network"
    strict : int
        Severities asked of the strict ODE; 0 leaves the head unmeasured, and the gate refuses it.
    tolerance_s : float
        How closely the head follows the boundary, s.
    seed : int
        Decides which severities are drawn.
    report : callable
        Told (stage, done, total) as the work goes on.
    """
    from contingencies.operators import compile_contingency

    operators = compile_contingency(contingency)
    network = None
    if kind == "network":
        from espinn_moe.head_network import train

        network = train
    fit = fit_head(
        boundary,
        contingency.spec.severity,
        contingency.spec.window.t_f,
        network=network,
        tolerance_s=tolerance_s,
        seed=seed,
        report=lambda asked: report("fit", asked, 0),
    )
    head = fit.head
    drawn = draw_severities(head, CALIBRATION, seed + 1)
    reconstruction = errors_against(head, boundary(drawn))
    reference = errors_against(head, reference_boundary(operators, drawn, "fast"))
    asked = _strict_severities(head, strict, seed + 2)
    truth = reference_boundary(operators, asked, "strict", lambda done: report("strict", done, asked.size))
    gap = _reference_gap(truth, reference_boundary(operators, asked, "fast"))
    bound = None if reference.bound_s is None else reference.bound_s + gap
    looked = reference_boundary(operators, np.linspace(*head.severity, LOOKS), "fast")
    measured = Measured(reconstruction, reference, errors_against(head, truth), compare_statuses(head, looked))
    return Distilled(replace(head, error_bound_s=bound), measured, fit.evaluations)


def compare_statuses(head: Head, truth: Boundary) -> Statuses:
    """Where a head and a reference have numbers, at the reference's severities."""
    codes = head.answers(truth.alpha)[1]
    status = np.array(STATUSES)[codes]
    return Statuses(
        count=int(codes.size),
        numbers=int((codes == 0).sum()),
        missed=int((truth.finite & (codes != 0)).sum()),
        disagreements=int((status != np.array(truth.status)).sum()),
    )


def _strict_severities(head: Head, n: int, seed: int) -> Array:
    """Half where the head has a number, half anywhere in its domain, to catch a wrong status."""
    finite = draw_severities(head, (n + 1) // 2, seed)
    anywhere = np.random.default_rng(seed + 1).uniform(*head.severity, n - finite.size)
    return np.concatenate([finite, anywhere])


def _reference_gap(strict: Boundary, fast: Boundary) -> float:
    """Largest difference between the two references, s."""
    difference = np.abs(strict.cct - fast.cct)
    return float(np.nanmax(difference)) if np.isfinite(difference).any() else 0.0


def _worthwhile(checkpoint: CheckpointRecord) -> float:
    """A tenth of the surrogate's own mean CCT error, s: its bends below that are not worth following."""
    mean_ms = checkpoint.metrics.get("cct_mae_ms") or 0.0
    return min(max(1e-4 * mean_ms, TOLERANCE_S), COARSEST_S)


def _certificate(checkpoint: CheckpointRecord, expert: int) -> dict[str, float]:
    """The estimated errors of one expert, as the checkpoint carries them."""
    prefix = certificate_prefix(expert)
    return {
        name.removeprefix(prefix): value
        for name, value in checkpoint.metrics.items()
        if name.startswith(prefix) and value is not None
    }


def distill(
    home: Home,
    row: ContingencyRecord,
    source: str = "reference",
    *,
    kind: HeadKind = "chebyshev",
    strict: int = STRICT,
    seed: int = 0,
    report: Report = _silent,
) -> HeadRecord:
    """Distill and store a head of a registered contingency.

    `source` is "reference", "latest" (the newest finished checkpoint) or a checkpoint's number.
    """
    contingency = home.contingency(row)
    checkpoint = None if source == "reference" else find_checkpoint(home, row, source)
    boundary = reference_source(contingency) if checkpoint is None else checkpoint_source(home, row, checkpoint)
    tolerance = TOLERANCE_S if checkpoint is None else _worthwhile(checkpoint)
    made = distill_boundary(
        boundary, contingency, kind=kind, strict=strict, tolerance_s=tolerance, seed=seed, report=report
    )
    detail: dict[str, object] = {"evaluations": made.evaluations, "seed": seed, "parameters": made.head.parameters}
    if checkpoint is not None:
        detail["certificate"] = _certificate(checkpoint, expert_of(checkpoint, row))
    return home.add_head(row, made.head, made.measured, checkpoint.id if checkpoint else None, detail)
