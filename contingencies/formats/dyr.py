"""PSS/E DYR files: the dynamic data of machines, of which the classical model takes H, D and x'd.

A record runs over any number of lines up to its slash: bus, 'MODEL', identifier, parameters. GENCLS has H and D, and
its x'd is the ZX of the RAW file; the detailed machine models give H, D and X'd among their parameters. Everything is
on the machine base. Exciters, governors, stabilisers and other models are counted by name.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from contingencies.errors import SpecError
from contingencies.formats.psse_text import Record, decoded, split_fields
from contingencies.formats.tables import MAX_ROWS

MAX_FIELDS = 2_000  # of one record; a missing slash would otherwise swallow the file silently


class Places(NamedTuple):
    """Where a machine model keeps what the classical machine needs, counted from its first parameter."""

    H: int
    D: int
    x_d: int | None  # None: ZX of the RAW file


ROUND = Places(4, 5, 8)
SALIENT = Places(3, 4, 7)
MODELS = {
    "GENCLS": Places(0, 1, None), "GENROU": ROUND, "GENROE": ROUND, "GENTPJ1": ROUND, "GENSAL": SALIENT,
    "GENSAE": SALIENT, "GENTRA": Places(1, 2, 5),
}  # fmt: skip


@dataclass(frozen=True)
class DynamicMachine:
    """A machine model of a DYR file, on the machine base."""

    record: Record
    bus: int
    id: str
    model: str
    H: float  # s; 0 of GENCLS is an infinite bus
    D: float  # pu
    x_d: float | None  # pu; None: ZX of the RAW file


@dataclass(frozen=True)
class DyrFile:
    """The machines of a DYR file, and how many records of other models it has."""

    name: str
    machines: tuple[DynamicMachine, ...]
    ignored: dict[str, int]


def read_dyr(content: bytes, name: str) -> DyrFile:
    """The machines of a DYR file; `name` is what complaints call the file."""
    machines: dict[tuple[int, str], DynamicMachine] = {}
    ignored: Counter[str] = Counter()
    for record in _records(decoded(content, name), name):
        model = record.text(1).upper()
        if model not in MODELS:
            ignored[_shown(record, model)] += 1
            continue
        machine = _machine(record, model)
        key = (machine.bus, machine.id)
        if key in machines:
            first = machines[key]
            raise record.error(
                f"machine {machine.id} at bus {machine.bus} has a {first.model} in line {first.record.line} already; "
                "give one machine model per unit"
            )
        machines[key] = machine
    if not machines:
        raise SpecError(f"{name}: the file has no machine model; give records of {', '.join(MODELS)}.")
    return DyrFile(name, tuple(machines.values()), dict(sorted(ignored.items())))


def _records(text: str, name: str) -> Iterator[Record]:
    """Records up to their slash; what follows it on the line is a comment."""
    fields: list[str] = []
    start = count = 0
    for number, line in enumerate(text.splitlines(), 1):
        found = split_fields(line)
        if found and not fields:
            start = number
        fields += [field for field in found if field]
        if len(fields) > MAX_FIELDS:
            raise SpecError(
                f"{name}:{start}: a record has more than {MAX_FIELDS} fields; end each record with a slash (/)."
            )
        if fields and _ends(line):
            count += 1
            if count > MAX_ROWS:
                raise SpecError(f"{name}:{start}: the file has more than {MAX_ROWS} records; give a smaller network.")
            yield Record(name, start, fields[1] if len(fields) > 1 else "dynamic", fields)
            fields = []
    if fields:
        raise SpecError(f"{name}:{start}: the last record does not end; end it with a slash (/).")


def _ends(line: str) -> bool:
    """Whether a slash stands outside quotes."""
    if "/" not in line:
        return False
    quote = ""
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "/":
            return True
    return False


def _machine(record: Record, model: str) -> DynamicMachine:
    places, first = MODELS[model], 3
    H = record.real(first + places.H, "H")
    D = record.real(first + places.D, "D", 0.0 if model == "GENCLS" else None)
    x_d = None if places.x_d is None else record.real(first + places.x_d, "X'd")
    if H < 0 or (H == 0 and model != "GENCLS"):
        raise record.error(f"H is {H:g} s; give an inertia constant above 0, usually 2 to 10 s")
    if D < 0:
        raise record.error(f"D is {D:g}; give a damping of at least 0")
    if x_d is not None and x_d <= 0:
        raise record.error(f"X'd is {x_d:g} pu; give a transient reactance above 0, usually 0.15 to 0.5 pu")
    return DynamicMachine(record, record.integer(0, "bus"), record.text(2, "1"), model, H, D, x_d)


def _shown(record: Record, model: str) -> str:
    """The name of a model; user-written ones have it in their fourth field."""
    shown = record.text(3) if model in ("USRMDL", "USRMSC") else model
    return (shown or "unnamed")[:30].upper()
