"""A CCT head over severity and conditions: status, CCT and bound for any point of its domain, without torch.

Two small tanh networks, theory.md eqs. (73) and (74): one gives the severity alpha_e at which the fault can become
unstable within the window, as a function of the conditions; the other the CCT as a function of the conditions, of
u = sqrt(alpha - alpha_e), in which it is smooth up to the edge, and of alpha_e. A third one says where errors are
usually large; the bound is a multiple of that which depends on the distance to the edge, eqs. (75)-(76). So close to
the edge that its own error decides the status, the answer is uncertain. Without conditions the head answers at the
case's own point, and so serves wherever a head over severity does. Fitting is in `espinn_moe.condition_head_fit`.
"""

import json
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from contingencies.errors import IntegrityError, UsageError
from contingencies.points import Axis, check_names, limits_of
from espinn_moe.head import (
    FINITE,
    LEFT_CENSORED,
    MAX_BYTES,
    OUT_OF_DOMAIN,
    RIGHT_CENSORED,
    STATUSES,
    UNCERTAIN,
    Array,
    Codes,
    Head,
)
from espinn_moe.readout import Readout, row_function

FORMAT = "cct-condition-head/1"
BLOCK = 4096  # rows per numpy block: hidden layers stay in the second-level cache
SHOWN = 257  # severities at which the intervals of the case's own point are told apart


@dataclass(frozen=True, eq=False)
class ConditionHead:
    """CCT(alpha, conditions) over a domain, with censoring and a bound that knows the distance to the edge.

    Parameters
    ----------
    severity : (low, high)
        Domain of alpha, both ends included.
    t_f : float
        Instant of the fault, s.
    window : (first, last)
        Clearing instants studied, s.
    axes : tuple of Axis
        Conditions and their ranges.
    own : tuple of float
        The case's own values, which stand for conditions that a query leaves out.
    edge, root : Readout
        Censoring severity from scaled conditions; CCT from scaled conditions, u and alpha_e.
    distances, bounds : tuple of float
        Bounds at 95 % confidence: the first up to the first distance alpha - alpha_e, and so on; one more than
        distances. In s, or in units of the usual error where `spread` is known. Empty when none was measured.
    error_bound_s : float or None
        The bound over the whole domain, s.
    contingency_sha256 : str or None
        The contingency it answers for.
    spread : Readout or None
        Logarithm of the usual error in s, from the inputs of `root`.
    band : float
        Severities closer to the edge than this have the status uncertain.
    gap_s : float
        Difference between the fast and the strict reference, s, by which bounds with a `spread` are wider.
    """

    severity: tuple[float, float]
    t_f: float
    window: tuple[float, float]
    axes: tuple[Axis, ...]
    own: tuple[float, ...]
    edge: Readout
    root: Readout
    distances: tuple[float, ...] = ()
    bounds: tuple[float, ...] = ()
    error_bound_s: float | None = None
    contingency_sha256: str | None = None
    spread: Readout | None = None
    band: float = 0.0
    gap_s: float = 0.0

    kind = "conditions"

    def __post_init__(self) -> None:
        numbers = [
            *self.severity,
            self.t_f,
            *self.window,
            *self.own,
            *self.distances,
            *self.bounds,
            self.band,
            self.gap_s,
        ]
        numbers += [end for axis in self.axes for end in (axis.low, axis.high)]
        tensors = [array for readout in self._readouts.values() for array in (*readout.weights, *readout.biases)]
        d = len(self.axes)
        wanted = {"edge": d, "root": d + 2, "spread": d + 2}
        fits = all(readout.weights[0].shape[0] == wanted[name] for name, readout in self._readouts.items())
        fits = fits and len(self.own) == d
        if not fits or not all(map(math.isfinite, numbers)) or not all(np.isfinite(t).all() for t in tensors):
            raise IntegrityError("head: its networks or its domain are not valid.")
        if self.bounds and len(self.bounds) != len(self.distances) + 1:
            raise IntegrityError("head: its bounds do not fit their distances.")

    @property
    def _readouts(self) -> dict[str, Readout]:
        known = {"edge": self.edge, "root": self.root}
        return known if self.spread is None else known | {"spread": self.spread}

    @property
    def parameters(self) -> int:
        """Numbers that the fit determined."""
        return sum(readout.size for readout in self._readouts.values())

    @property
    def intervals(self) -> list[tuple[float, float, str]]:
        """Severity intervals with one status each, at the case's own point."""
        alpha = np.linspace(*self.severity, SHOWN)
        code = self.answers(alpha)[1]
        changes = [0, *(1 + np.flatnonzero(np.diff(code))), len(alpha)]
        ends = [float(self.severity[0]), *(self._change(alpha[k - 1], alpha[k]) for k in changes[1:-1])]
        ends.append(float(self.severity[1]))
        return [(ends[k], ends[k + 1], STATUSES[code[changes[k]]]) for k in range(len(ends) - 1)]

    def _change(self, before: float, after: float) -> float:
        """The first severity with another status than `before` has, which `after` has, at the case's own point."""
        status = self.answer(before)[1]
        while before < (middle := 0.5 * (before + after)) < after:
            before, after = (middle, after) if self.answer(middle)[1] == status else (before, middle)
        return float(after)

    @property
    def finite_intervals(self) -> list[tuple[float, float]]:
        return [(start, end) for start, end, status in self.intervals if status == "finite"]

    # --- questions ----------------------------------------------------------------------------

    def values(self, given: Mapping[str, Any], name: str = "the head") -> list[Any]:
        """Values of all conditions in order: those given, else the case's own where these lie in the range."""
        check_names(name, self.axes, given)
        for axis, own in zip(self.axes, self.own, strict=True):
            if axis.name not in given and not axis.holds(own):
                raise UsageError(
                    f"{name}: {axis.name} is not given, and the case's own value {own:g} is not in {axis}; give it."
                )
        return [given.get(axis.name, own) for axis, own in zip(self.axes, self.own, strict=True)]

    @cached_property
    def _hot(self) -> tuple[list[tuple[float, float, float, float]], Any, Any]:
        """Limits and scaling of each condition, the edge, and CCT with the usual error where that is known."""
        limits = [(a.low, a.high, 2.0 / (a.high - a.low), -(a.high + a.low) / (a.high - a.low)) for a in self.axes]
        known = [self.root] if self.spread is None else [self.root, self.spread]
        return limits, row_function([self.edge]), row_function(known)

    def bounded(self, alpha: float, values: Any = None) -> tuple[float | None, str, float | None]:
        """CCT in s (None unless finite), status, and bound in s, at one severity and point (d,)."""
        limits, edge, root = self._hot
        low, high = self.severity
        inside = low <= alpha <= high
        x = []
        for (least, most, scale, shift), value in zip(limits, self.own if values is None else values, strict=True):
            inside = inside and least <= value <= most
            x.append(scale * value + shift)
        if not inside:
            if not all(map(math.isfinite, (alpha, *x))):
                raise UsageError(f"alpha = {alpha} or a condition is not a finite number; give finite numbers.")
            return None, "out-of-domain", None
        alpha_e = edge(x)[0]
        distance = alpha - alpha_e
        if -self.band < distance < self.band:
            return None, "uncertain", None
        if distance < 0.0:
            return None, "right-censored", None
        x += (math.sqrt(distance), alpha_e)
        cct, *spread = root(x)
        if cct <= self.window[0]:
            return None, "left-censored", None
        bound = self.bounds[bisect_right(self.distances, distance)] if self.bounds else None
        if spread and bound is not None:
            bound = bound * math.exp(spread[0]) + self.gap_s
        return min(cct, self.window[1]), "finite", bound

    def answer(self, alpha: float, values: Any = None) -> tuple[float | None, str]:
        """CCT in s (None unless finite) and status at one severity and point (d,), default the case's own."""
        cct, status, _ = self.bounded(alpha, values)
        return cct, status

    def answers(self, alpha: Array, conditions: Array | None = None) -> tuple[Array, Codes]:
        """CCT in s (NaN unless finite) and status codes of severities (...) at conditions (..., d)."""
        cct, code, _ = self._many(alpha, conditions, bounds=())
        return cct, code

    def bounded_answers(self, alpha: Array, conditions: Array | None = None) -> tuple[Array, Codes, Array]:
        """As `answers`, and the bounds in s (NaN unless finite)."""
        return self._many(alpha, conditions, self.bounds)

    def _many(self, alpha: Array, conditions: Array | None, bounds: tuple[float, ...]) -> tuple[Array, Codes, Array]:
        """Answers block by block; without `bounds` all bounds are NaN and cost nothing."""
        points = np.array(self.own) if conditions is None else np.asarray(conditions, dtype=np.float64)
        severities = np.asarray(alpha, dtype=np.float64)
        shape = np.broadcast_shapes(severities.shape, points.shape[:-1])
        flat = np.broadcast_to(severities, shape).reshape(-1)
        rows = np.broadcast_to(points, (*shape, len(self.axes))).reshape(-1, len(self.axes))
        if not (np.isfinite(flat).all() and np.isfinite(rows).all()):
            raise UsageError("alpha or a condition is not a finite number; give finite numbers.")
        cct, code = np.full(flat.shape, np.nan), np.empty(flat.shape, dtype=np.int8)
        bound = np.full(flat.shape, np.nan)
        for begin in range(0, flat.size, BLOCK):
            part = slice(begin, begin + BLOCK)
            inputs, distance, here = self._block(flat[part], rows[part], cct[part], code[part])
            if bounds:
                bound[part][here] = self._bounds(inputs, distance, np.array(bounds))
        return cct.reshape(shape), code.reshape(shape), bound.reshape(shape)

    def inputs(self, alpha: Array, conditions: Array) -> tuple[Array, Array]:
        """Inputs (m, d + 2) of `root` and `spread`, and distances to the edge (m,); u is 0 below the edge."""
        x = np.empty((len(alpha), len(self.axes) + 2))
        x[:, :-2] = unit_conditions(self.axes, conditions)
        alpha_e = x[:, -1] = self.edge(np.ascontiguousarray(x[:, :-2]))
        distance = alpha - alpha_e
        np.sqrt(np.maximum(distance, 0.0), out=x[:, -2])
        return x, distance

    def _block(self, alpha: Array, rows: Array, cct: Array, code: Codes) -> tuple[Array, Array, np.ndarray]:
        """Fill in CCTs and codes; returns inputs, distances and places of the rows with a number."""
        low, high = limits_of(self.axes)
        inside = (alpha >= self.severity[0]) & (alpha <= self.severity[1])
        inside &= ((rows >= low) & (rows <= high)).all(1)
        x, distance = self.inputs(alpha, rows)
        code[:] = np.where(inside, np.where(distance < 0.0, RIGHT_CENSORED, FINITE), OUT_OF_DOMAIN)
        code[inside & (np.abs(distance) < self.band)] = UNCERTAIN
        here = np.flatnonzero(code == FINITE)
        inputs = x[here]
        found = self.root(inputs)
        early = found <= self.window[0]
        code[here[early]] = LEFT_CENSORED
        late = ~early
        here = here[late]
        cct[here] = np.minimum(found[late], self.window[1])
        return inputs[late], distance[here], here

    def _bounds(self, inputs: Array, distance: Array, bounds: Array) -> Array:
        """Bounds (m,) of rows with inputs (m, d + 2) at distances (m,) to the edge, s."""
        local: Array = bounds[np.searchsorted(self.distances, distance, side="right")]
        if self.spread is None:
            return local
        return local * np.exp(self.spread(inputs)) + self.gap_s

    # --- bytes --------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The head as JSON; equal heads give equal bytes."""
        readouts = {name: readout.card() for name, readout in self._readouts.items()}
        left_out = {"axes", "edge", "root", "spread"}
        left_out |= {name for name in ("band", "gap_s") if not getattr(self, name)}  # as heads were before these
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        axes = [[axis.name, axis.low, axis.high, axis.unit] for axis in self.axes]
        card = {"format": FORMAT, "kind": self.kind, "axes": axes, **plain, **readouts}
        return json.dumps(card, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @staticmethod
    def from_card(card: Mapping[str, Any]) -> "ConditionHead":
        """A head from the parsed bytes; wrong content is an error of some kind, which the caller words."""
        if card["format"] != FORMAT:
            raise IntegrityError(f"head: its format {str(card['format'])[:40]!r} is not known; update cct-zoo.")
        edge, root = Readout.from_card(card["edge"]), Readout.from_card(card["root"])
        spread = Readout.from_card(card["spread"]) if "spread" in card else None
        bound, digest = card["error_bound_s"], card["contingency_sha256"]
        return ConditionHead(
            _pair(card["severity"]), float(card["t_f"]), _pair(card["window"]),
            tuple(Axis(str(name), float(low), float(high), str(unit)) for name, low, high, unit in card["axes"]),
            tuple(map(float, card["own"])), edge, root,
            tuple(map(float, card["distances"])), tuple(map(float, card["bounds"])),
            None if bound is None else float(bound), None if digest is None else str(digest),
            spread, float(card.get("band", 0.0)), float(card.get("gap_s", 0.0)),
        )  # fmt: skip


AnyHead = Head | ConditionHead


def read_head(data: bytes) -> AnyHead:
    """A stored head of any kind; anything else is an IntegrityError, and nothing is executed."""
    if len(data) <= MAX_BYTES and data[:1] == b"{" and f'"format":"{FORMAT}"'.encode() in data:
        try:
            return ConditionHead.from_card(json.loads(data))
        except IntegrityError:
            raise
        except Exception as error:  # whatever the malformed content provokes
            raise IntegrityError(f"head: cannot be read ({type(error).__name__}); distill it again.") from None
    return Head.from_bytes(data)


def unit_conditions(axes: tuple[Axis, ...], conditions: Array) -> Array:
    """Conditions (..., d) scaled to [-1, 1]."""
    low, high = limits_of(axes)
    scaled: Array = np.multiply(conditions, 2.0 / (high - low))
    scaled -= (high + low) / (high - low)
    return scaled


def _pair(values: Any) -> tuple[float, float]:
    low, high = values
    return float(low), float(high)
