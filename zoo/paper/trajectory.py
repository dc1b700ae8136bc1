"""The supercritical case of the paper's trajectory figures: alpha = 0.93, cleared at 0.73 s."""

from typing import Any

import numpy as np
import torch

from contingencies.dae import dae_cct, simulate_dae
from contingencies.ode import strict_trajectory
from contingencies.references import reference_cct
from contingencies.trajectories import Trajectory, output_times
from espinn_moe.boundary import learned_boundary
from espinn_moe.surrogate import Surrogate
from zoo.judging.figures import plot_trajectories
from zoo.judging.metrics import trajectory_errors
from zoo.paper.common import BOTH_FORMS, CALIBRATED, METHODS, PRIMARY, trained_why, training
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.measurements import boundary_values
from zoo.paper.members import operators_of
from zoo.paper.tables import Drawing, Presentation, Quantity, Row, Table, cell

ALPHA, T_C = 0.93, 0.73
DAE_STEP_S = 1e-3


def references(contingency: str, alpha: float, t_c: float, step: float) -> dict[str, Any]:
    """The scenario by the strict reduced ODE and by the full network, on one time grid, with the CCT of both."""
    operators = operators_of(contingency)
    t = output_times(operators)
    ode, full = strict_trajectory(operators, alpha, t_c, t), simulate_dae(operators, alpha, t_c, step)

    def at(values: np.ndarray) -> list[list[float]]:
        return np.stack([np.interp(t, full.t, column) for column in values.T], axis=1).tolist()

    return {
        "t": t.tolist(),
        "ode": {"delta": ode.delta.tolist(), "omega": ode.omega.tolist()},
        "dae": {"delta": at(full.delta), "omega": at(full.omega)},
        "cct": {"ode": reference_cct(operators, alpha, "strict").cct, "dae": dae_cct(operators, alpha, step).cct},
    }


def learned(surrogate: Surrogate, alpha: float, t_c: float) -> dict[str, Any]:
    """The scenario by a surrogate, on the output grid, with its CCT."""
    n, t = surrogate.n_machines, output_times(surrogate.members[0])
    with torch.no_grad():
        times, severity, instant = (torch.as_tensor(x, dtype=surrogate.dtype) for x in (t, [alpha], [t_c]))
        states = surrogate.trajectories(times, severity, instant)[0, 0].double().numpy()
    cct = boundary_values(learned_boundary(surrogate, np.array([alpha])))["cct"][0]
    return {"delta": states[:, :n].tolist(), "omega": states[:, n:].tolist(), "cct": cct}


def _reference(setting: Setting) -> Task:
    return task("trajectory:references", contingency=PRIMARY, alpha=ALPHA, t_c=T_C, step=DAE_STEP_S)


def _of(setting: Setting, model: str) -> Task:
    return task("trajectory:learned", training(setting, model, seed=setting.seeds[0]), alpha=ALPHA, t_c=T_C)


def tasks(setting: Setting) -> list[Task]:
    """Both references, and both forms of the surrogate."""
    return [_reference(setting), *(_of(setting, model) for model in BOTH_FORMS)]


def _values(result: dict[str, Any], t: list[float]) -> Trajectory:
    return Trajectory(np.array(t), np.array(result["delta"]), np.array(result["omega"]))


def present(setting: Setting, findings: Findings) -> Presentation:
    """Errors against the strict ODE, and the figures of the critical pair and of all machines."""
    truth = findings.get(_reference(setting))
    rows, drawings = [], []

    def row(label: str, result: dict[str, Any] | None, cct: float | None, why: str) -> Row:
        errors = None
        if truth is not None and result is not None:
            both = [
                np.concatenate([np.array(x["delta"]), np.array(x["omega"])], axis=1) for x in (result, truth["ode"])
            ]
            errors = trajectory_errors(both[0], both[1])
        return Row(
            label,
            (
                cell([cct]),
                cell([errors.rmse_delta_decisive] if errors else [], factor=1e2),
                cell([errors.rmse_omega_decisive] if errors else [], factor=1e4),
                cell([errors.rmse_delta] if errors else [], factor=1e2),
            ),
            why,
        )

    if truth is not None:
        rows.append(row("reduced ODE (strict)", truth["ode"], truth["cct"]["ode"], CALIBRATED))
        rows.append(
            row("full-network DAE, 1 ms", truth["dae"], truth["cct"]["dae"], f"{CALIBRATED}; error of its step")
        )
    else:
        problem = findings.problem([_reference(setting)])
        rows += [row(label, None, None, problem) for label in ("reduced ODE (strict)", "full-network DAE, 1 ms")]
    for model in BOTH_FORMS:
        result = findings.get(_of(setting, model))
        problem = findings.problem([_of(setting, model)])
        rows.append(
            row(METHODS[model], result, result["cct"] if result else None, problem or trained_why(setting, model))
        )
        if result is not None and truth is not None:
            others = {name: _values(truth[key], truth["t"]) for name, key in (("ODE", "ode"), ("DAE", "dae"))}
            figure = plot_trajectories(operators_of(PRIMARY), _values(result, truth["t"]), others, ALPHA, T_C)
            drawings.append(Drawing(model, f"{METHODS[model]}: critical pair, and all machines.", figure))
    table = Table(
        "scenario",
        f"α = {ALPHA:g}, cleared at {T_C:g} s: after the CCT, so that synchronism is lost",
        "Figures 2 and 6",
        (
            Quantity("CCT at this severity", "s", 5),
            Quantity("decisive RMSE delta", "1e-2 rad"),
            Quantity("decisive RMSE omega", "1e-4 pu"),
            Quantity("RMSE delta, whole window", "1e-2 rad"),
        ),
        tuple(rows),
    )
    return Presentation((table,), tuple(drawings), ("The paper shows this case as figures only, without numbers.",))


BENCHMARK = entry("trajectory", tasks, present)
