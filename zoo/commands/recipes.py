"""Options that describe a family of contingencies: what happens at every member."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import FINITE, Decorator, together
from zoo.commands.selections import SELECTION, selection_of, selection_options

if TYPE_CHECKING:
    from contingencies.fault_specs import Impedance
    from contingencies.recipes import Recipe
    from contingencies.records import Record

CLEARINGS = ("remove-line", "restore", "trip-feeders", "restore-mechanical", "set-mechanical")
APPLIES_TO = {  # options that only one kind of fault has
    "position": "line",
    "shunt_g": "bus",
    "shunt_b": "bus",
    "coefficient": "mechanical",
    "factor": "mechanical",
}
LAW = ("law", "impedance_pu")  # options of faults in the network: how they are given
STUDY = ("t_f", "t_end", "t_c", "max_separation")
RECIPE = (*APPLIES_TO, *LAW, *STUDY, *SELECTION)  # besides the kinds of fault and clearing


def option_name(key: str) -> str:
    """How an option of `RECIPE` is written on the command line."""
    return "--" + {"t_end": "T", "areas": "area"}.get(key, key.replace("_", "-"))


study_options = together(  # as `study_of` reads them
    click.option("--t-f", type=FINITE, help="Fault applied, s.  [default: 0.2]"),
    click.option("--T", "t_end", type=FINITE, help="End of the study, s.  [default: 2.5]"),
    click.option("--t-c", type=(FINITE, FINITE), help="First and last clearing instant, s.  [default: 0.21 1.21]"),
    click.option("--max-separation", type=FINITE, help="Admissible rotor-angle separation, rad.  [default: pi]"),
)


def recipe_options(required: bool = True) -> Decorator:
    """What happens at every member of a family, as `recipe_of` reads it."""
    faults = click.Choice(["line", "bus", "mechanical"])
    return together(
        click.option("--fault", type=faults, required=required, help="Make a family: kind of fault."),
        click.option(
            "--clearing",
            type=click.Choice(CLEARINGS),
            required=required,
            help="Make a family: how every member is cleared.",
        ),
        click.option(
            "--position",
            type=FINITE,
            help="Line faults: fraction from the lower bus number.  [default: near either end; --law admittance: 0.5]",
        ),
        click.option(
            "--law",
            type=click.Choice(["impedance", "admittance"]),
            help="Line and bus faults: an impedance, bolted unless told otherwise, or the paper's shunt that "
            "severity scales, for a line its own admittance.  [default: impedance]",
        ),
        click.option(
            "--impedance-pu",
            type=(FINITE, FINITE),
            metavar="R X",
            help="Line and bus faults: fault impedance, pu on the system base.  [default: 0 0, bolted]",
        ),
        click.option(
            "--shunt-g", type=FINITE, help="Bus faults, --law admittance: conductance at severity 1, pu.  [default: 0]"
        ),
        click.option(
            "--shunt-b",
            type=FINITE,
            help="Bus faults, --law admittance: susceptance at severity 1, pu.  [default: -100]",
        ),
        click.option(
            "--coefficient", type=FINITE, help="Mechanical: relative change of P_m at severity 1.  [default: 1.25]"
        ),
        click.option("--factor", type=FINITE, help="set-mechanical: post-clearing P_m over pre-fault P_m."),
        study_options,
        selection_options,
    )


severity_option = click.option(
    "--severity", type=(FINITE, FINITE), help="Smallest and largest severity of the family.  [default: 0 1]"
)


def recipe_of(
    fault: Any,
    clearing: str,
    severity: tuple[float, float] | None = None,
    required_ms: float | None = None,
    **given: Any,
) -> "Recipe":
    """The recipe that the options describe; what is not given has the family's defaults."""
    from contingencies.errors import UsageError
    from contingencies.fault_specs import Shunt
    from contingencies.recipes import SHUNT, Recipe
    from contingencies.spec import Protection

    stated = {name: value for name, value in given.items() if value is not None and value != ()}
    for name, kind in APPLIES_TO.items():
        if name in stated and kind != fault:
            raise UsageError(f"--{name.replace('_', '-')} applies to {kind} faults only; leave it out.")
    parts: dict[str, Any] = {name: stated[name] for name in ("position", "coefficient", "factor") if name in stated}
    if severity is not None:
        parts["severity"] = severity
    if required_ms is not None:
        parts["protection"] = _checked(Protection, {"required_ms": required_ms})
    shunt = {"g": stated.get("shunt_g", SHUNT.g), "b": stated.get("shunt_b", SHUNT.b)}
    parts["impedance"] = _impedance_of(fault, stated)
    places = selection_of(stated)
    return Recipe(fault, clearing, shunt=_checked(Shunt, shunt), selection=places, **study_of(**stated), **parts)


def study_of(**given: Any) -> dict[str, Any]:
    """Window and stability criterion that `study_options` describe; what is not given has the family's defaults."""
    from contingencies.recipes import STABILITY, WINDOW
    from contingencies.spec import Stability, Window

    stated = {name: value for name, value in given.items() if value is not None}
    window = {
        "t_f": stated.get("t_f", WINDOW.t_f),
        "T": stated.get("t_end", WINDOW.T),
        "t_c": stated.get("t_c", WINDOW.t_c),
    }
    limit = {"max_separation_rad": stated.get("max_separation", STABILITY.max_separation_rad)}
    return {"window": _checked(Window, window), "stability": _checked(Stability, limit)}


def _impedance_of(fault: str, stated: dict[str, Any]) -> "Impedance | None":
    """The fault impedance that the options describe, or None for the law that scales an admittance."""
    from contingencies.errors import UsageError
    from contingencies.fault_specs import Impedance
    from contingencies.recipes import BOLTED

    if fault == "mechanical":
        for name in LAW:
            if name in stated:
                raise UsageError(f"--{name.replace('_', '-')} applies to line and bus faults; leave it out.")
    shunt = "shunt_g" in stated or "shunt_b" in stated
    if stated.get("law", "admittance" if shunt else "impedance") == "admittance":
        if "impedance_pu" in stated:
            raise UsageError("--impedance-pu and an admittance (--law admittance, --shunt-b) exclude each other.")
        return None
    if shunt:
        raise UsageError("--shunt-g and --shunt-b belong to --law admittance; leave them out, or change the law.")
    if "impedance_pu" not in stated:
        return BOLTED
    impedance: Impedance = _checked(Impedance, dict(zip("rx", stated["impedance_pu"], strict=True)))
    return impedance


def _checked(record: "type[Record]", values: dict[str, Any]) -> Any:
    """A part of the recipe, or one sentence about the option that is wrong."""
    from pydantic import ValidationError

    from contingencies.errors import UsageError

    try:
        return record(**values)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        field = "".join(f"{step}: " for step in first["loc"][:1])
        raise UsageError(f"{field}{message[0].lower()}{message[1:]}.") from None
