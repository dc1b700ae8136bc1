"""Commands on whole families of contingencies: write their specs, rank them by critical clearing time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import (
    FINITE,
    at_option,
    csv_option,
    executor_options,
    file_option,
    json_option,
    required_option,
)
from zoo.commands.output import check_csv, check_figure, print_json, write_csv
from zoo.commands.progress import progress
from zoo.commands.recipes import recipe_of, recipe_options, severity_option

if TYPE_CHECKING:
    from contingencies.families import LeftOut
    from contingencies.protection import Verdict
    from contingencies.references import Reference
    from zoo.studies.screening import Screened


def print_left_out(left_out: "Sequence[LeftOut]") -> None:
    """Print the places that a family leaves out, each with its reason."""
    if left_out:
        click.echo(f"left out: {len(left_out)}")
        width = max(len(item.name) for item in left_out)
        for item in left_out:
            click.echo(f"  {item.name:{width}}  {item.reason}")


def left_out_report(left_out: "Sequence[LeftOut]") -> list[dict[str, str]]:
    """The places that a family leaves out, as JSON."""
    return [{"place": item.name, "reason": item.reason} for item in left_out]


@click.command(
    "generate-contingencies",
    epilog="Example: cct-zoo generate-contingencies ieee39 --fault line --clearing remove-line --output family",
)
@click.argument("system")
@recipe_options()
@severity_option
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

    recipe = recipe_of(fault, clearing, severity, **options)
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
                "left_out": left_out_report(family.left_out),
            }
        )
        return
    unchanged = f", {len(result.unchanged)} were there already" if result.unchanged else ""
    click.echo(f"{len(family.members)} contingencies in {output}: {len(result.written)} files written{unchanged}")
    print_left_out(family.left_out)


@click.command(epilog="Example: cct-zoo screen wscc9 --fault line --clearing remove-line --required-ms 200")
@click.argument("system")
@recipe_options()
@click.option("--alpha", type=FINITE, default=1.0, show_default=True, help="Severity; 1 is the whole fault.")
@required_option
@at_option
@click.option(
    "--reference",
    type=click.Choice(["strict", "fast", "dae"]),
    default="fast",
    show_default=True,
    help="Strict SciPy protocol, compiled ODE, or full-network DAE.",
)
@executor_options
@csv_option("the ranked answers, and the places left out,")
@click.option("--plot", type=file_option, help="Write a figure of the most critical members (PNG, SVG or PDF).")
@json_option
def screen(
    system: str,
    fault: str,
    clearing: str,
    alpha: float,
    required_ms: float | None,
    at: tuple[str, ...],
    reference: "Reference",
    jobs: int | None,
    cluster: str | None,
    csv_file: str | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Rank a family of contingencies of SYSTEM by critical clearing time, most critical first.

    SYSTEM is a shipped system or the path of a system file. Members that lose synchronism however early they
    are cleared come first, then finite CCTs, then members that stay in step throughout the window, those that came
    closest to losing it first. Faults are bolted unless told otherwise.
    """
    from contingencies.points import parse_at
    from zoo.facade.screening import screen as screen_family
    from zoo.work.executor import make_executor

    executor, given = make_executor(jobs, cluster), parse_at(at)
    recipe = recipe_of(fault, clearing, **options)
    check_csv(csv_file, as_json)
    check_figure(plot)
    with progress(system) as display:
        found = screen_family(system, recipe, alpha, at=given, reference=reference, executor=executor, report=display)
    if plot:
        from zoo.plots import save_figure

        save_figure(found.plot(required_ms), plot)
    if csv_file and write_csv(csv_file, found.to_csv()):
        return
    if as_json:
        print_json(
            {
                "system": found.system,
                "fault": fault,
                "severity_1_is": recipe.fault_words,
                "clearing": clearing,
                **({"at": given} if given else {}),
                "answers": found.reports(required_ms),
                "left_out": left_out_report(found.left_out),
            }
        )
        return
    window = recipe.window
    click.echo(
        f"{found.title}; t_f = {window.t_f:g} s, t_c in [{window.t_c[0]:g}, {window.t_c[1]:g}] s, T = {window.T:g} s, "
        f"limit {recipe.stability.max_separation_rad:.4f} rad  [{reference}]"
    )
    verdicts = [None] * len(found.answers) if required_ms is None else found.verdicts(required_ms)
    _print_ranking(found.answers, verdicts)
    print_left_out(found.left_out)


def _print_ranking(answers: "Sequence[Screened]", verdicts: "Sequence[Verdict | None]") -> None:
    width = max([len("contingency"), *(len(answer.contingency) for answer in answers)])
    required = next((verdict.required for verdict in verdicts if verdict is not None), None)
    heading = "" if required is None else f"  {f'to {1e3 * required:g} ms':>13}"
    click.echo(f"rank  {'contingency':{width}}  {'status':14}  {'duration ms':>11}  {'CCT s':>9}{heading}  note")
    for rank, (answer, verdict) in enumerate(zip(answers, verdicts, strict=True), start=1):
        cct = "-" if answer.cct is None else f"{answer.cct:.5f}"
        duration = "-" if answer.duration is None else f"{answer.duration * 1e3:.2f}"
        margin = "" if verdict is None else f"  {verdict.words():>13}"
        row = f"{rank:4}  {answer.contingency:{width}}  {answer.status:14}  {duration:>11}  {cct:>9}{margin}  "
        click.echo((row + _note(answer)).rstrip())
    counts = {
        status: sum(answer.status == status for answer in answers)
        for status in ("finite", "left-censored", "right-censored", "failed")
    }
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no members")
    worse = sum(answer.worse_when_bolted for answer in answers)
    if worse:
        click.echo(f"a bolted fault would be worse for {worse} of {len(answers)}")
    if required is not None:
        failing = sum(verdict is not None and verdict.outcome == "fail" for verdict in verdicts)
        click.echo(f"{failing} of {len(answers)} below the required {1e3 * required:g} ms")


def _note(answer: "Screened") -> str:
    """What else is known of a member."""
    notes = [answer.message] if answer.message else []
    if answer.restabilises:
        notes.append("restabilises")
    if answer.separation is not None:
        notes.append(f"{answer.separation:.2f} rad at the edge")
    if answer.worse_when_bolted:
        bolted = answer.bolted if answer.bolted_duration is None else f"{1e3 * answer.bolted_duration:.2f} ms"
        notes.append(f"bolted: {bolted}")
    return ", ".join(notes)
