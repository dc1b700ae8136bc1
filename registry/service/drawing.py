"""The network as an SVG: buses, branches and machines, with the faulted elements coloured and patterned by margin.

Colours are the style sheet's, by class, so that the drawing follows light and dark; a pattern of its own makes each
class recognisable without colour.
"""

from dataclasses import dataclass
from html import escape

import numpy as np

from contingencies.network import Network
from registry.service.ranking import Element, Ranked

WIDTH, HEIGHT, MARGIN = 1160.0, 620.0, 42.0
TIGHT_S = 0.05  # margins below this want a look
SHORT_S = 0.15  # durations below this do, where nothing is required: about the slowest main protection
LEVELS = {  # from the worst to the best; the words of the legend
    "below": "below the required time, or unstable at once",
    "tight": f"less than {1e3 * TIGHT_S:.0f} ms of margin (nothing required: shorter than {1e3 * SHORT_S:.0f} ms)",
    "fair": "more than that",
    "stable": "stable at every clearing instant studied",
    "missing": "no head deployed, or severity or operating point not covered by it",
}


def level_of(one: Ranked) -> str:
    """How critical a contingency is drawn."""
    if one.status == "left-censored" or "below-required" in one.alerts:
        return "below"
    if one.status == "right-censored":
        return "stable"
    if one.status == "uncertain":
        return "tight"
    if one.status != "finite" or one.duration_s is None:
        return "missing"
    if one.margin_s is not None:
        return "tight" if one.margin_s < TIGHT_S else "fair"
    return "tight" if one.duration_s < SHORT_S else "fair"


def words(one: Ranked) -> str:
    """A contingency's answer in a few words."""
    if one.duration_s is not None:
        return f"{1e3 * one.duration_s:.0f} ms"
    return one.status


@dataclass(frozen=True)
class Marked:
    """A contingency and where its fault is."""

    ranked: Ranked
    element: Element


def draw(network: Network, positions: np.ndarray, marked: list[Marked]) -> str:
    """The drawing of a network.

    Parameters
    ----------
    network : Network
    positions : array (n, 2)
        Of the buses, in the unit square.
    marked : list of Marked
        Contingencies, the most critical of an element first.
    """
    # The longer side fills the drawing; the shorter is stretched a little, which no reader minds.
    span = np.maximum(np.ptp(positions, axis=0), 0.1)
    xy = MARGIN + (positions - positions.min(axis=0)) / span * [WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN]
    size = float(np.clip(10.0 * (60 / max(network.n_buses, 30)) ** 0.5, 3.5, 11.0))
    parts = [
        f'<svg class="grid" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="group" '
        f'aria-label="Network {escape(network.name)}: {network.n_buses} buses, '
        f'{len(network.branches.start)} branches">',
        _patterns(),
    ]
    parts += _branches(network, xy, size)
    parts += _machines(network, xy, size)
    parts += _faults(network, xy, size, marked)
    parts += _buses(network, xy, size)
    return "".join([*parts, "</svg>"])


def _patterns() -> str:
    stripes = (
        ("below", "M0 0L6 6M-1 5L1 7M5 -1L7 1", 2.4),
        ("tight", "M0 3H6", 2.0),
        ("missing", "M3 0V6M0 3H6", 0.8),
    )
    made = [
        f'<pattern id="p-{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<rect width="6" height="6" class="l-{name} wash"/><path d="{path}" class="l-{name} ink" '
        f'stroke-width="{width}"/></pattern>'
        for name, path, width in stripes
    ]
    return f"<defs>{''.join(made)}</defs>"


def _branches(network: Network, xy: np.ndarray, size: float) -> list[str]:
    parts = []
    branches = network.branches
    for k in range(len(branches.start)):
        a, b = _ends(network, xy, k)
        parts.append(f'<path class="branch" d="{_path(a, b)}"/>')
        if not branches.is_line[k]:
            parts += _coils(a, b, size)
    return parts


def _coils(a: np.ndarray, b: np.ndarray, size: float) -> list[str]:
    """The two rings of a transformer in the middle of its branch."""
    along = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
    rings = (0.5 * (a + b) + side * 0.3 * size * along for side in (-1, 1))
    return [f'<circle class="coil" cx="{x:.1f}" cy="{y:.1f}" r="{0.5 * size:.1f}"/>' for x, y in rings]


def _ends(network: Network, xy: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of a branch; parallel circuits lie side by side."""
    i, j = int(network.branches.start[k]), int(network.branches.end[k])
    a, b = xy[min(i, j)], xy[max(i, j)]
    across = np.array([a[1] - b[1], b[0] - a[0]]) / max(float(np.hypot(*(b - a))), 1e-9)
    shift = 5.0 * (int(network.branches.circuit[k]) - 1)
    return a + shift * across, b + shift * across


def _path(a: np.ndarray, b: np.ndarray) -> str:
    return f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}"


def _machines(network: Network, xy: np.ndarray, size: float) -> list[str]:
    parts = []
    centre = xy.mean(axis=0)
    for position in network.machine_bus.tolist():
        away = xy[position] - centre
        length = float(np.hypot(*away))
        away = away / length if length > 1e-6 else np.array([0.0, -1.0])
        place = xy[position] + away * 2.6 * size
        parts.append(
            f'<path class="branch" d="{_path(xy[position], place)}"/>'
            f'<circle class="machine" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{0.85 * size:.1f}"/>'
            f'<path class="wave" d="M{place[0] - 0.5 * size:.1f} {place[1]:.1f}'
            f"q{0.25 * size:.1f} {-0.6 * size:.1f} {0.5 * size:.1f} 0"
            f't{0.5 * size:.1f} 0"/>'
        )
    return parts


def _faults(network: Network, xy: np.ndarray, size: float, marked: list[Marked]) -> list[str]:
    """The faulted elements, the worst on top; each links to its most critical contingency."""
    by_element: dict[Element, list[Ranked]] = {}
    for one in marked:
        by_element.setdefault(one.element, []).append(one.ranked)
    order = list(LEVELS)
    elements = sorted(by_element.items(), key=lambda item: -order.index(level_of(item[1][0])))
    parts = []
    for element, ranked in elements:
        shape = _shape(network, xy, size, element, level_of(ranked[0]))
        if shape is None:
            continue
        title = "; ".join(f"{one.contingency}: {words(one)}" for one in ranked[:4])
        first = escape(ranked[0].contingency, quote=True)
        parts.append(
            f'<a class="fault" href="/contingencies/{first}" aria-label="{escape(title, quote=True)}">'
            f"<title>{escape(title)}</title>{shape}</a>"
        )
    return parts


def _shape(network: Network, xy: np.ndarray, size: float, element: Element, level: str) -> str | None:
    """What marks a faulted element; None when the network does not have it."""
    positions = [network.position.get(bus) for bus in element.buses]
    if any(position is None for position in positions):
        return None
    if element.kind != "line":
        x, y = xy[positions[0]]
        return f'<circle class="l-{level} halo" cx="{x:.1f}" cy="{y:.1f}" r="{1.75 * size:.1f}"/>'
    i, j = sorted(int(position) for position in positions if position is not None)
    found = network.lines_between.get((i, j), [])
    if not found:
        return None
    a, b = _ends(network, xy, found[min(element.circuit or 1, len(found)) - 1])
    path = _path(a, b)
    return f'<path class="hit" d="{path}"/><path class="l-{level} stroke" d="{path}"/>'


def _buses(network: Network, xy: np.ndarray, size: float) -> list[str]:
    parts = []
    for (x, y), number in zip(xy, network.bus_numbers.tolist(), strict=True):
        parts.append(
            f'<circle class="bus" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"/>'
            f'<text class="bus-number" x="{x:.1f}" y="{y:.1f}" font-size="{size * (0.95 if number > 99 else 1.1):.1f}">'
            f"{number}</text>"
        )
    return parts
