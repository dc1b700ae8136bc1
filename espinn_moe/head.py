"""The distilled CCT head: a small function alpha -> CCT with its severity domain and censoring.

A head is a row of segments over the severity: each is censored, or carries a Chebyshev series
in the coordinate in which the boundary is smooth there. CCT(alpha) is nearly vertical where it
meets a censoring edge, and smooth in u = sqrt(alpha - edge). The paper's small network is the
other kind of head; it sees plain alpha. Evaluation needs numpy at most, never torch: one
severity runs in pure Python, many run in numpy blocks that stay in the cache. Fitting is in
`espinn_moe.head_fit`.
"""

import json
import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import IntegrityError, UsageError

FINITE, RIGHT_CENSORED, LEFT_CENSORED, OUT_OF_DOMAIN, UNCERTAIN = range(5)
STATUSES = ("finite", "right-censored", "left-censored", "out-of-domain", "uncertain")
OF_SEGMENTS = ("finite", "right-censored", "left-censored", "uncertain")

Coordinate = Literal["plain", "above-edge", "below-edge"]
COORDINATES: tuple[Coordinate, ...] = ("plain", "above-edge", "below-edge")
HeadKind = Literal["chebyshev", "network"]

FORMAT = "cct-head/1"
BLOCK = 16384  # severities per numpy block: the work arrays stay in the second-level cache
MAX_BYTES = 4_000_000  # a head has a few kilobytes

Array = NDArray[np.float64]
_Row = tuple[str, int, float, float, float, float, tuple[float, ...]]
Codes = NDArray[np.int8]


@dataclass(frozen=True)
class Series:
    """CCT as a Chebyshev series of u, where u is alpha or the square root of its distance to an edge.

    `edge` lies outside the segment or on its end; `u_range` is mapped to [-1, 1].
    """

    coordinate: Coordinate
    edge: float
    u_range: tuple[float, float]
    coefficients: tuple[float, ...]

    def coordinate_of(self, alpha: Array) -> Array:
        """The severity mapped to [-1, 1]."""
        low, high = self.u_range
        if self.coordinate == "plain":
            u = alpha
        elif self.coordinate == "above-edge":
            u = np.sqrt(np.maximum(alpha - self.edge, 0.0))
        else:
            u = np.sqrt(np.maximum(self.edge - alpha, 0.0))
        x: Array = (2.0 * u - (low + high)) / (high - low)
        return x

    def __call__(self, alpha: Array) -> Array:
        """CCT at many severities, s."""
        return clenshaw(self.coefficients, self.coordinate_of(alpha))


def clenshaw(coefficients: tuple[float, ...], x: Array) -> Array:
    """Chebyshev series at x in [-1, 1], in place on four work arrays."""
    twice = x + x
    b1, b2, work = np.full_like(x, coefficients[-1]), np.zeros_like(x), np.empty_like(x)
    if len(coefficients) == 1:
        return b1
    for coefficient in reversed(coefficients[1:-1]):  # b1, b2 = coefficient + 2 x b1 - b2, b1
        np.multiply(twice, b1, out=work)
        work -= b2
        work += coefficient
        b1, b2, work = work, b1, b2
    b1 *= x
    b1 -= b2
    b1 += coefficients[0]
    return b1


@dataclass(frozen=True, eq=False)
class TanhReadout:
    """The paper's readout: a small tanh network in plain severity, evaluated by numpy."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    shift: float  # input: (alpha - shift) / scale
    scale: float
    output_shift: float  # output: output_shift + output_scale * network, s
    output_scale: float

    def __call__(self, alpha: Array) -> Array:
        """CCT at many severities, s."""
        h = ((alpha - self.shift) / self.scale)[:, None]
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = np.tanh(h @ W + b)
        result: Array = self.output_shift + self.output_scale * (h @ self.weights[-1] + self.biases[-1])[:, 0]
        return result


@dataclass(frozen=True)
class Segment:
    """Severities [start, end) with one status; a finite one of a Chebyshev head has its series.

    Where the boundary jumps too often to be resolved the status is "uncertain".
    """

    start: float
    end: float
    status: str
    series: Series | None = None


@dataclass(frozen=True, eq=False)
class Head:
    """CCT(alpha) over a severity domain, with censoring intervals and a measured error bound.

    Parameters
    ----------
    severity : (low, high)
        Domain of alpha, both ends included.
    t_f : float
        Instant of the fault, s; an answer's duration is cct - t_f.
    segments : tuple of Segment
        In order, without gaps, from low to high.
    error_bound_s : float or None
        Bound on |CCT error| against the reference ODE at 95 % confidence, s; None when there is none.
    network : TanhReadout or None
        The network that answers in finite segments, for a head of the kind "network".
    contingency_sha256 : str or None
        The contingency it answers for; None in heads of versions before 0.2, for which the registry's row vouches.
    """

    severity: tuple[float, float]
    t_f: float
    segments: tuple[Segment, ...]
    error_bound_s: float | None = None
    network: TanhReadout | None = None
    contingency_sha256: str | None = None

    def __post_init__(self) -> None:
        low, high = self.severity
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(self.t_f)):
            raise IntegrityError(f"head: severity domain {self.severity} is not an interval.")
        ends = [low, *(segment.end for segment in self.segments)]
        if not self.segments or ends[-1] != high:
            raise IntegrityError("head: its segments do not cover the severity domain.")
        for before, segment in zip(ends, self.segments, strict=False):
            _check_segment(segment, before, self.network is not None)
        if self.error_bound_s is not None and not 0 <= self.error_bound_s < math.inf:
            raise IntegrityError(f"head: error bound {self.error_bound_s} is not a finite number of seconds.")

    @property
    def kind(self) -> HeadKind:
        return "chebyshev" if self.network is None else "network"

    @property
    def intervals(self) -> list[tuple[float, float, str]]:
        """Severity intervals with one status each, pieces of one interval joined."""
        joined: list[tuple[float, float, str]] = []
        for segment in self.segments:
            if joined and joined[-1][2] == segment.status:
                joined[-1] = (joined[-1][0], segment.end, segment.status)
            else:
                joined.append((segment.start, segment.end, segment.status))
        return joined

    @property
    def finite_intervals(self) -> list[tuple[float, float]]:
        return [(start, end) for start, end, status in self.intervals if status == "finite"]

    @property
    def parameters(self) -> int:
        """Numbers that the fit determined."""
        if self.network is not None:
            return sum(W.size + b.size for W, b in zip(self.network.weights, self.network.biases, strict=True))
        return sum(len(segment.series.coefficients) for segment in self.segments if segment.series is not None)

    # --- one severity -------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[float]:
        return [segment.start for segment in self.segments]

    @cached_property
    def _table(self) -> list[_Row]:
        """Per segment: status, coordinate, edge, and x = scale * u + shift with its reversed coefficients."""
        table: list[_Row] = []
        for segment in self.segments:
            series = segment.series
            if series is None:
                table.append((segment.status, 3, 0.0, 0.0, 0.0, 0.0, ()))
                continue
            low, high = series.u_range
            table.append(
                (
                    segment.status,
                    COORDINATES.index(series.coordinate),
                    series.edge,
                    2.0 / (high - low),
                    -(low + high) / (high - low),
                    series.coefficients[0],
                    tuple(reversed(series.coefficients[1:])),
                )
            )
        return table

    def answer(self, alpha: float) -> tuple[float | None, str]:
        """CCT in s (None unless finite) and status at one severity."""
        low, high = self.severity
        if not low <= alpha <= high:
            if not -math.inf < alpha < math.inf:
                raise UsageError(f"alpha = {alpha} is not a severity; give a finite number.")
            return None, "out-of-domain"
        status, coordinate, edge, scale, shift, first, rest = self._table[bisect_right(self._starts, alpha) - 1]
        if coordinate == 1:
            u = math.sqrt(alpha - edge)
        elif coordinate == 2:
            u = math.sqrt(edge - alpha)
        elif coordinate == 0:
            u = alpha
        elif status == "finite" and self.network is not None:
            return float(self.network(np.array([alpha]))[0]), status
        else:
            return None, status
        x = scale * u + shift
        twice = x + x
        b1 = b2 = 0.0
        for coefficient in rest:
            b1, b2 = coefficient + twice * b1 - b2, b1
        return first + x * b1 - b2, status

    # --- many severities ----------------------------------------------------------------------

    def answers(self, alpha: Array) -> tuple[Array, Codes]:
        """CCT in s (NaN unless finite) and status codes (index into `STATUSES`) at many severities.

        Parameters
        ----------
        alpha : float array of any shape
            Severities; NaN and infinities are an error.
        """
        flat = np.ascontiguousarray(alpha, dtype=np.float64).ravel()
        if not np.isfinite(flat).all():
            bad = flat[~np.isfinite(flat)][0]
            raise UsageError(f"alpha = {bad} is not a severity; give finite numbers.")
        cct = np.full(flat.shape, np.nan)
        status = np.empty(flat.shape, dtype=np.int8)
        for begin in range(0, flat.size, BLOCK):
            part = slice(begin, begin + BLOCK)
            self._block(flat[part], cct[part], status[part])
        shape = np.shape(alpha)
        return cct.reshape(shape), status.reshape(shape)

    @cached_property
    def _codes(self) -> Codes:
        return np.array([STATUSES.index(segment.status) for segment in self.segments], dtype=np.int8)

    def _block(self, alpha: Array, cct: Array, status: Codes) -> None:
        low, high = self.severity
        index = np.zeros(alpha.size, dtype=np.int16)  # of the segment; counting is faster than searching
        for start in self._starts[1:]:
            index += alpha >= start
        np.take(self._codes, index, out=status)
        outside = (alpha < low) | (alpha > high)
        if outside.any():
            status[outside] = OUT_OF_DOMAIN
            index[outside] = -1
        for i, segment in enumerate(self.segments):
            function = segment.series or (self.network if segment.status == "finite" else None)
            if function is None:
                continue
            here = np.flatnonzero(index == i)
            if here.size == alpha.size:
                cct[:] = function(alpha)
            elif here.size:
                cct[here] = function(alpha[here])

    # --- bytes --------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The head as JSON (Chebyshev) or safetensors (network); equal heads give equal bytes."""
        card: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "severity": list(self.severity),
            "t_f": self.t_f,
            "error_bound_s": self.error_bound_s,
            "segments": [_segment_to_json(segment) for segment in self.segments],
        }
        if self.contingency_sha256 is not None:
            card["contingency"] = self.contingency_sha256
        if self.network is None:
            return _canonical(card).encode()
        from safetensors.numpy import save

        network = self.network
        card["input"] = [network.shift, network.scale]
        card["output"] = [network.output_shift, network.output_scale]
        tensors = {}
        for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
            tensors[f"weight.{i}"], tensors[f"bias.{i}"] = np.ascontiguousarray(W), np.ascontiguousarray(b)
        return bytes(save(tensors, metadata={"head": _canonical(card)}))  # one key: several are not byte-stable

    @staticmethod
    def from_bytes(data: bytes) -> "Head":
        """A head from `to_bytes`; anything else is an IntegrityError, and nothing is executed."""
        if len(data) > MAX_BYTES:
            raise IntegrityError(f"head: {len(data)} bytes is too large to be a head.")
        try:
            if data[:1] == b"{":
                return _head_from_card(json.loads(data), None)
            return _network_from_bytes(data)
        except IntegrityError:
            raise
        except Exception as error:  # safetensors and json each raise their own kinds
            raise IntegrityError(f"head: cannot be read ({type(error).__name__}); distill it again.") from None


def _check_segment(segment: Segment, start: float, has_network: bool) -> None:
    if segment.start != start or not segment.start <= segment.end or segment.status not in OF_SEGMENTS:
        raise IntegrityError(f"head: segment [{segment.start}, {segment.end}) {segment.status!r} is not valid.")
    series = segment.series
    if (series is not None) != (segment.status == "finite" and not has_network):
        raise IntegrityError("head: exactly its finite segments must have a series.")
    if series is None:
        return
    low, high = series.u_range
    numbers = (series.edge, low, high, *series.coefficients)
    reaches = {
        "plain": True,
        "above-edge": series.edge <= segment.start,
        "below-edge": series.edge >= segment.end,
    }
    if not (series.coefficients and low < high and all(map(math.isfinite, numbers)) and reaches[series.coordinate]):
        raise IntegrityError("head: a series is not valid.")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _segment_to_json(segment: Segment) -> dict[str, Any]:
    card: dict[str, Any] = {"start": segment.start, "end": segment.end, "status": segment.status}
    if segment.series is not None:
        card["series"] = {
            "coordinate": segment.series.coordinate,
            "edge": segment.series.edge,
            "u_range": list(segment.series.u_range),
            "coefficients": list(segment.series.coefficients),
        }
    return card


def _head_from_card(card: dict[str, Any], network: TanhReadout | None) -> Head:
    if card["format"] != FORMAT or card["kind"] != ("chebyshev" if network is None else "network"):
        raise IntegrityError(f"head: format {str(card['format'])[:40]!r} is not {FORMAT!r}; update cct-zoo.")
    segments = []
    for part in card["segments"]:
        series = None
        if "series" in part:
            stored = part["series"]
            low, high = stored["u_range"]
            if stored["coordinate"] not in COORDINATES:
                raise IntegrityError("head: a series has an unknown coordinate.")
            series = Series(
                stored["coordinate"],
                float(stored["edge"]),
                (float(low), float(high)),
                tuple(float(c) for c in stored["coefficients"]),
            )
        segments.append(Segment(float(part["start"]), float(part["end"]), str(part["status"]), series))
    low, high = card["severity"]
    bound, contingency = card["error_bound_s"], card.get("contingency")
    return Head(
        (float(low), float(high)),
        float(card["t_f"]),
        tuple(segments),
        None if bound is None else float(bound),
        network,
        None if contingency is None else str(contingency),
    )


def _network_from_bytes(data: bytes) -> Head:
    from safetensors import deserialize
    from safetensors.numpy import load

    length = int.from_bytes(data[:8], "little")
    deserialize(data)  # refuses lengths and offsets that do not fit before anything is read
    card = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["head"])
    tensors = load(data)
    layers = len(tensors) // 2
    network = TanhReadout(
        tuple(tensors[f"weight.{i}"] for i in range(layers)),
        tuple(tensors[f"bias.{i}"] for i in range(layers)),
        *(float(v) for v in card["input"]),
        *(float(v) for v in card["output"]),
    )
    finite = all(np.isfinite(t).all() and t.dtype == np.float64 for t in tensors.values())
    if not finite or not np.isfinite(network(np.array([network.shift]))).all():
        raise IntegrityError("head: its network is not valid.")
    return _head_from_card(card, network)
