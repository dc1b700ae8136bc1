"""One scenario by any reference simulator, and as a table."""

import io

import numpy as np

from contingencies.errors import UsageError
from contingencies.ode import Trajectory, fast_trajectory, strict_trajectory
from contingencies.operators import PhaseOperators
from contingencies.stability import REFERENCES, Reference


def reference_trajectory(operators: PhaseOperators, alpha: float, t_c: float, reference: Reference) -> Trajectory:
    """The trajectory of one scenario, sampled each millisecond."""
    if reference == "fast":
        return fast_trajectory(operators, alpha, t_c)
    if reference == "strict":
        return strict_trajectory(operators, alpha, t_c)
    if reference == "dae":
        from contingencies.dae import simulate_dae
        from contingencies.stability import check_scenario

        check_scenario(operators, alpha, t_c)
        full = simulate_dae(operators, alpha, t_c)
        return Trajectory(full.t, full.delta, full.omega)
    raise UsageError(f"reference {reference!r} is not known; use one of {', '.join(REFERENCES)}.")


def trajectory_csv(operators: PhaseOperators, trajectory: Trajectory) -> str:
    """Time, angles and speeds of all machines as CSV with a header, one row per sample."""
    buses = operators.machine_buses
    header = ",".join(["t_s", *(f"delta_{bus}_rad" for bus in buses), *(f"omega_{bus}_pu" for bus in buses)])
    table = np.column_stack([trajectory.t, trajectory.delta, trajectory.omega])
    text = io.StringIO()
    np.savetxt(text, table, delimiter=",", header=header, comments="", fmt="%.12g")
    return text.getvalue()
