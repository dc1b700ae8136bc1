"""Appendix table: severities 1.02 to 1.20, beyond those of training, on the primary benchmark."""

from functools import partial
from typing import Any

import numpy as np

from contingencies.references import reference_boundary
from contingencies.stability import candidates
from espinn_moe.boundary import learned_boundary
from espinn_moe.surrogate import Surrogate
from zoo.judging.metrics import cct_errors
from zoo.paper.case30_matched import QUANTITIES, trajectory_values
from zoo.paper.common import METHODS, method_rows, per_seed, trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.measurements import grid_errors
from zoo.paper.tables import Presentation, Published, Quantity, Table

SEVERITIES = (1.02, 1.20, 10)  # with 101 clearing instants: the paper's 1,010 pairs
PAPER = {  # RMSE_delta rad, RMSE_omega pu, separation MAE degrees, mIoU, CCT MAE ms, CCT P95 ms
    "vanilla-pinn": (
        Published(3.70e-1, 0.95e-1), Published(2.99e-3, 0.65e-3), Published(21.35, 6.42), Published(0.9382, 0.0173),
        Published(14.63, 4.52), Published(24.20, 5.69),
    ),
    "xpinn": (
        Published(2.41e-1, 0.99e-1), Published(1.72e-3, 0.29e-3), Published(13.42, 7.68), Published(0.9943, 0.0054),
        Published(5.31, 1.14), Published(8.78, 5.09),
    ),
    "pi-deeponet": (
        Published(8.56e-1, 0.52e-1), Published(5.45e-3, 0.16e-3), Published(59.61, 33.50), Published(0.9480, 0.0044),
        Published(12.02, 1.36), Published(22.55, 2.15),
    ),
    "es-pinn": (
        Published(1.78e-1, 0.42e-1), Published(1.43e-3, 0.32e-3), Published(10.60, 1.54), Published(0.9952, 0.0052),
        Published(1.28, 0.51), Published(3.94, 2.80),
    ),
}  # fmt: skip


def measure(surrogate: Surrogate, severities: tuple[float, float, int]) -> dict[str, Any]:
    """Errors on the pairs beyond the training range, and of the boundary there."""
    operators, alpha = surrogate.members[0], np.linspace(severities[0], severities[1], int(severities[2]))
    errors = cct_errors(learned_boundary(surrogate, alpha), reference_boundary(operators, alpha))
    return grid_errors(surrogate, alpha, candidates(operators)) | {"cct": errors.to_dict()}


def _of(setting: Setting, model: str) -> list[Task]:
    return per_seed(setting, "case30_extrapolation:measure", model, severities=SEVERITIES)


def tasks(setting: Setting) -> list[Task]:
    """One measurement of every method and seed."""
    return [each for model in METHODS for each in _of(setting, model)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """The table."""
    values = [*trajectory_values(), (lambda r: r["cct"]["mae"], 1e3), (lambda r: r["cct"]["p95"], 1e3)]
    done = {model: _of(setting, model) for model in METHODS}
    table = Table(
        "extrapolation",
        "Severities 1.02 to 1.20, 1,010 pairs",
        "Table 7",
        (*QUANTITIES, Quantity("CCT MAE", "ms"), Quantity("CCT P95", "ms")),
        tuple(method_rows(findings, done, values, PAPER, METHODS, partial(trained_why, setting))),
    )
    return Presentation(
        (table,), notes=("CCT errors are against the fast reduced ODE; no training severity is above 1.",)
    )


BENCHMARK = entry("case30-extrapolation", tasks, present)
