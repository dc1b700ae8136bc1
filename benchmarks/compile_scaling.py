"""How the cost of compiling an N-1 line family grows with the network, on one core.

For each network: solve its power flow, generate every line fault cleared by removing the line, and compile
all of them with one factorisation. Machines are synthetic; only their number matters here. A sample of the
members is checked against the direct construction (dense reduction of the edited network).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np

from contingencies.admittance import bus_admittance, faulted_bus_admittance, kron_reduction
from contingencies.connectivity import connectivity
from contingencies.families import generate_family
from contingencies.library import System
from contingencies.network import solve_network
from contingencies.operators import PhaseOperators, compile_family
from contingencies.recipes import Recipe
from contingencies.reduction import Reduction
from contingencies.system_specs import Machine, Machines, PandapowerCase, SystemSpec

CASES = ("case118", "case_illinois200", "case1354pegase", "case2869pegase")
CHECKED = 3  # members per case compared with the dense construction, which takes seconds each on the largest
REPEATS = 3  # the fastest is reported: the cores are shared


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    case: str
    buses: int
    members: int
    power_flow_s: float
    compile_s: float
    error: float

    @property
    def ms_per_contingency(self) -> float:
        return 1e3 * self.compile_s / self.members


def synthetic_system(case: str) -> System:
    """A pandapower case with one typical 200 MVA machine at each generator bus."""
    import pandapower.networks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = getattr(pandapower.networks, case)()
    buses = sorted({int(net.bus.name[bus]) for bus in [*net.gen.bus, *net.ext_grid.bus]})
    units = tuple(Machine(bus=bus, H=4.0, x_d=0.3, D=2.0, mva=200.0) for bus in buses)
    spec = SystemSpec(
        name=case,
        network=PandapowerCase(pandapower=case),
        machines=Machines(base="machine", units=units),
        provenance="synthetic machines for a scaling run",
    )
    return System(spec)


def direct_error(operators: PhaseOperators, alpha: float) -> float:
    """Largest relative difference of the fault-on and post-clearing operators from the dense construction."""
    network, point = operators.network, operators.fault_point
    assert point is not None
    faulted = faulted_bus_admittance(network, point.nodes, point.weights, alpha * point.y, point.z_series)
    errors = []
    for compiled, Y_bus in (
        (operators.Y_fault(alpha), faulted),
        (operators.Y_post, bus_admittance(network, operators.removed_branches)),
    ):
        direct = kron_reduction(Y_bus, network)
        errors.append(float(np.abs(compiled - direct).max() / np.abs(direct).max()))
    return max(errors)


def measure(case: str, checked: int) -> Row:
    """Compile the N-1 line family of one case."""
    system = synthetic_system(case)
    started = time.perf_counter()
    network = solve_network(system)
    power_flow_s = time.perf_counter() - started
    seconds = []
    for _ in range(REPEATS):
        connectivity.cache_clear()  # its search is part of the cost
        started = time.perf_counter()
        family = generate_family(system, Recipe("line", "remove-line", impedance=None))
        operators = compile_family(family.members, Reduction.of(network))
        seconds.append(time.perf_counter() - started)
    sample = np.random.default_rng(0).choice(len(operators), size=checked, replace=False)
    error = max((direct_error(operators[k], 0.7) for k in sample), default=0.0)
    return Row(case, network.n_buses, len(operators), power_flow_s, min(seconds), error)


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checked", type=int, default=CHECKED, help="members per case to compare with the dense way")
    checked = parser.parse_args().checked
    print(f"{'case':<16}{'buses':>7}{'members':>9}{'power flow s':>14}{'compile s':>11}{'ms/member':>11}{'error':>10}")
    rows = []
    for case in CASES:
        row = measure(case, checked)
        rows.append(row)
        print(
            f"{row.case:<16}{row.buses:>7}{row.members:>9}{row.power_flow_s:>14.2f}{row.compile_s:>11.3f}"
            f"{row.ms_per_contingency:>11.3f}{row.error:>10.1e}",
            flush=True,
        )
    growth = np.polyfit(np.log([row.buses for row in rows]), np.log([row.ms_per_contingency for row in rows]), 1)[0]
    print(f"ms per contingency grows as buses^{growth:.2f}")
    for row in rows:
        print(f"figure compile_ms_per_contingency_{row.case} {row.ms_per_contingency:.4f} ms")
    print(f"figure compile_max_relative_error {max(row.error for row in rows):.2e} 1")
    print(f"figure compile_growth_exponent {growth:.3f} 1")
    print(f"figure compile_case2869_s {rows[-1].power_flow_s + rows[-1].compile_s:.2f} s")


if __name__ == "__main__":
    main()
