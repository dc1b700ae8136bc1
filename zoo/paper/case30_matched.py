"""Appendix table: reconstruction of the training grid of the primary benchmark."""

from functools import partial
from typing import Any

from espinn_moe.surrogate import Surrogate
from zoo.paper.common import METHODS, method_rows, per_seed, thinned, trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.measurements import grid_errors
from zoo.paper.tables import Presentation, Published, Quantity, Table
from zoo.surrogates.datasets import training_axes

DEGREES = 57.29577951308232  # in a radian
PAPER = {  # RMSE_delta rad, RMSE_omega pu, separation MAE degrees, mIoU
    "vanilla-pinn": (
        Published(9.42e-2, 2.92e-2), Published(1.29e-3, 0.43e-3), Published(5.02, 1.96), Published(0.9929, 0.0058),
    ),
    "xpinn": (
        Published(5.05e-3, 0.37e-3), Published(6.80e-5, 0.50e-5), Published(0.203, 0.013), Published(1.0, 0.0),
    ),
    "pi-deeponet": (
        Published(2.57e-1, 1.17e-1), Published(2.74e-3, 0.27e-3), Published(9.97, 2.85), Published(0.9986, 0.0008),
    ),
    "es-pinn": (
        Published(2.95e-3, 0.31e-3), Published(4.10e-5, 0.40e-5), Published(0.130, 0.016), Published(1.0, 0.0),
    ),
}  # fmt: skip
QUANTITIES = (
    Quantity("RMSE delta", "rad"),
    Quantity("RMSE omega", "pu"),
    Quantity("separation MAE", "degrees"),
    Quantity("mIoU"),
)


def measure(surrogate: Surrogate, thin: int) -> dict[str, Any]:
    """Errors on the pairs of every `thin`-th severity of the training grid."""
    alpha, t_c = training_axes(surrogate.members[0])
    return grid_errors(surrogate, alpha[::thin], t_c)


def _of(setting: Setting, model: str) -> list[Task]:
    return per_seed(setting, "case30_matched:measure", model, thin=setting.budget.thin)


def tasks(setting: Setting) -> list[Task]:
    """One measurement of every method and seed."""
    return [each for model in METHODS for each in _of(setting, model)]


def trajectory_values() -> list[Any]:
    """How to read the four quantities off a result."""
    return [
        (lambda r: r["rmse_delta"], 1.0),
        (lambda r: r["rmse_omega"], 1.0),
        (lambda r: r["separation_mae"], DEGREES),
        (lambda r: r["miou"], 1.0),
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """The table."""
    done = {model: _of(setting, model) for model in METHODS}
    rows = method_rows(findings, done, trajectory_values(), PAPER, METHODS, partial(trained_why, setting))
    table = Table("matched", f"Training-grid reconstruction{thinned(setting)}", "Table 6", QUANTITIES, tuple(rows))
    return Presentation(
        (table,), notes=("mIoU compares stability labels of the sampled smooth margin, as the paper does.",)
    )


BENCHMARK = entry("case30-matched", tasks, present)
