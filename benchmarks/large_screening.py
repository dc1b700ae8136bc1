"""Screening of large networks: time per member against machines, alone and on a cluster that loses a worker.

Bolted bus faults, cleared without a change of the network, on networks of 300 to 2,869 buses with synthetic machines
(one at each generator bus, a quarter larger than what it feeds), through the executor. Times are processor seconds
per member. Beside the time stands what it is made of: the cost of one evaluation of the electrical powers by the dense
reduced admittance and, for comparison, by one sparse solve of the whole network, per trajectory, both on as many
trajectories at once.

`--dask` screens the smallest case again on a local Dask cluster of two workers of which one is killed half-way, and
compares every answer. MATPOWER's case300 differs from the one that pandapower ships: `--case300 FILE` names it;
without it the 200-bus case stands in.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from compile_scaling import synthetic_system

from contingencies.families import generate_family
from contingencies.kernels import MAX_LANES, power_lanes
from contingencies.library import System, load_system
from contingencies.network import solve_network
from contingencies.ode import rk4_step
from contingencies.operators import PhaseOperators, compile_family, compile_members
from contingencies.recipes import Recipe
from contingencies.reduction import Reduction
from contingencies.system_specs import Machine, Machines, NetworkFile, SystemSpec
from zoo.studies.screening import Screened, screen
from zoo.work.executor import DaskCluster, Executor, LocalProcesses, Serial

CASES = ("case1354pegase", "case2869pegase")
SMALLEST = "case_illinois200"
SMALLEST_MVA = 100.0
REPEATS = 5  # the fastest counts: the cores are shared


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    case: str
    buses: int
    machines: int
    members: int
    finite: int
    ms_per_member: float
    step_ms: float
    dense_us: float  # one evaluation of the powers, per trajectory
    sparse_us: float
    nonzeros: int  # of the factors of the network


def matpower_system(path: Path) -> System:
    """A MATPOWER file with one typical 200 MVA machine at each generator bus."""
    text = path.read_text()
    block = text[text.index("mpc.gen = [") :].split("];", 1)[0].splitlines()[1:]
    buses = sorted({int(float(line.split()[0])) for line in block if line.strip() and not line.strip().startswith("%")})
    spec = SystemSpec(
        name=path.stem,
        network=NetworkFile(file=path.name),
        machines=Machines(
            base="machine", units=tuple(Machine(bus=bus, H=4.0, x_d=0.3, D=2.0, mva=200.0) for bus in buses)
        ),
        provenance="synthetic machines for a scaling run",
    )
    return System(spec, path.read_bytes())


def sized(system: System) -> System:
    """The same system with machines a quarter larger than what they feed: equal ones would be lost at once."""
    network = solve_network(system)
    power_mva = 100.0 * np.abs(Reduction.of(network).P_m)
    units = tuple(
        Machine(bus=int(bus), H=4.0, x_d=0.3, D=2.0, mva=max(SMALLEST_MVA, 1.25 * float(power)))
        for bus, power in zip(network.bus_numbers[network.machine_bus], power_mva, strict=True)
    )
    spec = system.spec.model_copy(update={"machines": Machines(base="machine", units=units)})
    return System(spec, system.network_file)


def best_s(task: Callable[[], Any]) -> float:
    """Fastest of several runs after a warm-up, processor seconds."""
    task()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def evaluation_us(operators: PhaseOperators, reduction: Reduction) -> tuple[float, float]:
    """Processor time of the electrical powers of one trajectory: by the dense reduced admittance, by a sparse solve.

    Both evaluate as many trajectories at once as the compiled integrator does; the sparse one solves for the voltages
    of all buses with the factors that the reduction was made with.
    """
    n, network = operators.n_machines, reduction.network
    delta = operators.delta_0[:, None] + np.linspace(0.0, 0.1, MAX_LANES)
    scaled = operators.Y_pre * np.outer(operators.E, operators.E)
    G, B = np.ascontiguousarray(scaled.real), np.ascontiguousarray(scaled.imag)
    c, s, P_e, I = (np.empty((n, MAX_LANES)) for _ in range(4))
    sources = np.zeros((network.n_buses, MAX_LANES), dtype=complex, order="F")

    def sparse() -> np.ndarray:
        E = operators.E[:, None] * np.exp(1j * delta)
        sources[network.machine_bus] = reduction.y_g[:, None] * E
        V = reduction.solver.solve(sources)[network.machine_bus]
        return (E * (reduction.y_g[:, None] * (E - V)).conj()).real

    dense_s = best_s(lambda: _powers(delta, G, B, c, s, I, P_e))
    sparse_s = best_s(sparse)
    assert np.allclose(P_e, sparse(), atol=1e-9), "both must be the same powers"
    return 1e6 * dense_s / MAX_LANES, 1e6 * sparse_s / MAX_LANES


@numba.njit
def _powers(delta, G, B, c, s, I, P_e):
    power_lanes(delta, G, B, c, s, I, P_e)


def compile_kernels() -> None:
    """Compile the integrator, or load what is compiled, on a small system: the code is the same."""
    screen(compile_members(generate_family(load_system("ieee9"), Recipe("bus", "restore")).members[:1]), 1.0)


def measure(system: System, count: int, executor: Executor) -> tuple[Row, list[PhaseOperators], list[Screened]]:
    """Screen members spread over the buses of a system."""
    network = solve_network(system)
    reduction = Reduction.of(network)
    everyone = generate_family(system, Recipe("bus", "restore")).members
    chosen = [everyone[k] for k in np.unique(np.linspace(0, len(everyone) - 1, count).round().astype(int))]
    operators = compile_family(chosen, reduction)
    began = time.process_time()
    alone = screen(operators, 1.0, executor=Serial())
    each_s = (time.process_time() - began) / len(operators)
    again = screen(operators, 1.0, executor=executor)
    assert [one.report() for one in again] == [one.report() for one in alone], "workers must answer as this process"
    dense_us, sparse_us = evaluation_us(operators[0], reduction)
    finite = sum(one.status == "finite" for one in alone)
    row = Row(
        system.name, network.n_buses, network.n_machines, len(operators), finite, 1e3 * each_s,
        1e3 * rk4_step(operators[0]), dense_us, sparse_us, reduction.solver.L.nnz + reduction.solver.U.nnz,
    )  # fmt: skip
    return row, operators, alone


def on_a_dying_cluster(operators: list[PhaseOperators], alone: list[Screened]) -> None:
    """The same answers from two Dask workers of which one is killed when half of the members are done."""
    import signal

    from distributed import Client, LocalCluster

    killed = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())

        def kill_one(stage: str, done: float, total: float, detail: str = "") -> None:
            if not killed and 2 * done >= total:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        executor = DaskCluster(cluster.scheduler_address)
        executor.workers = 2  # so that members travel in several batches
        answers = screen(operators, 1.0, executor=executor, report=kill_one)
    same = [one.report() for one in answers] == [one.report() for one in alone]
    print(f"two Dask workers, one killed half-way: {len(answers)} answers, {'the same' if same else 'NOT the same'}")
    if not same:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help="pandapower cases, small ones first")
    parser.add_argument("--case300", type=Path, help="MATPOWER's case300.m, as in its Python package")
    parser.add_argument("--members", type=int, default=6, help="bus faults of each case")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes of the second screen")
    parser.add_argument("--dask", action="store_true", help="also on a Dask cluster that loses a worker")
    arguments = parser.parse_args()
    executor = LocalProcesses(arguments.jobs)
    systems = [matpower_system(arguments.case300) if arguments.case300 else synthetic_system(SMALLEST)]
    systems += [synthetic_system(case) for case in arguments.cases.split(",") if case]
    compile_kernels()
    print("bolted bus faults at severity 1; processor time; the powers per trajectory, 32 at once")
    print("case              buses machines members finite  ms/member step ms dense us sparse us  factors")
    rows = []
    for place, system in enumerate(systems):
        row, operators, alone = measure(sized(system), arguments.members, executor)
        rows.append(row)
        print(
            f"{row.case:17} {row.buses:5} {row.machines:8} {row.members:7} {row.finite:6} {row.ms_per_member:10.0f} "
            f"{row.step_ms:7.1f} {row.dense_us:8.2f} {row.sparse_us:9.2f} {row.nonzeros:8}  "
            f"same answers from {arguments.jobs} processes",
            flush=True,
        )
        if arguments.dask and place == 0:
            on_a_dying_cluster(operators, alone)
    machines, times = (np.array([getattr(row, name) for row in rows]) for name in ("machines", "ms_per_member"))
    print(f"figure large_screen_ms_per_member_{rows[-1].case.removesuffix('pegase')} {times[-1]:.0f} ms")
    if len(rows) > 1:
        print(f"figure large_screen_exponent {np.polyfit(np.log(machines), np.log(times), 1)[0]:.2f} 1")


if __name__ == "__main__":
    main()
