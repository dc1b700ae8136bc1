"""One CCT by ANDES, a general power-system simulator, when it is installed: a rival for the runtime table.

The very network, machines and fault of a contingency are handed over, so that both answers may be compared.
Only shunt faults that are cleared by restoring the network are translated.
"""

import contextlib
import importlib
import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from contingencies.operators import PhaseOperators
from contingencies.separation import spread

STEP_S = 5e-3
TOLERANCE_S = 1e-5  # of the bisection, the paper's
FAULT_BUS = 10**6  # number of the virtual bus in a faulted line


def andes_milliseconds(operators: PhaseOperators, alpha: float) -> dict[str, Any]:
    """Time and CCT of a bisection over the clearing window at one severity; every probe is one simulation."""
    first, last = operators.window.t_c
    unstable = _simulation(operators, alpha)
    unstable(first)  # the first run generates code
    started, simulations = time.process_time(), 0
    stable_until, unstable_from = first, last
    while unstable_from - stable_until > TOLERANCE_S:
        middle = 0.5 * (stable_until + unstable_from)
        simulations += 1
        if unstable(middle):
            unstable_from = middle
        else:
            stable_until = middle
    elapsed = 1e3 * (time.process_time() - started)
    return {"median": elapsed, "severities": 1, "simulations": simulations, "cct": unstable_from, "alpha": alpha}


def _simulation(operators: PhaseOperators, alpha: float) -> Callable[[float], bool]:
    """Clearing instant -> whether synchronism is lost, by one time-domain simulation of ANDES."""
    andes = importlib.import_module("andes")  # optional, and without types
    andes.config_logger(stream_level=50)

    def unstable(t_c: float) -> bool:
        with contextlib.redirect_stdout(io.StringIO()):
            system = _system(andes, operators, alpha, t_c)
            system.PFlow.run()
            system.TDS.config.tf, system.TDS.config.tstep, system.TDS.config.no_tqdm = operators.window.T, STEP_S, 1
            system.TDS.config.criteria = 0
            system.TDS.run()
        delta = system.dae.ts.x[:, system.GENCLS.delta.a]
        return bool(spread(delta).max() >= operators.max_separation)

    return unstable


def _system(andes: Any, operators: PhaseOperators, alpha: float, t_c: float) -> Any:
    """The contingency as an ANDES system, per unit on the same base."""
    network, point = operators.network, operators.fault_point
    assert point is not None and point.y is not None, "only shunt faults are translated"
    base, frequency = network.base_mva, network.omega_b / (2.0 * np.pi)
    system = andes.System(default_config=True, no_output=True)
    system.config.mva, system.config.freq = base, frequency
    buses = [int(number) for number in network.bus_numbers]
    for number, V in zip(buses, network.V, strict=True):
        system.add("Bus", {"idx": number, "Vn": 1.0, "v0": abs(V), "a0": np.angle(V)})
    branches = network.branches
    inside = set(point.nodes.tolist()) if len(point.nodes) > 1 else set()
    shunts = network.y_shunt + network.y_load
    for k in range(len(branches.start)):
        i, j, y = int(branches.start[k]), int(branches.end[k]), branches.y_series[k]
        tap = -y / branches.y_tf[k]
        charging = branches.y_tt[k] - y
        if {i, j} == inside:  # the faulted line, in two parts around the virtual bus
            shunts[[i, j]] += charging
            system.add("Bus", {"idx": FAULT_BUS, "Vn": 1.0, "v0": abs(network.V[i]), "a0": np.angle(network.V[i])})
            for end, weight in zip(point.nodes.tolist(), point.weights.tolist(), strict=True):
                z = (1.0 - weight.real) / y
                system.add("Line", _line(buses[end], FAULT_BUS, z, base))
            inside = set()  # a parallel circuit stays whole
        else:
            line = _line(buses[i], buses[j], 1.0 / y, base)
            half = {"g1": charging.real, "b1": charging.imag, "g2": charging.real, "b2": charging.imag}
            system.add("Line", line | half | {"tap": abs(tap), "phi": np.angle(tap)})
    for number, y in zip(buses, shunts, strict=True):
        if y != 0:
            system.add("Shunt", {"bus": number, "g": y.real, "b": y.imag, "Sn": base, "Vn": 1.0})
    for k, position in enumerate(network.machine_bus.tolist()):
        V, number = network.V[position], buses[position]
        power = float(operators.P_m_pre[k])
        static = {"idx": f"S{k}", "bus": number, "v0": abs(V), "p0": power, "Sn": base, "Vn": 1.0}
        system.add("Slack" if k == 0 else "PV", static | ({"a0": np.angle(V)} if k == 0 else {}))
        system.add(
            "GENCLS",
            {"bus": number, "gen": f"S{k}", "M": 2.0 * network.H[k], "D": network.D[k], "xd1": network.x_d[k],
             "ra": 0.0, "Sn": base, "Vn": 1.0, "fn": frequency},
        )  # fmt: skip
    z = 1.0 / (alpha * point.y)
    faulted = FAULT_BUS if len(point.nodes) > 1 else buses[int(point.nodes[0])]
    system.add("Fault", {"bus": faulted, "tf": operators.window.t_f, "tc": t_c, "rf": z.real, "xf": z.imag})
    system.setup()
    return system


def _line(start: int, end: int, z: complex, base: float) -> dict[str, Any]:
    return {"bus1": start, "bus2": end, "r": z.real, "x": z.imag, "b": 0.0, "Sn": base, "Vn1": 1.0, "Vn2": 1.0}
