"""Where networks come from: pandapower's shipped cases, pandapower JSON, MATPOWER files.

The only module that imports pandapower. It returns a solved pandapower net and the printed
number of each of its buses. A pandapower JSON names the classes it is rebuilt from; only
those of the scientific stack are let through, but treat such a file as trusted input.
"""

import contextlib
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

from contingencies.errors import SpecError
from contingencies.library import System
from contingencies.spec import NetworkFile, PandapowerCase

TRUSTED_MODULES = ("pandapower", "pandas", "numpy", "networkx", "shapely", "geopandas", "builtins")
READING_LIMIT_S = 120.0  # far above the time that a network of 100,000 buses takes
FLAT_START_TOLERANCE_MVA = 1e-8  # power-flow mismatch; far below what moves a CCT


def solved_net(system: System) -> tuple[Any, dict[Any, int]]:
    """The system's pandapower net after a power flow, and bus index -> printed bus number."""
    with _quiet():
        net = _load(system)
        numbers = _bus_numbers(system, net)
        _run_power_flow(system, net)
    return net, numbers


def _load(system: System) -> Any:
    network = system.spec.network
    if isinstance(network, PandapowerCase):
        import pandapower.networks

        case = getattr(pandapower.networks, network.pandapower, None)
        if not callable(case):
            raise SpecError(
                f"{system.where('network', 'pandapower')}: {network.pandapower!r} is not a pandapower case; "
                "use a name such as case39."
            )
        try:
            net = case()
        except Exception as error:
            raise SpecError(
                f"{system.where('network', 'pandapower')}: {network.pandapower!r} is not a case that pandapower "
                f"builds without arguments ({type(error).__name__}); use a name such as case39."
            ) from None
        if not hasattr(net, "bus") or not hasattr(net, "line"):
            raise SpecError(
                f"{system.where('network', 'pandapower')}: {network.pandapower!r} is not a network; "
                "use a name such as case39."
            )
        return net
    assert system.network_file is not None, "a system with a network file carries its bytes"
    try:
        if system.network_suffix == ".json":
            return _pandapower_json(system.network_file)
        return _matpower(system)
    except SpecError as error:
        raise SpecError(f"{system.where('network', 'file')}: {error}") from None
    except Exception as error:  # the parsers raise whatever the malformed content provokes
        raise SpecError(
            f"{system.where('network', 'file')}: {network.file!r} is not a readable {system.network_suffix} network "
            f"({type(error).__name__}: {_brief(error)}); export it again."
        ) from None


def _pandapower_json(content: bytes) -> Any:
    import pandapower
    import pandas

    text = content.decode("utf-8")
    for module in re.findall(r'_module\\*"\s*:\s*\\*"([^"\\]*)', text):
        if module.split(".")[0] not in TRUSTED_MODULES:
            raise SpecError(
                f"the network file wants to load {module[:60]!r}, which no network needs; "
                "export it again with pandapower."
            )
    net = pandapower.from_json_string(text, convert=True)
    if not all(isinstance(getattr(net, table, None), pandas.DataFrame) for table in ("bus", "line", "gen", "ext_grid")):
        raise SpecError("the network file is JSON but not a pandapower network; export it with pandapower.to_json.")
    return net


def _matpower(system: System) -> Any:
    from pandapower.converter.matpower.from_mpc import from_mpc

    assert system.network_file is not None
    handle, path = tempfile.mkstemp(suffix=system.network_suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(system.network_file)
        if system.network_suffix == ".mat":
            _survive_reading(path)
        return from_mpc(path, f_hz=system.spec.frequency_hz)
    finally:
        os.unlink(path)


def _survive_reading(path: str) -> None:
    """Read a .mat file in a process of its own first: SciPy's reader can crash on a damaged one."""
    command = [sys.executable, "-c", "import sys; from scipy.io import loadmat; loadmat(sys.argv[1])", path]
    outcome = subprocess.run(command, capture_output=True, timeout=READING_LIMIT_S, check=False)  # noqa: S603 own command
    if outcome.returncode < 0:  # ended by a signal; an ordinary error will be met again, and told, by the caller
        raise ValueError("the file is damaged")


def _bus_numbers(system: System, net: Any) -> dict[Any, int]:
    network = system.spec.network
    if isinstance(network, NetworkFile) and system.network_suffix != ".json":
        return {index: int(index) + 1 for index in net.bus.index}  # the converter subtracts the 1
    rule = network.bus_numbers or "name"
    if rule != "name":
        shift = 1 if rule == "index+1" else 0
        return {index: int(index) + shift for index in net.bus.index}
    numbers = {}
    for index, name in net.bus.name.items():
        try:
            numbers[index] = int(str(name).strip())
        except ValueError:
            raise SpecError(
                f"{system.where('network')}: bus {index} is named {str(name)[:40]!r}, not by a number; "
                "number the buses in their names, or set network.bus_numbers to index or index+1."
            ) from None
    if len(set(numbers.values())) < len(numbers):
        where = system.where("network")
        raise SpecError(f"{where}: two buses have the same number; make the bus names unique numbers.")
    return numbers


def _run_power_flow(system: System, net: Any) -> None:
    import pandapower
    from pandapower.powerflow import LoadflowNotConverged

    try:
        pandapower.runpp(net, numba=False, trafo_model="pi", init="auto", tolerance_mva=FLAT_START_TOLERANCE_MVA)
    except LoadflowNotConverged:
        raise SpecError(
            f"{system.where('network')}: the power flow does not converge; "
            "check loads, generation and branch data of the network."
        ) from None
    except Exception as error:
        raise SpecError(
            f"{system.where('network')}: the power flow cannot be run ({type(error).__name__}: {_brief(error)}); "
            "check the network."
        ) from None


def _brief(error: Exception) -> str:
    """What a library said, as part of one sentence."""
    return " ".join(str(error).split())[:100]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """pandapower and its converters warn about their own internals; users cannot act on that."""
    logger = logging.getLogger("pandapower")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
