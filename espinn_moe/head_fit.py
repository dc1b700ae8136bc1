"""Fitting a head to any boundary: the reference's or a surrogate's, through the same call.

The severity range is scanned, every change of status is bisected, and each finite interval gets Chebyshev series
(`head_pieces`, `head_series`). A boundary that jumps too often to be resolved with the severities that may be asked
(`head_samples`) is settled with what is known, and uncertain elsewhere (`head_settle`). What a head is worth is
measured afterwards (`head_errors`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from espinn_moe.head import Array, Head, Segment, TanhReadout
from espinn_moe.head_pieces import fit_interval
from espinn_moe.head_samples import (
    BoundaryOf,
    Closer,
    Report,
    Samples,
    SpentError,
    ask_last_margins,
    bisect_edges,
    runs_of,
)
from espinn_moe.head_series import NODES, TOLERANCE_S
from espinn_moe.head_settle import settle

COARSE = 17  # severities whose whole clearing window is searched first, where a source can look closer
SCAN = 65  # severities of the first scan; a status that lasts less than 1/64 of the range may go unseen
EDGE_TOLERANCE = 1e-12  # of the severity range: sqrt of it, times a slope of seconds, is below a microsecond


@dataclass(frozen=True)
class HeadFit:
    """A head and what it cost: how many severities the boundary was asked for."""

    head: Head
    evaluations: int
    asked: Array  # those severities, in order


def fit_head(
    boundary: BoundaryOf,
    severity: tuple[float, float],
    t_f: float,
    *,
    network: Callable[[Array, Array], TanhReadout] | None = None,
    tolerance_s: float = TOLERANCE_S,
    seed: int = 0,
    report: Report = lambda asked: None,
    closer: Closer | None = None,
) -> HeadFit:
    """A head for a boundary over a severity range.

    Parameters
    ----------
    boundary : callable
        Severities (m,) -> `contingencies.stability.Boundary`; any source of CCTs will do.
    severity : (low, high)
        Domain of the head.
    t_f : float
        Instant of the fault, s.
    network : callable, optional
        (alpha (m,), cct (m,)) of finite samples -> TanhReadout; makes a head of the kind "network",
        as `espinn_moe.head_network.train` does, instead of Chebyshev series.
    tolerance_s : float
        An interval is split until its series are this close to the boundary, s.
    seed : int
        Decides which samples judge the coordinate and the degree.
    report : callable
        Told how many severities have been asked so far.
    closer : Closer, optional
        How the source answers near what its neighbours say, which is faster.

    Returns
    -------
    HeadFit
        The head has no error bound yet: see `espinn_moe.head_errors`.
    """
    low, high = float(severity[0]), float(severity[1])
    samples = Samples(boundary, report, closer=closer)
    if closer is not None:
        samples.ask(np.linspace(low, high, SCAN)[:: (SCAN - 1) // (COARSE - 1)])
        ask_last_margins(samples, closer, EDGE_TOLERANCE * (high - low))
    samples.ask(np.linspace(low, high, SCAN))
    trained: TanhReadout | None = None
    if network is not None:
        segments, trained = _network_segments(samples, EDGE_TOLERANCE * (high - low), network)
    else:
        segments = _series_segments(samples, seed, tolerance_s)
    return HeadFit(Head((low, high), t_f, tuple(segments), None, trained), samples.alpha.size, samples.alpha)


def _series_segments(samples: Samples, seed: int, tolerance_s: float) -> list[Segment]:
    """Segments with their series; what the severities did not suffice for is settled from those there are."""
    low, high = float(samples.alpha[0]), float(samples.alpha[-1])
    resolution = EDGE_TOLERANCE * (high - low)
    segments: list[Segment] = []
    try:
        while True:  # a fit may meet a status that the scan did not see, which then counts
            bisect_edges(samples, resolution)
            segments = []
            for run in runs_of(samples):
                pieces = [Segment(run.start, run.end, run.status)]
                if run.status == "finite":
                    pieces = fit_interval(samples, run, resolution, seed, tolerance_s)
                if not pieces:
                    break
                segments += pieces
            else:
                return segments
    except SpentError:
        start = segments[-1].end if segments else low
        return [*segments, *settle(samples, start, high, seed)]


def _network_segments(
    samples: Samples, resolution: float, network: Callable[[Array, Array], TanhReadout]
) -> tuple[list[Segment], TanhReadout | None]:
    """Segments by status, and the network trained on evenly spread severities, as the paper trains its head."""
    bisect_edges(samples, resolution)
    runs = runs_of(samples)
    finite = [np.linspace(run.first, run.last, 2 * NODES) for run in runs if run.status == "finite"]
    segments = [Segment(run.start, run.end, run.status) for run in runs]
    if not finite:
        return segments, None
    targets = np.concatenate(finite)
    samples.most = samples.alpha.size + targets.size
    samples.ask(targets)
    chosen = np.isin(samples.alpha, targets) & np.isfinite(samples.cct)
    return segments, network(samples.alpha[chosen], samples.cct[chosen])
