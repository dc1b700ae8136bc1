"""Small networks in formats of other programs, written for tests: IEEE CDF by columns, UCTE by hand."""

import numpy as np

from contingencies.formats.case import Case
from contingencies.formats.tables import Branches, Buses, Loads, Shunts, Units, sum_at, table

UCTE = """##C 2007.05.01
written for a test
##N
##ZFR
FNORTH11 NORTH        0 3 400.00       0       0    -300       0
FSOUTH11 SOUTH        0 0            250     100       0       0
FSOUTH21 SOUTH 220    0 2 225.00      50      20    -100       0
##ZBE
BEAST 11 EAST         0 0            100      30       0       0
##L
FNORTH11 FSOUTH11 1 0   3.00  30.00   200.00   1500 N-S
FSOUTH11 BEAST 11 1 0   1.50  15.00   100.00   1500 S-E
FNORTH11 BEAST 11 1 8   1.50  15.00   100.00   1500 N-E
##T
FSOUTH11 FSOUTH21 1 0 400.0 225.0   500 0.5000 20.000     0.00   0.00   1000 TR
##R
##TT
##E
"""


def three_buses() -> Case:
    """A slack bus 7, a PV bus 3 and a loaded bus 12 with a shunt; two lines and a transformer with tap and shift."""
    return Case(
        "three", 100.0,
        table(Buses, 3, number=[7, 3, 12], kind=[3, 2, 1], base_kv=[138.0, 138.0, 69.0], v=[1.03, 1.01, 1.0]),
        table(Loads, 2, bus=[1, 2], S_power=[0.2 + 0.05j, 0.6 + 0.25j]),
        table(Shunts, 1, bus=[2], y=[0.1j]),
        table(
            Branches, 3, start=[0, 0, 1], end=[1, 2, 2], circuit="1", r=[0.01, 0.005, 0.0], x=[0.1, 0.12, 0.2],
            b=[0.04, 0.0, 0.0], tap=[1.0, 0.98, 1.05], shift=np.deg2rad([0.0, 0.0, 4.0]),
            is_transformer=[False, True, True],
        ),
        table(Units, 2, bus=[0, 1], id="1", P=[0.5, 0.3], Q=[0.1, 0.05], v_set=[1.03, 1.01]),
    )  # fmt: skip


def cdf_text(case: Case) -> str:
    """A plain network as an IEEE CDF file; loads of constant power only, no shunts at the ends of branches."""
    n, base, buses = len(case.buses), case.base_mva, case.buses
    load = base * sum_at(n, case.loads.bus, case.loads.S_power)
    fed = base * sum_at(n, case.units.bus, case.units.P + 1j * case.units.Q)
    shunt = sum_at(n, case.shunts.bus, case.shunts.y)
    held = dict(zip(case.units.bus.tolist(), case.units.v_set.tolist(), strict=True))
    lines = [f" 08/19/93 {'TEST':20} {base:<6.1f} 1993 W {case.name:28}", f"BUS DATA FOLLOWS {n:>25} ITEMS"]
    for k in range(n):
        kind = {1: 0, 2: 2, 3: 3}[int(buses.kind[k])]
        lines.append(
            f"{buses.number[k]:4d} {f'Bus {buses.number[k]}':12} {1:2d}{1:3d} {kind:2d} {buses.v[k]:6.4f}"
            f"{np.rad2deg(buses.angle[k]):7.2f}{load[k].real:9.3f}{load[k].imag:9.3f} {fed[k].real:8.3f}"
            f"{fed[k].imag:8.3f} {buses.base_kv[k]:7.2f} {held.get(k, 0.0):6.4f}{0.0:8.2f}{0.0:8.2f}"
            f"{shunt[k].real:8.5f}{shunt[k].imag:8.5f} {0:4d}"
        )
    lines += ["-999", f"BRANCH DATA FOLLOWS {len(case.branches):>22} ITEMS"]
    rows = case.branches
    for k in range(len(rows)):
        kind, ratio, angle = 0, 0.0, np.rad2deg(rows.shift[k])
        if rows.is_transformer[k]:
            kind, ratio = (4 if angle else 1), rows.tap[k]
        lines.append(
            f"{buses.number[rows.start[k]]:4d} {buses.number[rows.end[k]]:4d} {1:2d}{1:3d} 1 {kind:1d}"
            f"{rows.r[k]:10.6f}{rows.x[k]:11.6f}{rows.b[k]:10.5f}{0:5d} {0:5d} {0:5d} {0:4d} {0}  "
            f"{ratio:6.4f} {angle:7.2f}{0.0:7.4f}{0.0:7.4f} {0.0:6.4f} {0.0:6.4f} {0.0:7.4f}"
        )
    return "\n".join([*lines, "-999", "END OF DATA", ""])
