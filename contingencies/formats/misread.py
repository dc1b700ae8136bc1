"""Which MATPOWER files the releases up to 0.1 read wrongly, so that their systems get a new identity.

Those releases went through pandapower's converter. A file without any of these features was read rightly and keeps
its identity, and the heads made for it stay valid.
"""

import numpy as np

from contingencies.formats.case import Case
from contingencies.formats.tables import PQ


def misread_features(case: Case) -> tuple[str, ...]:
    """What in a MATPOWER network the converter got wrong, in words; empty when it was right."""
    branches, units, kv = case.branches, case.units, case.buses.base_kv
    as_transformer = (branches.tap != 1.0) | (branches.shift != 0.0)  # the converter's own distinction
    upwards = as_transformer & (kv[branches.start] < kv[branches.end])
    between_levels = ~as_transformer & (kv[branches.start] != kv[branches.end])
    holding = units.bus[units.in_service & (case.buses.kind[units.bus] != PQ)]
    found = {
        "a ratio on the low-voltage side": (upwards & branches.in_service & (branches.tap != 1.0)).any(),
        "a phase shift on the low-voltage side": (upwards & branches.in_service & (branches.shift != 0.0)).any(),
        "a transformer with charging": (as_transformer & branches.in_service & (branches.b > 0)).any(),
        "several units at a bus": len(np.unique(holding)) < len(holding),
        "a branch out of service between voltage levels": (between_levels & ~branches.in_service).any(),
    }
    return tuple(name for name, present in found.items() if present)
