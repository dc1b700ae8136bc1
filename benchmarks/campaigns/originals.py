"""The textbook 9-bus system in every format that is read, for campaigns that damage it."""

import io
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import contingencies
from contingencies.cases import read_case
from contingencies.formats.matpower_text import parse_matpower
from contingencies.library import load_system
from tests.contingencies.formats.raw_text import text_of

SYSTEMS = Path(contingencies.__file__).parent / "systems"
DYR = """ 1 'GENROU' 1 8.96 0.05 0.31 0.054 23.64 0.0 0.146 0.0969 0.0608 0.0969 0.04 0.03 0.0 0.0 /
 2 'GENROU' 1 6.0 0.05 0.535 0.054 6.4 0.0 0.8958 0.8645 0.1198 0.1969 0.1 0.08 0.0 0.0 /
 3 'GENSAL' 1 5.89 0.05 0.06 3.01 0.0 1.3125 1.2578 0.1813 0.11 0.1 0.0 0.0 /
 3 'EXST1' 1 0.01 10.0 / an exciter
"""
CON = """/ a list
CONTINGENCY 'LINE 5-7'
  OPEN LINE FROM BUS 5 TO BUS 7 CIRCUIT 1
END
CONTINGENCY UNIT
  FAULT AT BUS 7
  REMOVE UNIT 1 FROM BUS 2
END
END
"""


def _matpower() -> bytes:
    return (SYSTEMS / "wscc9.m").read_bytes()


def _mat() -> bytes:
    from scipy.io import savemat

    file = parse_matpower(_matpower().decode())
    buffer = io.BytesIO()
    savemat(buffer, {"mpc": {"baseMVA": file.base_mva, **{name: rows.values for name, rows in file.tables.items()}}})
    return buffer.getvalue()


def _pandapower_json() -> bytes:
    import pandapower
    import pandapower.networks

    text: str = pandapower.to_json(pandapower.networks.case9())
    return re.sub(r"\s+", " ", text).encode()


def _raw() -> bytes:
    return text_of(read_case(load_system("wscc9")), 33).encode()


ORIGINALS: dict[str, Callable[[], bytes]] = {
    ".m": _matpower, ".mat": _mat, ".json": _pandapower_json, ".raw": _raw, ".dyr": DYR.encode, ".con": CON.encode,
}  # fmt: skip
ROUND = (".m", ".raw", ".dyr", ".con", ".json", ".m", ".raw", ".dyr", ".con", ".json", ".m", ".raw", ".dyr", ".mat")


@cache
def system_text(suffix: str) -> str:
    """The system file whose network, or for a DYR file whose machines, stand in `grid` with this suffix."""
    text = (SYSTEMS / "wscc9.yaml").read_text().replace("wscc9.m", "case.raw" if suffix == ".dyr" else f"grid{suffix}")
    if suffix == ".json":
        return text.replace("file: grid.json", "file: grid.json, bus_numbers: index+1")
    if suffix in (".raw", ".dyr"):
        text = text.replace("frequency_hz: 60\n", "")  # it is that of the RAW file
    if suffix == ".dyr":
        text = re.sub(r"^machines:\n(?: .*\n)*", "machines: {file: grid.dyr}\n", text, flags=re.M)
    return text
