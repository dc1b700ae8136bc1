"""Copies of shipped cases as users would bring them: MATPOWER and pandapower files with a system file beside."""

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np

from contingencies.library import System, load_system

MACHINES_14 = (1, 2, 3, 6, 8)


@lru_cache
def solved_case(name: str):
    """A solved pandapower case; do not change it."""
    import pandapower
    import pandapower.networks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = getattr(pandapower.networks, name)()
        pandapower.runpp(net, numba=False, trafo_model="pi")
    return net


def matpower_tables(name: str) -> dict[str, np.ndarray]:
    """Bus, gen and branch tables of a case, 1-based, without solved values."""
    from pandapower.converter.matpower.to_mpc import to_mpc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpc = to_mpc(solved_case(name), init="flat")["mpc"]
    tables = {"bus": mpc["bus"][:, :13], "gen": mpc["gen"][:, :21], "branch": mpc["branch"][:, :13]}
    return {key: np.nan_to_num(np.asarray(table).real, nan=100.0) for key, table in tables.items()}


def matpower_text(tables: dict[str, np.ndarray]) -> str:
    """Tables as a MATPOWER .m file."""
    text = "function mpc = grid\nmpc.version = '2';\nmpc.baseMVA = 100;\n"
    for name, table in tables.items():
        rows = "\n".join("\t" + "\t".join(f"{value:.17g}" for value in row) + ";" for row in table)
        text += f"mpc.{name} = [\n{rows}\n];\n"
    return text


def system_text(
    file: str, machines=MACHINES_14, machine: str = "H: 8.25, x_d: 0.205, D: 2.0", base: str = "system"
) -> str:
    """A system file for a copy of a case, with the same data for every machine."""
    units = "\n".join(f"    - {{bus: {bus}, {machine}}}" for bus in machines)
    return (
        f"name: grid\nnetwork: {{file: {file}}}\nmachines:\n  base: {base}\n  units:\n{units}\n"
        "provenance: a copy for tests\n"
    )


def write_system(folder: Path, file: str, content: bytes | str, **system) -> System:
    """Write a network and its system file, and load them."""
    (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "grid.yaml").write_text(system_text(file, **system))
    return load_system(str(folder / "grid.yaml"))


def meshed_case_with_shifter(folder: Path) -> System:
    """IEEE 14 with a 12 degree phase shifter at 4-7 and a second, weaker circuit 4-5 written backwards."""
    tables = matpower_tables("case14")
    branch = tables["branch"]
    ends = branch[:, :2].astype(int).tolist()
    branch[ends.index([4, 7]), 9] = 12.0
    second = branch[ends.index([4, 5])].copy()
    second[:2] = second[1::-1]
    second[2:5] *= 1.7
    tables["branch"] = np.vstack([branch, second])
    return write_system(folder, "grid.m", matpower_text(tables))
