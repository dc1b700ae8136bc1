"""Commands on whole families of contingencies: write their specs, rank them by critical clearing time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.common import json_option, print_json, progress

if TYPE_CHECKING:
    from contingencies.families import LeftOut, Recipe
    from contingencies.spec import Record
    from contingencies.stability import Reference
    from zoo.screening import Screened

CLEARINGS = ("remove-line", "restore", "trip-feeders", "restore-mechanical", "set-mechanical")
APPLIES_TO = {  # options that only one kind of fault has
    "position": "line",
    "shunt_g": "bus",
    "shunt_b": "bus",
    "coefficient": "mechanical",
    "factor": "mechanical",
}
file_option = click.Path(dir_okay=False, path_type=Path)


def recipe_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that describe what happens at every member."""
    options = [
        click.argument("system"),
        click.option("--fault", type=click.Choice(["line", "bus", "mechanical"]), required=True, help="Kind of fault."),
        click.option("--clearing", type=click.Choice(CLEARINGS), required=True, help="How every member is cleared."),
        click.option("--position", type=float, help="Line faults: fraction from the lower bus number.  [default: 0.5]"),
        click.option("--shunt-g", type=float, help="Bus faults: conductance at severity 1, pu.  [default: 0]"),
        click.option("--shunt-b", type=float, help="Bus faults: susceptance at severity 1, pu.  [default: -100]"),
        click.option(
            "--coefficient", type=float, help="Mechanical: relative change of P_m at severity 1.  [default: 1.25]"
        ),
        click.option("--factor", type=float, help="set-mechanical: post-clearing P_m over pre-fault P_m."),
        click.option("--t-f", type=float, help="Fault applied, s.  [default: 0.2]"),
        click.option("--T", "t_end", type=float, help="End of the study, s.  [default: 2.5]"),
        click.option("--t-c", type=(float, float), help="First and last clearing instant, s.  [default: 0.21 1.21]"),
        click.option("--max-separation", type=float, help="Admissible rotor-angle separation, rad.  [default: pi]"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _recipe(fault: Any, clearing: str, severity: tuple[float, float] | None = None, **given: Any) -> "Recipe":
    from contingencies.errors import UsageError
    from contingencies.families import SHUNT, WINDOW, Recipe
    from contingencies.spec import Shunt, Stability, Window

    stated = {name: value for name, value in given.items() if value is not None}
    for name, kind in APPLIES_TO.items():
        if name in stated and kind != fault:
            raise UsageError(f"--{name.replace('_', '-')} applies to {kind} faults only; leave it out.")
    parts: dict[str, Any] = {name: stated[name] for name in ("position", "coefficient", "factor") if name in stated}
    if severity is not None:
        parts["severity"] = severity
    if "max_separation" in stated:
        parts["stability"] = _checked(Stability, {"max_separation_rad": stated["max_separation"]})
    shunt = {"g": stated.get("shunt_g", SHUNT.g), "b": stated.get("shunt_b", SHUNT.b)}
    window = {
        "t_f": stated.get("t_f", WINDOW.t_f),
        "T": stated.get("t_end", WINDOW.T),
        "t_c": stated.get("t_c", WINDOW.t_c),
    }
    return Recipe(fault, clearing, shunt=_checked(Shunt, shunt), window=_checked(Window, window), **parts)


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


def _print_left_out(left_out: "Sequence[LeftOut]") -> None:
    if left_out:
        click.echo(f"left out: {len(left_out)}")
        width = max(len(item.name) for item in left_out)
        for item in left_out:
            click.echo(f"  {item.name:{width}}  {item.reason}")


@click.command("generate-contingencies")
@recipe_options
@click.option("--severity", type=(float, float), help="Smallest and largest severity.  [default: 0 1]")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Directory, made if missing."
)
@click.option("--force", is_flag=True, help="Replace files that hold something else.")
@json_option
def generate_contingencies(
    system: str,
    fault: str,
    clearing: str,
    output: Path,
    severity: tuple[float, float] | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write one contingency file for every place of SYSTEM where the same thing can happen.

    SYSTEM is a shipped system or the path of a system file. Places where it cannot happen are listed with
    the reason: transformers, lines that hold the network together, buses without feeders, idle machines.
    """
    from contingencies.families import generate_family
    from contingencies.library import load_system
    from contingencies.spec_files import system_reference, write_contingencies

    recipe = _recipe(fault, clearing, severity, **options)
    family = generate_family(load_system(system), recipe, system_reference(system, output))
    result = write_contingencies(family.members, output, force)
    if as_json:
        print_json(
            {
                "system": system,
                "directory": str(output),
                "members": [member.name for member in family.members],
                "written": [path.name for path in result.written],
                "unchanged": [path.name for path in result.unchanged],
                "left_out": [{"contingency": item.name, "reason": item.reason} for item in family.left_out],
            }
        )
        return
    unchanged = f", {len(result.unchanged)} were there already" if result.unchanged else ""
    click.echo(f"{len(family.members)} contingencies in {output}: {len(result.written)} files written{unchanged}")
    _print_left_out(family.left_out)


@click.command()
@recipe_options
@click.option("--alpha", type=float, default=1.0, show_default=True, help="Severity.")
@click.option(
    "--reference",
    type=click.Choice(["strict", "fast", "dae"]),
    default="fast",
    show_default=True,
    help="Strict SciPy protocol, compiled ODE, or full-network DAE.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes.  [default: one per core]")
@click.option("--csv", "csv_file", type=file_option, help="Write the ranked answers as CSV.")
@click.option("--plot", type=file_option, help="Write a figure of the most critical members (PNG, SVG or PDF).")
@json_option
def screen(
    system: str,
    fault: str,
    clearing: str,
    alpha: float,
    reference: "Reference",
    jobs: int | None,
    csv_file: Path | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Rank a family of contingencies of SYSTEM by critical clearing time, most critical first.

    SYSTEM is a shipped system or the path of a system file. Members that lose synchronism however early they
    are cleared come first, then finite CCTs, then members that stay in step throughout the window.
    """
    from contingencies.families import generate_family
    from contingencies.library import load_system
    from contingencies.network import solve_network
    from contingencies.operators import compile_family
    from contingencies.reduction import reduce_network
    from zoo import screening

    recipe = _recipe(fault, clearing, **options)
    _check_destinations(csv_file, plot)
    loaded = load_system(system)
    family = generate_family(loaded, recipe)
    operators = compile_family(family.members, reduce_network(solve_network(loaded)))
    with progress(f"{loaded.name} ({reference})", len(operators)) as report:
        answers = screening.screen(operators, alpha, reference, jobs, report)
    if csv_file:
        _write_file(csv_file, screening.screening_csv(answers))
    title = f"{loaded.name}: {fault} faults, {clearing}, severity {alpha:g}"
    if plot:
        from zoo.figures import save_figure

        save_figure(screening.plot_screening(answers, recipe.window.t_c, recipe.window.t_f, title), plot)
    window = recipe.window
    if as_json:
        assumed = {  # a CCT without its window and criterion means nothing
            "t_f_s": window.t_f,
            "window_t_c_s": list(window.t_c),
            "T_s": window.T,
            "max_separation_rad": recipe.stability.max_separation_rad,
        }
        print_json([answer.report() | assumed for answer in answers])
        return
    click.echo(
        f"{title}; t_f = {window.t_f:g} s, t_c in [{window.t_c[0]:g}, {window.t_c[1]:g}] s, T = {window.T:g} s, "
        f"limit {recipe.stability.max_separation_rad:.4f} rad  [{reference}]"
    )
    _print_ranking(answers)
    _print_left_out(family.left_out)


def _check_destinations(csv_file: Path | None, plot: Path | None) -> None:
    """Refuse a file that could not be written, before the work rather than after it."""
    from contingencies.errors import UsageError
    from zoo.figures import FORMATS

    for path in (csv_file, plot):
        if path and not path.parent.is_dir():
            raise UsageError(f"{path}: its directory does not exist; make it first.")
    if plot and plot.suffix.lower() not in FORMATS:
        raise UsageError(f"{plot}: a figure is written as {', '.join(FORMATS)}; choose such a file name.")


def _write_file(path: Path, text: str) -> None:
    from contingencies.files import user_file

    with user_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _print_ranking(answers: "Sequence[Screened]") -> None:
    width = max([len("contingency"), *(len(answer.contingency) for answer in answers)])
    click.echo(f"rank  {'contingency':{width}}  {'status':14}  {'CCT s':>9}  {'duration ms':>11}  note")
    for rank, answer in enumerate(answers, start=1):
        cct = "-" if answer.cct is None else f"{answer.cct:.5f}"
        duration = "-" if answer.duration is None else f"{answer.duration * 1e3:.2f}"
        note = answer.message or ("restabilises" if answer.restabilises else "")
        row = f"{rank:4}  {answer.contingency:{width}}  {answer.status:14}  {cct:>9}  {duration:>11}  {note}"
        click.echo(row.rstrip())
    counts = {
        status: sum(answer.status == status for answer in answers)
        for status in ("finite", "left-censored", "right-censored", "failed")
    }
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no members")
