"""The same network as PSS/E prints it in versions 32 to 35: every column of every version, written out on its own.

Independent of the reader: each version's columns are named in the order of its manual, and a value goes to its
column by name. What a version does not have is left out, what the network does not have holds a decoy.
"""

from dataclasses import dataclass, field
from typing import Any

RATES = [f"RATE{k}" for k in range(1, 13)]
OWNERS = ["O1", "F1", "O2", "F2", "O3", "F3", "O4", "F4"]
BUS = ["I", "NAME", "BASKV", "IDE", "AREA", "ZONE", "OWNER", "VM", "VA", "NVHI", "NVLO", "EVHI", "EVLO"]
LOAD = ["I", "ID", "STAT", "AREA", "ZONE", "PL", "QL", "IP", "IQ", "YP", "YQ", "OWNER", "SCALE"]
GEN_HEAD = ["I", "ID", "PG", "QG", "QT", "QB", "VS", "IREG"]
GEN_TAIL = ["MBASE", "ZR", "ZX", "RT", "XT", "GTAP", "STAT", "RMPCT", "PT", "PB"]
STEPS = [name for k in range(1, 9) for name in (f"N{k}", f"B{k}")]
COLUMNS: dict[tuple[str, int], list[str]] = {
    ("bus", 32): BUS[:9],
    ("bus", 33): BUS,
    ("load", 32): LOAD,
    ("load", 33): [*LOAD, "INTRPT"],
    ("load", 34): [*LOAD, "INTRPT", "DGENP", "DGENQ", "DGENM"],
    ("load", 35): [*LOAD, "INTRPT", "DGENP", "DGENQ", "DGENM", "LOADTYPE"],
    ("generator", 32): [*GEN_HEAD, *GEN_TAIL, *OWNERS, "WMOD", "WPF"],
    ("generator", 34): [*GEN_HEAD, *GEN_TAIL, *OWNERS, "WMOD", "WPF", "NREG"],
    ("generator", 35): [*GEN_HEAD, "NREG", *GEN_TAIL, "BASLOD", *OWNERS, "WMOD", "WPF"],
    ("branch", 32): ["I", "J", "CKT", "R", "X", "B", "RATEA", "RATEB", "RATEC", "GI", "BI", "GJ", "BJ", "ST", "MET",
                     "LEN", *OWNERS],
    ("branch", 34): ["I", "J", "CKT", "R", "X", "B", "NAME", *RATES, "GI", "BI", "GJ", "BJ", "ST", "MET", "LEN",
                     *OWNERS],
    ("switched shunt", 32): ["I", "MODSW", "ADJM", "STAT", "VSWHI", "VSWLO", "SWREM", "RMPCT", "RMIDNT", "BINIT",
                             *STEPS],
    ("switched shunt", 35): ["I", "ID", "MODSW", "ADJM", "STAT", "VSWHI", "VSWLO", "SWREG", "NREG", "RMPCT", "RMIDNT",
                             "BINIT", *(name for k in range(1, 9) for name in (f"S{k}", f"N{k}", f"B{k}"))],
    ("transformer", 32): ["I", "J", "K", "CKT", "CW", "CZ", "CM", "MAG1", "MAG2", "NMETR", "NAME", "STAT", *OWNERS],
    ("transformer", 33): ["I", "J", "K", "CKT", "CW", "CZ", "CM", "MAG1", "MAG2", "NMETR", "NAME", "STAT", *OWNERS,
                          "VECGRP"],
    ("transformer", 34): ["I", "J", "K", "CKT", "CW", "CZ", "CM", "MAG1", "MAG2", "NMETR", "NAME", "STAT", *OWNERS,
                          "VECGRP", "ZCOD"],
    ("winding", 32): ["WINDV", "NOMV", "ANG", "RATA", "RATB", "RATC", "COD", "CONT", "RMA", "RMI", "VMA", "VMI", "NTP",
                      "TAB", "CR", "CX"],
    ("winding", 34): ["WINDV", "NOMV", "ANG", *RATES, "COD", "CONT", "RMA", "RMI", "VMA", "VMI", "NTP", "TAB", "CR",
                      "CX"],
    ("winding", 35): ["WINDV", "NOMV", "ANG", *RATES, "COD", "CONT", "NODE", "RMA", "RMI", "VMA", "VMI", "NTP", "TAB",
                      "CR", "CX"],
}  # fmt: skip
DECOY = {"TAB": 0, "COD": 0, "DGENM": 0, "IREG": 0, "NAME": "a / name, with 0", "K": 0, "LEN": 7.5, "GTAP": 1.0}
SECTIONS_33 = (
    "BUS", "LOAD", "FIXED SHUNT", "GENERATOR", "BRANCH", "TRANSFORMER", "AREA", "TWO-TERMINAL DC", "VSC DC LINE",
    "IMPEDANCE CORRECTION", "MULTI-TERMINAL DC", "MULTI-SECTION LINE", "ZONE", "INTER-AREA TRANSFER", "OWNER",
    "FACTS DEVICE", "SWITCHED SHUNT", "GNE", "INDUCTION MACHINE",
)  # fmt: skip
SECTIONS_34 = (*SECTIONS_33[:5], "SYSTEM SWITCHING DEVICE", *SECTIONS_33[5:], "SUBSTATION")
SUBSTATION = [  # node-breaker records of version 35, of which nothing is needed
    "   1,'STATION     ', 0.0, 0.0, 0.1", "   1,'NODE 1', 1, 1, 1.0, 0.0", "0 / END OF SUBSTATION NODE DATA",
    "   1, 2,'1 ','BREAKER', 1, 1, 1, 0.0, 0.0, 0.0, 0.0", "0 / END OF SUBSTATION SWITCHING DEVICE DATA",
]  # fmt: skip


@dataclass
class Plain:
    """Records by section, each a dict of column names; the windings of a transformer stand under "windings"."""

    base: float = 100.0
    bus: list[dict[str, Any]] = field(default_factory=list)
    load: list[dict[str, Any]] = field(default_factory=list)
    generator: list[dict[str, Any]] = field(default_factory=list)
    branch: list[dict[str, Any]] = field(default_factory=list)
    transformer: list[dict[str, Any]] = field(default_factory=list)
    switched: list[dict[str, Any]] = field(default_factory=list)


def columns(kind: str, version: int) -> list[str]:
    """The columns of a record in a version: those of the newest version up to it."""
    return COLUMNS[kind, max(known for name, known in COLUMNS if name == kind and known <= version)]


def printed(kind: str, version: int, values: dict[str, Any]) -> str:
    """One record; a rating is RATEA, RATE1 or RATA by version."""
    shown = dict(values)
    if "RATE" in shown:
        shown |= dict.fromkeys(("RATEA", "RATE1", "RATA"), shown["RATE"])
    fields = []
    for position, name in enumerate(columns(kind, version)):
        value = shown.get(name, DECOY.get(name, position + 2))
        fields.append(f"'{value}'" if isinstance(value, str) else repr(value))
    return ",".join(fields)


def written(network: Plain, version: int) -> str:
    """The network as a RAW file of a version."""
    rows = {
        "BUS": [printed("bus", version, row) for row in network.bus],
        "LOAD": [printed("load", version, row) for row in network.load],
        "GENERATOR": [printed("generator", version, row) for row in network.generator],
        "BRANCH": [printed("branch", version, row) for row in network.branch],
        "TRANSFORMER": [line for row in network.transformer for line in _transformer(version, row)],
        "SWITCHED SHUNT": [printed("switched shunt", version, row) for row in network.switched],
        "SUBSTATION": SUBSTATION,
    }
    text = [f"0, {network.base!r}, {version}, 0, 1, 50.0 / a test", "title, with 0", "0.5 / a title that is no end"]
    if version >= 34:
        text = ["@!IC,SBASE,REV", *text, "GENERAL, THRSHZ=0.0001, PQBRAK=0.7", "RATING, 1, \"RATE1\", \"a rating\"",
                "0 / END OF SYSTEM-WIDE DATA, BEGIN BUS DATA"]  # fmt: skip
    order = SECTIONS_34 if version >= 34 else SECTIONS_33
    for k, name in enumerate(order):
        if version >= 34:
            text.append("@!   I,'a comment',   0,")
        text += rows.get(name, []) if name != "SUBSTATION" or version >= 35 else []
        following = f", BEGIN {order[k + 1]} DATA" if k + 1 < len(order) else ""
        text.append(f"0 / END OF {name} DATA{following}")
    return "\n".join([*text, "Q", ""])


def _transformer(version: int, row: dict[str, Any]) -> list[str]:
    windings = row["windings"]
    impedances = ",".join(repr(value) for value in row["impedances"]) + (",1.0,0.0" if len(windings) == 3 else "")
    first = [printed("winding", version, winding) for winding in windings[:1]]
    others = [
        printed("winding", version, winding) if len(windings) == 3 else f"{winding['WINDV']!r},{winding['NOMV']!r}"
        for winding in windings[1:]
    ]
    return [printed("transformer", version, row), impedances, *first, *others]
