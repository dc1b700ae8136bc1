"""MATPOWER cases, `.m` and `.mat`, read directly into the plain network.

Columns and their meaning: R. D. Zimmerman, C. E. Murillo-Sánchez, MATPOWER User's Manual, appendix B. A branch is
a line, and so removable, when it joins two buses of one voltage level with ratio 0 or 1 and no shift; all others
are transformers. Loads are constant power. Costs, areas and DC lines (which MATPOWER's power flow ignores too)
are left out.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.matpower_text import TABLES, MatpowerFile, Rows, parse_matpower
from contingencies.formats.tables import Branches, Buses, Float, Int, Loads, Shunts, Units, table

MAX_BYTES = 200_000_000  # a case of 193,000 buses has 60 MB
READING_LIMIT_S = 120.0  # far above the time that a network of 100,000 buses takes
READING_LIMIT_BYTES = 4_000_000_000  # address space of the reading process; a small file can unpack to any size
COLUMNS = {"bus": 11, "gen": 8, "branch": 11}  # the fewest that hold what is read


def read_matpower(content: bytes, suffix: str, name: str) -> Case:
    """The network of a MATPOWER file (`suffix` .m or .mat); complaints do not name the file."""
    if len(content) > MAX_BYTES:
        raise SpecError(f"the file has {len(content)} bytes, more than the {MAX_BYTES} that are read; split it.")
    if suffix == ".mat":
        return case_of(_mat_tables(content), name)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # names of places in older files; the tables are ASCII
    return case_of(parse_matpower(text), name)


def case_of(file: MatpowerFile, name: str) -> Case:
    """The plain network of MATPOWER tables."""
    for kind, columns in COLUMNS.items():
        rows = file.tables[kind]
        if len(rows.values) and rows.values.shape[1] < columns:
            raise SpecError(
                f"{rows.where(0)}: the table has {rows.values.shape[1]} columns, and {columns} are needed; "
                "export it as MATPOWER case format 2."
            )
        if not len(rows.values):
            file.tables[kind] = Rows(kind, np.empty((0, columns)), rows.lines)
    base = file.base_mva
    if not (np.isfinite(base) and base > 0):
        raise SpecError(f"mpc.baseMVA is {base}; give a base above 0, usually 100.")
    bus = file.tables["bus"].values
    buses = _buses(file)
    S, y = (bus[:, 2] + 1j * bus[:, 3]) / base, (bus[:, 4] + 1j * bus[:, 5]) / base
    loaded, shunted = np.flatnonzero(S), np.flatnonzero(y)
    return Case(
        name=name,
        base_mva=base,
        buses=buses,
        loads=table(Loads, len(loaded), bus=loaded, S_power=S[loaded]),
        shunts=table(Shunts, len(shunted), bus=shunted, y=y[shunted]),
        branches=_branches(file.tables["branch"], buses),
        units=_units(file.tables["gen"], buses, base),
    )


def _buses(file: MatpowerFile) -> Buses:
    rows = file.tables["bus"]
    values = rows.values
    _check_finite(rows, (0, 1, 2, 3, 4, 5, 7, 8, 9))
    numbers = _integers(rows, 0, "bus number")
    first_row = np.unique(numbers, return_index=True)[1]
    for row in np.setdiff1d(np.arange(len(numbers)), first_row).tolist()[:1]:
        raise SpecError(f"{rows.where(row)}: the bus number {numbers[row]} stands there already; number it anew.")
    names = file.bus_names if len(file.bus_names) == len(values) else ""
    return table(
        Buses, len(values), number=numbers, kind=_integers(rows, 1, "bus type"),
        v=values[:, 7], angle=np.deg2rad(values[:, 8]), base_kv=values[:, 9],
        area=_labels(values[:, 6]), zone=_labels(values[:, 10]), name=np.array(names, dtype=np.str_),
    )  # fmt: skip


def _branches(rows: Rows, buses: Buses) -> Branches:
    values = rows.values
    _check_finite(rows, (0, 1, 2, 3, 4, 8, 9, 10))
    start, end = (_positions(rows, column, buses) for column in (0, 1))
    ratio, shift = values[:, 8], np.deg2rad(values[:, 9])
    for row in np.flatnonzero((values[:, 2] == 0) & (values[:, 3] == 0) & (values[:, 10] > 0)).tolist()[:1]:
        raise SpecError(
            f"{rows.where(row)}: the branch has no impedance (r = x = 0); give it a small x such as 1e-4, "
            "or make its two buses one."
        )
    is_line = (buses.base_kv[start] == buses.base_kv[end]) & ((ratio == 0) | (ratio == 1)) & (shift == 0)
    out = values[:, 10] <= 0  # a jumper that is out of service may have no impedance; any will do
    x = np.where(out & (values[:, 2] == 0) & (values[:, 3] == 0), 1.0, values[:, 3])
    return table(
        Branches, len(values), start=start, end=end, r=values[:, 2], x=x, b=values[:, 4],
        tap=np.where(ratio == 0, 1.0, ratio), shift=shift, rating=np.nan_to_num(values[:, 5], posinf=0.0),
        in_service=~out, is_transformer=~is_line,
    )  # fmt: skip


def _units(rows: Rows, buses: Buses, base: float) -> Units:
    values = rows.values
    _check_finite(rows, (0, 1, 2, 5, 7))
    q_max = np.where(np.isnan(values[:, 3]), np.inf, values[:, 3]) / base
    q_min = np.where(np.isnan(values[:, 4]), -np.inf, values[:, 4]) / base
    return table(
        Units, len(values), bus=_positions(rows, 0, buses), P=values[:, 1] / base, Q=values[:, 2] / base,
        q_max=q_max, q_min=q_min, v_set=values[:, 5], in_service=values[:, 7] > 0,
        mva=np.nan_to_num(values[:, 6], posinf=0.0),
    )  # fmt: skip


def _positions(rows: Rows, column: int, buses: Buses) -> Int:
    numbers = _integers(rows, column, "bus number")
    return buses.position(
        numbers, lambda row, number: f"{rows.where(row)}: bus {number} is not in mpc.bus; add it there or mend the row."
    )


def _integers(rows: Rows, column: int, what: str) -> Int:
    values = rows.values[:, column]
    wrong = np.flatnonzero((values != np.round(values)) | (np.abs(values) > 1e15))
    if len(wrong):
        raise SpecError(f"{rows.where(int(wrong[0]))}: the {what} {values[wrong[0]]:g} is no integer; give one.")
    return values.astype(np.int64)


def _labels(values: Float) -> Int:
    """Numbers of areas and zones; they label only, so whatever is no number counts as 0."""
    return np.nan_to_num(np.clip(values, -1e9, 1e9)).astype(np.int64)


def _check_finite(rows: Rows, columns: tuple[int, ...]) -> None:
    used = rows.values[:, list(columns)]
    wrong = np.argwhere(~np.isfinite(used))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise SpecError(
            f"{rows.where(row)}: column {columns[column] + 1} is {used[row, column]}; give a finite number."
        )


# --- .mat -------------------------------------------------------------------------------------

# SciPy's reader can crash on a damaged file and unpack a small one to any size, so it works in a process of its own
# with limited memory, and only plain numbers come back.
_CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
import numpy as np
from scipy.io import loadmat
content = loadmat(sys.argv[1], variable_names=["mpc", "baseMVA", "bus", "gen", "branch"])
if "mpc" in content:
    struct = content["mpc"].flat[0]
    content = {name: struct[name] for name in struct.dtype.names}
names = [name for name in ("baseMVA", "bus", "gen", "branch") if name in content]
np.savez(sys.argv[2], **{name: np.asarray(content[name], dtype=float) for name in names})
"""


def _mat_tables(content: bytes) -> MatpowerFile:
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder) / "case.mat", Path(folder) / "case.npz"
        path.write_bytes(content)
        command = [sys.executable, "-c", _CHILD, str(path), str(result), str(READING_LIMIT_BYTES)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads would count against the memory limit
        try:
            subprocess.run(  # noqa: S603 own command
                command, capture_output=True, timeout=READING_LIMIT_S, check=True, env=environment
            )
            with np.load(result, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        except (subprocess.SubprocessError, OSError, ValueError):
            raise SpecError(
                "it is no readable .mat file with a struct mpc of numbers; write it again with savecase."
            ) from None
    missing = [name for name in ("baseMVA", *TABLES) if name not in found]
    if missing or found["baseMVA"].size != 1:
        raise SpecError(f"mpc has no {', '.join(missing) or 'single baseMVA'}; write it again with savecase.")
    tables = {}
    for name in TABLES:
        values = np.atleast_2d(found[name])
        if values.ndim != 2:
            raise SpecError(f"mpc.{name} is no table; write the file again with savecase.")
        tables[name] = Rows(name, values if values.size else np.empty((0, COLUMNS[name])), np.empty(0, dtype=np.int64))
    return MatpowerFile(float(found["baseMVA"].flat[0]), tables)
