"""A pandapower JSON file as a pandapower net, without importing anything that the file names.

pandapower's own reader builds objects of the modules and classes written in the file. Here the file is parsed as
plain JSON, the tables of grid elements are filled with plain values, and everything else (controllers, results,
costs, geography) is left out.
"""

import contextlib
import json
from typing import Any

from contingencies.errors import SpecError
from contingencies.formats.tables import MAX_BUSES, MAX_ROWS

ELEMENTS = (
    "bus", "load", "sgen", "motor", "asymmetric_load", "asymmetric_sgen", "storage", "gen", "switch", "shunt", "svc",
    "ssc", "vsc", "ext_grid", "line", "line_dc", "trafo", "trafo3w", "impedance", "tcsc", "dcline", "ward", "xward",
    "bus_dc", "source_dc", "load_dc", "vsc_stacked", "vsc_bipolar", "trafo_characteristic_table",
    "shunt_characteristic_table",
)  # fmt: skip
NEEDED = ("bus", "line", "gen", "ext_grid")
PLAIN_DTYPES = ("int", "uint", "float", "bool")  # how the names of the types that are applied begin
MAX_COLUMNS = 200  # the widest table of pandapower has about 50


def net_of_tables(text: str) -> Any:
    """The net of a pandapower JSON, converted to the present format of pandapower.

    Raises
    ------
    SpecError
        When the file is no pandapower net, names a foreign class in its place, or a table holds anything but
        numbers, truth values and text.
    """
    import pandapower
    from pandapower.convert_format import convert_format

    content = json.loads(text)
    tables = _content_of(content, "pandapower", "pandapowerNet", "the network file")
    if not isinstance(tables, dict) or not all(name in tables for name in NEEDED):
        raise SpecError("the network file is JSON but not a pandapower network; export it with pandapower.to_json.")
    net = pandapower.create_empty_network(
        f_hz=_number(tables, "f_hz", 50.0), sn_mva=_number(tables, "sn_mva", 1.0), add_stdtypes=False
    )
    for name in ELEMENTS:
        if name in tables:
            net[name] = _frame(name, tables[name], net.get(name))
    for name in ("version", "format_version"):  # tells the conversion which steps are due
        if isinstance(tables.get(name), str):
            net[name] = tables[name][:20]
    net = convert_format(net)
    _add_places(net, tables.get("bus_geodata"))
    return net


def _add_places(net: Any, table: Any) -> None:
    """Where older files say that buses are, as newer ones do; what cannot be read is left out, for it is only drawn."""
    if table is None or ("geo" in net.bus and net.bus.geo.notna().any()):
        return
    with contextlib.suppress(SpecError, ValueError, TypeError, KeyError):
        content = _content_of(table, "pandas", "DataFrame", "bus_geodata")
        content = json.loads(content) if isinstance(content, str) else content
        x, y = (content["columns"].index(name) for name in ("x", "y"))
        rows = zip(content["index"], content["data"], strict=True)
        places = {index: json.dumps({"coordinates": [float(row[x]), float(row[y])]}) for index, row in rows}
        net.bus["geo"] = [places.get(index) for index in net.bus.index]


def _content_of(value: Any, module: str, kind: str, where: str) -> Any:
    """What stands in the wrapper {_module, _class, _object} of an expected class."""
    if not isinstance(value, dict) or "_module" not in value:
        raise SpecError(f"{where} is JSON but not of pandapower's form; export it with pandapower.to_json.")
    if str(value["_module"]).split(".")[0] != module or value.get("_class") != kind:
        raise SpecError(
            f"{where} names the class {str(value['_module'])[:60]!r}, {str(value.get('_class'))[:40]!r} where only "
            f"a {kind} is read; export it again with pandapower."
        )
    return value.get("_object")


def _number(tables: dict[str, Any], name: str, usual: float) -> float:
    value = tables.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpecError(f"the network file has {name} = {str(value)[:40]!r}; give a number.")
    return float(value)


def _frame(name: str, value: Any, empty: Any) -> Any:
    import pandas

    where = f"table {name} of the network file"
    content = _content_of(value, "pandas", "DataFrame", where)
    if isinstance(content, str):
        content = json.loads(content)
    if not (
        isinstance(content, dict) and all(isinstance(content.get(key), list) for key in ("columns", "index", "data"))
    ):
        raise SpecError(f"{where} is not written as columns, index and data; export it again with pandapower.to_json.")
    limit = MAX_BUSES if name == "bus" else MAX_ROWS
    if len(content["data"]) > limit or len(content["columns"]) > MAX_COLUMNS:
        raise SpecError(f"{where} has {len(content['data'])} rows; at most {limit} are read.")
    for row in content["data"]:
        for cell in row:
            if not (cell is None or isinstance(cell, str | int | float)):
                raise SpecError(f"{where} holds {str(cell)[:40]!r} instead of a number or text; export plain tables.")
    if not all(isinstance(index, int) for index in content["index"]):
        raise SpecError(f"{where} has an index that is no integer; number its rows.")
    index = pandas.Index(content["index"], dtype="int64")
    frame = pandas.DataFrame(content["data"], index=index, columns=content["columns"])
    return _typed(frame, value.get("dtype"), empty)


def _typed(frame: Any, dtypes: Any, empty: Any) -> Any:
    """The frame with the plain types that the file names or pandapower's empty table has, and all its columns."""
    import pandas

    usual = {} if empty is None else {column: str(dtype) for column, dtype in empty.dtypes.items()}
    wanted = usual | (dtypes if isinstance(dtypes, dict) else {})
    for column in frame.columns:
        dtype = str(wanted.get(column, ""))
        if dtype.startswith("float") or (dtype.startswith(PLAIN_DTYPES) and not frame[column].isna().any()):
            frame[column] = frame[column].astype(dtype)
    for column, dtype in usual.items():
        if column not in frame:
            plain = dtype if len(frame) == 0 or dtype.startswith("float") else "object"
            frame[column] = pandas.Series(index=frame.index, dtype=plain)
    return frame
