"""Time and agreement of the power flow: ours against pandapower's, side by side in one run.

Both solve the same network, warm (the first call is not counted): pandapower the net it ships, as `runpp` does it
without and with numba; ours the arrays made from it, the bus matrix and the pattern of the Jacobian included. `next
point` is ours from a neighbouring solution, as a sweep over operating points does it. The ratio is to pandapower with
numba.

    python benchmarks/power_flow_speed.py
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from contingencies.formats.energised import energised
from contingencies.formats.pandapower import case_of_net
from contingencies.power_flow import PowerFlow

CASES = ("case39", "case300", "case2869pegase")
REPEATS = 7  # the median of the processor's clock is reported: the cores are shared


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Median processor time of an action after a first, uncounted one."""
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return float(np.median(times))


def compare(name: str) -> None:
    """Print one line of the table and the figures of a case."""
    import pandapower
    import pandapower.networks

    net = getattr(pandapower.networks, name)()
    repeats = REPEATS if len(net.bus) < 1000 else 3

    def theirs(numba: bool) -> None:
        pandapower.runpp(net, trafo_model="pi", init="dc", tolerance_mva=1e-8, numba=numba, lightsim2grid=False)

    case = energised(case_of_net(net, "index", name))

    def ours() -> object:
        return PowerFlow(case).solve()

    times = {
        "pandapower": seconds(lambda: theirs(False), repeats),
        "with numba": seconds(lambda: theirs(True), repeats),
        "ours": seconds(ours, repeats),
    }
    flow = PowerFlow(case)
    solution = flow.solve()
    heavier = replace(case, loads=replace(case.loads, S_power=1.002 * case.loads.S_power))
    times["next point"] = seconds(lambda: flow.solve(heavier, solution.V), repeats)

    rows = case.buses.number
    table = net.res_bus.loc[rows]
    V = table.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(table.va_degree.to_numpy()))
    difference = float(np.abs(V - solution.V).max())
    ratio = times["with numba"] / times["ours"]
    print(
        f"{name:>15} {len(case.buses):>6} "
        + " ".join(f"{1e3 * value:>13.2f}" for value in times.values())
        + f" {ratio:>7.1f} {difference:>10.1e} {solution.iterations:>4}"
    )
    for key, value in times.items():
        print(f"figure power_flow_{name}_{key.replace(' ', '_')} {1e3 * value:.3f} ms")
    print(f"figure power_flow_{name}_speedup {ratio:.1f} x")
    print(f"figure power_flow_{name}_difference {difference:.1e} pu")


def main() -> None:
    """Compare all cases."""
    heads = ("pandapower ms", "with numba ms", "ours ms", "next point ms")
    print(f"{'case':>15} {'buses':>6} {' '.join(f'{head:>13}' for head in heads)} {'ratio':>7} {'|dV| pu':>10} its")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CASES:
            compare(name)


if __name__ == "__main__":
    main()
