"""From a boundary to a stored head: fit it, measure it, keep it with what was measured.

Three measurements travel with a head, all on severities drawn at random that no fit has seen:
how well it reconstructs the boundary it came from; its error against the fast reference ODE,
which calibrates the split-conformal bound; and its error against the strict reference ODE,
which decides whether it may be deployed. The strict ODE is asked at few severities, and confirms the
fast root from both sides (or searches itself, with the full protocol); the largest difference between
both references found there is added to the bound, which therefore holds for the strict one. A few
severities drawn at random may miss a short finite range, so the statuses are compared over the whole
domain too, with the fast ODE, whose whole clearing window is searched there.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from contingencies.confirmation import confirmed_boundaries
from contingencies.errors import UsageError
from contingencies.operator_family import OperatorFamily
from contingencies.operators import PhaseOperators
from contingencies.references import reference_boundary, reference_statuses
from contingencies.search import Vicinity
from contingencies.stability import TAU_ROOT_S, Boundary
from espinn_moe.condition_head import AnyHead
from espinn_moe.head import STATUSES, UNCERTAIN, Array, Head, HeadKind
from espinn_moe.head_errors import draw_severities, errors_against
from espinn_moe.head_fit import SCAN, fit_head
from espinn_moe.head_samples import BoundaryOf, Closer
from espinn_moe.head_series import NODES, TOLERANCE_S
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord, HeadRecord
from registry.store.heads import Measured, Statuses
from zoo.heads.sources import Source, checkpoint_source, reference_closer, reference_source
from zoo.judging.certificates import certificate_prefix
from zoo.lookup import expert_of, find_checkpoint
from zoo.work.reporting import Report, silent, within

CALIBRATION = 39  # severities behind the bound: the 38th smallest of 39 errors is the 95 % bound
RECONSTRUCTION = 19  # of them, at which a head is compared with the surrogate it follows
LOOKS = 32  # severities at which the statuses are compared: none of them among those of the fit's scan
NEAR_S = (-0.9e-3, 1.1e-3)  # from the head's answer: where a boundary is looked for first; parts do not end on it
STRICT = 12  # severities asked of the strict ODE, half of them where the head has a number
COARSEST_S = 1e-4  # a head follows even a poor surrogate to a tenth of a millisecond
EDGE = 35  # severities asked to find one edge of a finite range
PIECE = 3 * NODES  # severities asked to fit one series
ASKING = "asking the boundary"


StrictProtocol = Literal["confirm", "full"]


@dataclass(frozen=True)
class HeadSettings:
    """What kind of head is fitted, and how it is measured."""

    kind: HeadKind = "chebyshev"
    strict: int = STRICT  # severities asked of the strict ODE; 0 leaves the head unmeasured, and the gate refuses it
    seed: int = 0  # decides which severities are drawn
    protocol: StrictProtocol = "confirm"  # two simulations around the fast root, or a search of the whole window
    tolerance_s: float = TOLERANCE_S  # how closely the head follows the boundary


DEFAULT = HeadSettings()


@dataclass(frozen=True)
class Distilled:
    """A head with its bound, and what was measured."""

    head: AnyHead
    measured: Measured
    evaluations: int
    strict: Boundary  # where the strict ODE was asked, and what it said


def distill_boundary(source: Source, settings: HeadSettings = DEFAULT, report: Report = silent) -> Distilled:
    """Fit a head to any boundary of a contingency and measure it against the references.

    Parameters
    ----------
    source : Source
        A reference's boundary or a surrogate's, and the operators that the references simulate.
    settings : HeadSettings
    report : Report
        Hears how many severities have been asked, of about how many.
    """
    boundary, operators, seed = source.boundary, source.operators, settings.seed
    if operators.family is not None:
        return distill_family(source, operators.family, settings, report)
    network = None
    if settings.kind == "network":
        from espinn_moe.head_network import train

        network = train
    fit = fit_head(
        boundary,
        operators.severity,
        operators.window.t_f,
        network=network,
        tolerance_s=settings.tolerance_s,
        seed=seed,
        closer=source.closer if network is None else None,
        report=lambda asked: report(ASKING, asked, expected_severities(asked) + CALIBRATION),
    )
    head = fit.head
    drawn = draw_severities(head, CALIBRATION, seed + 1)
    followed = drawn if source.is_reference else drawn[:RECONSTRUCTION]
    reconstruction = errors_against(head, _near_head(head, followed, boundary, source.closer))
    report(ASKING, fit.evaluations + CALIBRATION, fit.evaluations + CALIBRATION)
    reference = reconstruction
    if not source.is_reference:
        fast = partial(reference_boundary, operators, reference="fast")
        reference = errors_against(head, _near_head(head, drawn, fast, reference_closer(operators)))
    asked = _strict_severities(head, settings.strict, seed + 2)
    truth, gap = _strict(operators, asked, settings.protocol, within(report, "asking the strict ODE", asked.size))
    # Roots are known to a tolerance, which an error measured between two of them need not show.
    bound = None if reference.bound_s is None else reference.bound_s + gap + TAU_ROOT_S
    low, high = head.severity
    looked = low + (high - low) * (np.arange(LOOKS) + 0.5) / LOOKS
    statuses = compare_statuses(head, looked, reference_statuses(operators, looked))
    measured = Measured(reconstruction, reference, errors_against(head, truth), statuses)
    return Distilled(replace(head, error_bound_s=bound), measured, fit.evaluations, truth)


def distill_family(source: Source, family: OperatorFamily, settings: HeadSettings, report: Report) -> Distilled:
    """A head over conditions and what was measured of it, over the whole domain."""
    from zoo.heads.condition_distill import distill_points, reference_points_source, surrogate_points_source

    if settings.kind != "chebyshev":
        raise UsageError(f"{family.base.name} has conditions, for which there is one kind of head; leave --kind out.")
    points = (
        reference_points_source(family, report)
        if source.surrogate is None
        else surrogate_points_source(source.surrogate, source.member)
    )
    head, measured, truth = distill_points(points, family, settings.strict, settings.seed, report=report)
    return Distilled(head, measured, measured.reconstruction.count, truth)


def expected_severities(asked: int) -> int:
    """About how many severities a fit asks, when so many are asked: one finite range, then more pieces of it."""
    usual = SCAN + EDGE + PIECE
    return usual + PIECE * max(0, -(-(asked - usual) // PIECE))


def compare_statuses(head: Head, alpha: Array, truth: Sequence[str]) -> Statuses:
    """Where a head and a reference with statuses `truth` have numbers, at severities (m,)."""
    codes, true = head.answers(alpha)[1], np.array(truth)
    status = np.array(STATUSES)[codes]
    return Statuses(
        count=int(codes.size),
        numbers=int((codes == 0).sum()),
        missed=int(((true == "finite") & (codes != 0)).sum()),
        disagreements=int(((status != true) & (codes != UNCERTAIN)).sum()),
    )


def _strict_severities(head: Head, n: int, seed: int) -> Array:
    """Half where the head has a number, half anywhere in its domain, to catch a wrong status."""
    finite = draw_severities(head, (n + 1) // 2, seed)
    anywhere = np.random.default_rng(seed + 1).uniform(*head.severity, n - finite.size)
    return np.concatenate([finite, anywhere])


def _near_head(head: Head, alpha: Array, boundary: BoundaryOf, closer: Closer | None) -> Boundary:
    """A boundary at severities (m,) where a head has numbers: looked for near these first, in full where not there."""
    if closer is None or not alpha.size:
        return boundary(alpha)
    cct = head.answers(alpha)[0]
    first, last = (np.clip(cct + step, *closer.window) for step in NEAR_S)
    found = closer.near(alpha, Vicinity(first, last, guess=cct))
    lost = np.flatnonzero(~found.finite)
    if not lost.size:
        return found
    in_full = boundary(alpha[lost])
    found.cct[lost] = in_full.cct
    status = np.array(found.status, dtype="<U14")
    status[lost] = in_full.status
    return replace(found, status=tuple(status.tolist()))


def _strict(
    operators: PhaseOperators, alpha: Array, protocol: StrictProtocol, report: Callable[[int], None]
) -> tuple[Boundary, float]:
    """The strict boundary at severities (m,), and the largest difference from the fast one there, s."""
    if protocol == "confirm":
        strict, fast = confirmed_boundaries(operators, alpha, report)
    else:
        strict = reference_boundary(operators, alpha, "strict", report)
        fast = reference_boundary(operators, alpha, "fast")
    difference = np.abs(strict.cct - fast.cct)
    return strict, float(np.nanmax(difference)) if np.isfinite(difference).any() else 0.0


def _points(boundary: Boundary) -> list[tuple[float, float | None, str]]:
    """Severity, CCT (s, None unless finite) and status of each point, as they are stored."""
    ccts = [float(cct) if np.isfinite(cct) else None for cct in boundary.cct]
    return list(zip(boundary.alpha.tolist(), ccts, boundary.status, strict=True))


def _worthwhile(checkpoint: CheckpointRecord) -> float:
    """A quarter of the surrogate's own mean CCT error, s: its bends below that are not worth following."""
    mean_ms = checkpoint.metrics.get("cct_mae_ms") or 0.0
    return min(max(0.25e-3 * mean_ms, TOLERANCE_S), COARSEST_S)


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
    settings: HeadSettings = DEFAULT,
    report: Report = silent,
) -> HeadRecord:
    """Distill and store a head of a registered contingency.

    `source` is "reference", "latest" (the newest finished checkpoint) or a checkpoint's number. A head follows a
    surrogate no closer than is worth while.
    """
    begin = time.process_time()
    checkpoint = None if source == "reference" else find_checkpoint(home, row, source)
    if checkpoint is None:
        distilled = distill_boundary(reference_source(home.contingency(row)), settings, report)
    else:
        settings = replace(settings, tolerance_s=_worthwhile(checkpoint))
        distilled = distill_boundary(checkpoint_source(home, row, checkpoint), settings, report)
    detail: dict[str, object] = {
        "evaluations": distilled.evaluations, "seed": settings.seed, "parameters": distilled.head.parameters
    }  # fmt: skip
    detail["strict_points"] = _points(distilled.strict)
    detail["build_s"] = round(time.process_time() - begin, 3)  # of the processor, gate measurements included
    if checkpoint is not None:
        detail["certificate"] = _certificate(checkpoint, expert_of(checkpoint, row))
    return home.add_head(row, distilled.head, distilled.measured, checkpoint.id if checkpoint else None, detail)
