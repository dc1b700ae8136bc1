"""Cases that pandapower ships and pandapower JSON files, through pandapower's own internal arrays.

The only module that imports pandapower, with its neighbour that reads the JSON. pandapower turns its elements
(switches, three-winding transformers, wards) into one table of branches and one of buses; these are taken over,
its power flow is not run. Static generators are constant-power injections.
"""

import contextlib
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.pandapower_tables import net_of_tables
from contingencies.formats.tables import ISOLATED, Branches, Buses, Float, Loads, Shunts, Units, table

MAX_BYTES = 500_000_000  # pandapower writes about 1 kB for each bus
UNKNOWN = ("svc", "tcsc", "ssc", "vsc", "vsc_stacked", "vsc_bipolar")  # elements with equations of their own


def read_pandapower_json(content: bytes, rule: str, name: str) -> Case:
    """The network of a pandapower JSON; `rule` says where bus numbers are: name, index, index+1."""
    if len(content) > MAX_BYTES:
        raise SpecError(
            f"the file has {len(content)} bytes, more than the {MAX_BYTES} that are read; leave results out."
        )
    with _quiet():
        return case_of_net(net_of_tables(content.decode("utf-8")), rule, name)


def read_pandapower_case(case: str, rule: str, name: str) -> Case:
    """The network of a case that pandapower ships, by the name of its function."""
    from contingencies.formats.known_cases import check_known_case

    with _quiet():
        network = case_of_net(_shipped(case), rule, name)
    check_known_case(case, network)
    return network


def _shipped(case: str) -> Any:
    import pandapower.networks

    build = getattr(pandapower.networks, case, None)
    if not callable(build):
        raise SpecError(f"{case!r} is not a pandapower case; use a name such as case39.")
    try:
        net = build()
    except Exception as error:  # whatever a function provokes that is no case, or wants arguments
        raise SpecError(
            f"{case!r} is not a case that pandapower builds without arguments ({type(error).__name__}); "
            "use a name such as case39."
        ) from None
    if not hasattr(net, "bus") or not hasattr(net, "line"):
        raise SpecError(f"{case!r} is not a network; use a name such as case39.")
    return net


def case_of_net(net: Any, rule: str, name: str) -> Case:
    """The plain network of a pandapower net; `rule` says where bus numbers are: name, index, index+1."""
    numbers = _bus_numbers(net, rule)
    for element in UNKNOWN:
        if len(net[element]) and net[element].in_service.any():
            raise SpecError(f"the network has a {element} in service, which is not modelled; take it out of service.")
    _build_arrays(net)
    ppc, base = net._ppc, float(net.sn_mva)
    bus = ppc["bus"].real
    buses, merged = _buses(net, bus, numbers)
    S = (bus[:, 2] + 1j * bus[:, 3]) / base
    share_i, share_z = bus[:, 13] * S.real + 1j * bus[:, 16] * S.imag, bus[:, 14] * S.real + 1j * bus[:, 17] * S.imag
    y = (bus[:, 4] + 1j * bus[:, 5]) / base
    loaded, shunted = np.flatnonzero(S), np.flatnonzero(y)
    return Case(
        name=name,
        base_mva=base,
        buses=buses,
        loads=table(
            Loads, len(loaded), bus=loaded, S_power=(S - share_i - share_z)[loaded], S_current=share_i[loaded],
            S_impedance=share_z[loaded],
        ),
        shunts=table(Shunts, len(shunted), bus=shunted, y=y[shunted]),
        branches=_branches(net, ppc["branch"]),
        units=_units(net, ppc["gen"], base),
        merged=merged,
    )  # fmt: skip


def _build_arrays(net: Any) -> None:
    """Have pandapower make its internal tables `net._ppc`; a power flow of no iterations stops right after."""
    import pandapower
    from pandapower.powerflow import LoadflowNotConverged

    with contextlib.suppress(LoadflowNotConverged):
        pandapower.runpp(net, numba=False, trafo_model="pi", init="flat", max_iteration=0, lightsim2grid=False)


def _bus_numbers(net: Any, rule: str) -> dict[Any, int]:
    """Index of a bus -> printed number."""
    if rule != "name":
        shift = 1 if rule == "index+1" else 0
        return {index: int(index) + shift for index in net.bus.index}
    numbers = {}
    for index, name in net.bus.name.items():
        try:
            numbers[index] = int(str(name).strip())
        except ValueError:
            raise SpecError(
                f"bus {index} is named {str(name)[:40]!r}, not by a number; "
                "number the buses in their names, or set network.bus_numbers to index or index+1."
            ) from None
    if len(set(numbers.values())) < len(numbers):
        raise SpecError("two buses have the same number; make the bus names unique numbers.")
    return numbers


def _buses(net: Any, bus: Any, numbers: dict[Any, int]) -> tuple[Buses, tuple[tuple[int, int], ...]]:
    """The rows of pandapower's bus table; buses joined by a closed switch share one, auxiliary ones get a number."""
    lookup = net._pd2ppc_lookups["bus"]
    printed = np.full(len(bus), -1, dtype=np.int64)
    merged: list[tuple[int, int]] = []
    for index, number in numbers.items():
        row = int(lookup[index])
        if printed[row] < 0:
            printed[row] = number
        else:
            merged.append((number, row))
    auxiliary = np.flatnonzero(printed < 0)
    printed[auxiliary] = max(numbers.values(), default=0) + 1 + np.arange(len(auxiliary))
    east, north = _places(net, {index: int(lookup[index]) for index in numbers}, len(bus))
    kind = np.where(np.isin(bus[:, 1], (1, 2, 3)), bus[:, 1], ISOLATED)
    return table(
        Buses, len(bus), number=printed, kind=kind, base_kv=np.nan_to_num(bus[:, 9]),
        v=bus[:, 7], angle=np.deg2rad(bus[:, 8]), east=east, north=north,
    ), tuple(merged)  # fmt: skip


def _places(net: Any, rows: dict[Any, int], n: int) -> tuple[Float, Float]:
    """Where the rows of the bus table are drawn: points of GeoJSON; NaN where there is none, or it cannot be read."""
    places = np.full((2, n), np.nan)
    for index, text in net.bus.geo.items() if "geo" in net.bus else ():
        with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
            place = [float(value) for value in json.loads(text)["coordinates"][:2]]
            if index in rows and np.isfinite(place).all() and np.isnan(places[0, rows[index]]):
                places[:, rows[index]] = place
    return places[0], places[1]


def _branches(net: Any, branch: Any) -> Branches:
    from pandapower.pypower import idx_brch as at

    values = branch.real
    first, last = net._pd2ppc_lookups["branch"].get("line", (0, 0))
    is_line = np.zeros(len(values), dtype=bool)
    is_line[first:last] = True
    in_service = values[:, at.BR_STATUS] > 0
    if np.any(values[in_service][:, [at.BR_R_ASYM, at.BR_X_ASYM]]):
        raise SpecError(
            "an impedance has other values from end to start than from start to end, which is not modelled; "
            "make them equal (rft = rtf, xft = xtf)."
        )
    ratio = np.where(values[:, at.TAP] == 0, 1.0, values[:, at.TAP])
    zero = (values[:, at.BR_R] == 0) & (values[:, at.BR_X] == 0) & ~in_service
    y_end = (values[:, at.BR_G_ASYM] + 1j * values[:, at.BR_B_ASYM]) / 2
    return table(
        Branches, len(values), start=values[:, at.F_BUS].astype(np.int64), end=values[:, at.T_BUS].astype(np.int64),
        r=values[:, at.BR_R], x=np.where(zero, 1.0, values[:, at.BR_X]), g=values[:, at.BR_G], b=values[:, at.BR_B],
        y_end=y_end, tap=ratio, shift=np.deg2rad(values[:, at.SHIFT]),
        rating=np.nan_to_num(values[:, at.RATE_A], posinf=0.0), in_service=in_service, is_transformer=~is_line,
    )  # fmt: skip


def _units(net: Any, gen: Any, base: float) -> Units:
    values = gen.real
    # Their order: external grids, generators, ends of DC lines, equivalents (xward); the last two are no machines.
    running = net._is_elements["ext_grid"].sum() + net._is_elements["gen"][: len(net.gen)].sum()
    is_machine = np.arange(len(values)) < running
    return table(
        Units, len(values), bus=values[:, 0].astype(np.int64), P=values[:, 1] / base, v_set=values[:, 5],
        q_max=_limit(values[:, 3], np.inf) / base, q_min=_limit(values[:, 4], -np.inf) / base,
        mva=np.nan_to_num(values[:, 6]), in_service=values[:, 7] > 0, is_machine=is_machine,
    )  # fmt: skip


def _limit(values: Any, none: float) -> Any:
    return np.where(np.isnan(values), none, values)


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
