"""Where networks come from: each source of a system file becomes the same plain network.

Complaints of the readers do not know the file they are about; here they get the place in the system file.
"""

from dataclasses import replace

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.library import System
from contingencies.system_specs import PandapowerCase


def read_case(system: System) -> Case:
    """The network of a system as its source describes it, on the base of the source."""
    network = system.spec.network
    field = "pandapower" if isinstance(network, PandapowerCase) else "file"
    try:
        case = _read(system)
    except SpecError as error:
        said = str(error)
        about = "" if field == "pandapower" or system.network_suffix == ".raw" else f"{_shown(system)}: "
        raise SpecError(f"{system.where('network', field)}: {about}{said}") from None
    except Exception as error:  # the parsers raise whatever the malformed content provokes
        raise SpecError(
            f"{system.where('network', field)}: {_shown(system)} is not a readable {system.network_suffix} network "
            f"({type(error).__name__}: {' '.join(str(error).split())[:100]}); export it again."
        ) from None
    return _with_static_units(case, system)


def _read(system: System) -> Case:
    network, content, suffix = system.spec.network, system.network_file, system.network_suffix
    if isinstance(network, PandapowerCase):
        from contingencies.formats.pandapower import read_pandapower_case

        return read_pandapower_case(network.pandapower, network.bus_numbers, system.name)
    assert content is not None, "a system with a network file carries its bytes"
    if suffix == ".json":
        from contingencies.formats.pandapower import read_pandapower_json

        return read_pandapower_json(content, network.bus_numbers or "name", system.name)
    if suffix == ".raw":
        from contingencies.psse_systems import raw_file

        return raw_file(content, network.file).case
    from contingencies.formats.matpower import read_matpower

    return read_matpower(content, suffix, system.name)


def _with_static_units(case: Case, system: System) -> Case:
    """The case with the units that the system calls static marked as no machines."""
    static, units = system.spec.machines.static, case.units
    if not static:
        return case
    position = {int(number): k for k, number in enumerate(case.buses.number)} | dict(case.merged)
    is_machine = units.is_machine.copy()
    for k, (bus, identifier) in enumerate(static):
        there = (units.bus == position.get(bus, -1)) & (units.id == identifier)
        if not there.any():
            raise SpecError(
                f"{system.where('machines', 'static', k)}: there is no unit {identifier!r} at bus {bus}; "
                "name a unit of the network."
            )
        is_machine &= ~there
    return replace(case, units=replace(units, is_machine=is_machine))


def _shown(system: System) -> str:
    network = system.spec.network
    return repr(network.pandapower if isinstance(network, PandapowerCase) else network.file)
