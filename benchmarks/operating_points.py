"""CCT over load and dispatch: a chained surrogate, a head, and what a user would do instead, at unseen points.

ieee30-line-3-4-restore with all loads at 0.8 to 1.2 and 10 to 70 MW at bus 2. Errors are against the fast reduced ODE
on severities and operating points drawn at random, of a seed that nothing was chosen by; times are of the processor,
one thread. `--minutes 0` leaves out the surrogate, `--queries` is the number behind the coverage. `--family` trains
eight line faults of ieee39 over four conditions instead, `--curve` prints errors against the numbers of conditions and
of operating points.
"""

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from operating_points_family import curve, family_figures

from contingencies.conditions import Conditions
from contingencies.library import load_contingency
from contingencies.operator_family import OperatorFamily
from contingencies.operators import compile_contingency, compile_members
from contingencies.point_references import expected_points, reference_points
from contingencies.points import Point
from contingencies.references import reference_cct
from contingencies.stability import Boundary
from espinn_moe.chained import Chained
from espinn_moe.condition_boundary import point_boundary
from espinn_moe.condition_bounds import draw_answered, draw_rows
from espinn_moe.condition_head import ConditionHead
from espinn_moe.head import STATUSES, UNCERTAIN
from espinn_moe.train import train
from zoo.heads.condition_distill import distill_points, reference_points_source
from zoo.surrogates.budgets import plan_for
from zoo.surrogates.catalogue import create_model, make_objective
from zoo.surrogates.datasets import training_set

REPORT_SEED = 90_001  # recipes were chosen on seeds 12345 and 99
STATUS_ROWS = 2000
RIVAL_CCTS = 10_000
CONDITIONS = {"load": (0.8, 1.2), "generation": {"2": (10.0, 70.0)}}


def main() -> None:
    """Print both sides and end with the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="of training, the processor's  [5.5; family 28; curve 2 each]")
    parser.add_argument("--rows", type=int, default=300, help="unseen rows for the surrogate")
    parser.add_argument("--queries", type=int, default=10_000, help="random queries with a number, behind the coverage")
    parser.add_argument("--seed", type=int, default=REPORT_SEED, help="of the unseen rows; choose recipes on others")
    parser.add_argument("--family", action="store_true", help="eight line faults of ieee39 over four conditions")
    parser.add_argument("--curve", action="store_true", help="errors against the numbers of conditions and points")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.curve:
        curve(2.0 if options.minutes is None else options.minutes, options.rows, options.seed)
    if options.family:
        minutes = 28.0 if options.minutes is None else options.minutes
        print_figures(family_figures(minutes, options.rows, options.seed))
    if not (options.family or options.curve):
        options.minutes = 5.5 if options.minutes is None else options.minutes
        print_figures(load_and_dispatch(options))


def print_figures(figures: dict[str, tuple[float, str]]) -> None:
    for name, (value, unit) in figures.items():
        print(f"figure {name} {value:.6g} {unit}")


def load_and_dispatch(options: argparse.Namespace) -> dict[str, tuple[float, str]]:
    """The surrogate, the head and their rivals on IEEE 30."""
    contingency = load_contingency("ieee30-line-3-4-restore")
    contingency = replace(
        contingency, spec=contingency.spec.model_copy(update={"conditions": Conditions.model_validate(CONDITIONS)})
    )
    began = time.process_time()
    members = compile_members([contingency])
    family = members[0].family
    assert family is not None
    print(f"operators: degree {family.fit.degrees.sum(1).max()}, {family.fit.points} power flows, "
          f"error {family.fit.error:.1e}, {time.process_time() - began:.1f} s")  # fmt: skip
    figures: dict[str, tuple[float, str]] = {}
    if options.minutes > 0:
        figures |= surrogate_figures(members[0], family, options)
    began = time.process_time()
    head, _, _ = distill_points(reference_points_source(family), family, strict=0)
    spent = time.process_time() - began
    print(f"head: {head.parameters} parameters, asked, fitted and calibrated in {spent:.0f} s")
    queries = Queries.of(head, family, options.queries, options.seed)
    figures |= head_figures(head, family, queries, options.seed)
    rivals(family, head, queries, spent)
    simulation(family, contingency)
    return figures


def surrogate_figures(operators, family: OperatorFamily, options: argparse.Namespace) -> dict[str, tuple[float, str]]:
    """Train es-pinn-chained and compare it at unseen rows."""
    rows = options.rows
    began = time.process_time()
    data = training_set(operators, 1.0, 0)
    model = create_model("es-pinn-chained", [operators], seed=0)
    plan = plan_for("chained", 1, "standard", minutes=options.minutes, steps=None, seed=0, clock="processor")
    result = train(model, make_objective("es-pinn-chained", model, [data]), plan)
    spent = time.process_time() - began
    model.eval()
    assert isinstance(model, Chained)
    rng = np.random.default_rng(options.seed)
    alpha, points = rng.uniform(0.0, 1.0, rows), rng.uniform((0.8, 10.0), (1.2, 70.0), (rows, 2))
    learned, truth = point_boundary(model, alpha, points), reference_points(family, alpha, points)
    error = 1e3 * np.abs(learned.cct - truth.cct)
    error = error[np.isfinite(error)]
    wrong = sum(a != b for a, b in zip(learned.status, truth.status, strict=True))
    print(f"surrogate: {model.n_parameters} parameters, {len(data.alpha)} scenarios, {result.steps} steps, data and "
          f"training {spent:.0f} s: mean {error.mean():.4f} ms, median {np.median(error):.4f}, max {error.max():.4f} "
          f"over {len(error)} finite of {rows} rows; {wrong} of other status")  # fmt: skip
    return {"op_surrogate_mae_ms": (error.mean(), "ms"), "op_surrogate_max_ms": (error.max(), "ms")}


@dataclass(frozen=True)
class Queries:
    """Rows that a head answers with a number, and the truth there."""

    alpha: np.ndarray
    points: np.ndarray
    truth: Boundary

    @staticmethod
    def of(head: ConditionHead, family: OperatorFamily, count: int, seed: int) -> "Queries":
        alpha, points = draw_answered(head, count, seed)
        return Queries(alpha, points, expected_points(family, alpha, points, head.answers(alpha, points)[0]))

    @property
    def rows(self) -> np.ndarray:
        return np.column_stack([self.alpha, self.points])[self.truth.finite]

    @property
    def cct(self) -> np.ndarray:
        return self.truth.cct[self.truth.finite]


def head_figures(
    head: ConditionHead, family: OperatorFamily, queries: Queries, seed: int
) -> dict[str, tuple[float, str]]:
    """Errors, coverage and speed of a head."""
    alpha, points, truth = queries.alpha, queries.points, queries.truth
    cct, _, bound = head.bounded_answers(alpha, points)
    error = np.where(truth.finite, np.abs(cct - truth.cct), np.inf)
    covered, distance = error <= bound, head.inputs(alpha, points)[1]
    tenth = np.searchsorted(np.quantile(distance, np.linspace(0.1, 0.9, 9)), distance)
    shares = [covered[tenth == k].mean() for k in range(10)]
    error = error[truth.finite]
    print(
        f"head: mean {1e3 * error.mean():.4f} ms, P95 {1e3 * np.quantile(error, 0.95):.4f}, "
        f"max {1e3 * error.max():.4f} over {len(error)} of {len(alpha)} queries that it answers with a number"
    )
    widths = " ".join(f"{1e3 * b:.3f}" for b in np.quantile(bound, (0.05, 0.5, 0.95)))
    print(f"head: bounds (5, 50, 95 %) of {widths} ms cover {covered.mean():.4f}, "
          f"by tenths of the distance to the edge {' '.join(f'{share:.3f}' for share in shares)}")  # fmt: skip
    alpha, points = draw_rows(head, STATUS_ROWS, seed)
    code, truth = head.answers(alpha, points)[1], reference_points(family, alpha, points)
    wrong = (np.array(STATUSES)[code] != np.array(truth.status)) & (code != UNCERTAIN)
    print(f"head: {wrong.sum()} of {STATUS_ROWS} anywhere in the domain of other status, {(code == UNCERTAIN).sum()} "
          f"uncertain (within {head.band:.1e} of the edge)")  # fmt: skip
    single = _per_call(lambda: head.bounded(0.9, (1.05, 35.0)), 20_000)
    many, conditions = draw_rows(head, 1_000_000, 1)
    began = time.process_time()
    head.answers(many, conditions)
    speed = 1e6 / (time.process_time() - began)
    return {
        "op_head_mae_ms": (1e3 * error.mean(), "ms"), "op_head_p95_ms": (1e3 * np.quantile(error, 0.95), "ms"),
        "op_head_us": (1e6 * single, "us"), "op_head_per_s": (speed, "1/s"), "op_coverage": (covered.mean(), "1"),
        "op_coverage_least": (min(shares), "1"), "op_coverage_most": (max(shares), "1"),
    }  # fmt: skip


def rivals(family: OperatorFamily, head: ConditionHead, queries: Queries, seconds: float) -> None:
    """Regressions of CCT from severity and conditions, given as long as the head took, at the same queries."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
        from sklearn.neural_network import MLPRegressor
    except ImportError:
        print("scikit-learn is not installed: no regressions")
        return
    began = time.process_time()
    known = Queries.of(head, family, RIVAL_CCTS, 7)
    asking = time.process_time() - began
    print(f"rivals: {len(known.cct)} CCTs in {asking:.0f} s of the ODE; {seconds:.0f} s with the fit, as the head had")
    for name, model in {
        "random forest": RandomForestRegressor(500, random_state=0),
        "gradient boosting": HistGradientBoostingRegressor(
            max_iter=6000, learning_rate=0.05, max_leaf_nodes=31, random_state=0
        ),
        "plain MLP": _Timed(MLPRegressor(hidden_layer_sizes=(64, 64), random_state=0), seconds - asking),
    }.items():
        began = time.process_time()
        model.fit(known.rows, known.cct)
        spent = time.process_time() - began
        off = 1e3 * np.abs(model.predict(queries.rows) - queries.cct)
        one = _per_call(lambda model=model: model.predict(queries.rows[:1]), 20)
        began = time.process_time()
        model.predict(queries.rows)
        speed = len(queries.cct) / (time.process_time() - began)
        print(f"{name}: {off.mean():.4f} ms mean, P95 {np.quantile(off, 0.95):.4f}, max {off.max():.4f}; fitted in "
              f"{spent:.0f} s, {1e6 * one:.0f} us a query, {speed:.3g} a second; no status, no bound")  # fmt: skip


class _Timed:
    """A network that goes on learning, pass by pass, until its time is over."""

    def __init__(self, network, seconds: float) -> None:
        self.network, self.seconds = network, seconds

    def fit(self, x, y):
        self.inputs, self.output = (x.mean(0), x.std(0)), (y.mean(), y.std())
        began = time.process_time()
        while time.process_time() - began < self.seconds:
            self.network.partial_fit(self._scaled(x), (y - self.output[0]) / self.output[1])

    def predict(self, x):
        return self.output[0] + self.output[1] * self.network.predict(self._scaled(x))

    def _scaled(self, x):
        return (x - self.inputs[0]) / self.inputs[1]


def simulation(family: OperatorFamily, contingency) -> None:
    """What the compiled ODE takes for one query, with a power flow or with the interpolated operators."""
    names, at = tuple(axis.name for axis in family.axes), (1.05, 35.0)
    solved = _per_call(lambda: reference_cct(compile_contingency(contingency, Point(names, at)), 0.9), 20)
    smooth = _per_call(lambda: reference_cct(family.operators_at(np.array(at)), 0.9), 50)
    print(
        f"fast ODE: {1e3 * solved:.1f} ms a query with a power flow, {1e3 * smooth:.1f} ms with interpolated operators"
    )


def _per_call(call, count: int) -> float:
    call()
    began = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - began) / count


if __name__ == "__main__":
    main()
