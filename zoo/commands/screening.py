"""The command that ranks contingencies by critical clearing time: a family made on the spot, or described in files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.families import left_out_report, print_left_out
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
from zoo.commands.recipes import option_name, recipe_of, recipe_options

if TYPE_CHECKING:
    from contingencies.protection import Verdict
    from contingencies.recipes import Recipe
    from contingencies.references import Reference
    from zoo.studies.screening import Screened


@click.command(epilog="Example: cct-zoo screen wscc9 --fault line --clearing remove-line --required-ms 200")
@click.argument("system")
@recipe_options(required=False)
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
    fault: str | None,
    clearing: str | None,
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
    """Rank contingencies of SYSTEM by critical clearing time, most critical first.

    SYSTEM is a shipped system or the path of a system file, and --fault and --clearing make a family of it; or it is
    a folder of contingency files. Members that lose synchronism however early they are cleared come first, then
    finite CCTs, then members that stay in step throughout the window, those that came closest to losing it first.
    Faults of a family are bolted unless told otherwise. Each member is held against --required-ms, or else against
    the time that its own file states under protection. The members of a family are not registered:
    generate-contingencies writes them down for register-contingency.
    """
    from contingencies.points import parse_at
    from zoo.facade.screening import screen as ranked
    from zoo.work.executor import make_executor

    executor, given = make_executor(jobs, cluster), parse_at(at)
    recipe = _recipe(system, fault, clearing, options)
    check_csv(csv_file, as_json)
    check_figure(plot)
    with progress(system) as display:
        found = ranked(system, recipe, alpha, at=given, reference=reference, executor=executor, report=display)
    if plot:
        from zoo.plots import save_figure

        save_figure(found.plot(required_ms), plot)
    if csv_file and write_csv(csv_file, found.to_csv(required_ms)):
        return
    if as_json:
        print_json(
            {
                "system": found.system,
                "fault": fault or "described",
                "severity_1_is": recipe.fault_words if recipe else "as described",
                "clearing": clearing or "described",
                **({"at": given} if given else {}),
                "answers": found.reports(required_ms),
                "left_out": left_out_report(found.left_out),
            }
        )
        return
    click.echo(f"{found.title}; {found.assumed}  [{reference}]")
    _print_ranking(found.answers, found.verdicts(required_ms))
    print_left_out(found.left_out)


def _recipe(system: str, fault: str | None, clearing: str | None, options: dict[str, Any]) -> "Recipe | None":
    """What the options make of a system; None for a folder, whose contingencies say themselves what happens."""
    from contingencies.errors import UsageError

    if Path(system).is_dir():
        for key, value in {"fault": fault, "clearing": clearing, **options}.items():
            if value is not None and value != ():
                raise UsageError(f"{system}: its contingencies say what happens; leave out {option_name(key)}.")
        return None
    if fault is None or clearing is None:
        raise UsageError("--fault and --clearing make the family that is ranked; give both, or name a folder instead.")
    return recipe_of(fault, clearing, **options)


def _print_ranking(answers: "Sequence[Screened]", verdicts: "Sequence[Verdict | None]") -> None:
    width = max([len("contingency"), *(len(answer.contingency) for answer in answers)])
    judged = [verdict for verdict in verdicts if verdict is not None]
    required = {verdict.required for verdict in judged}
    asked = f"{1e3 * min(required):g} ms" if len(required) == 1 else "required"
    heading = f"  {f'to {asked}':>13}" if judged else ""
    click.echo(f"rank  {'contingency':{width}}  {'status':14}  {'duration ms':>11}  {'CCT s':>9}{heading}  note")
    for rank, (answer, verdict) in enumerate(zip(answers, verdicts, strict=True), start=1):
        cct = "-" if answer.cct is None else f"{answer.cct:.5f}"
        duration = "-" if answer.duration is None else f"{answer.duration * 1e3:.2f}"
        margin = f"  {'-' if verdict is None else verdict.words():>13}" if judged else ""
        row = f"{rank:4}  {answer.contingency:{width}}  {answer.status:14}  {duration:>11}  {cct:>9}{margin}  "
        click.echo((row + _note(answer)).rstrip())
    counts = {
        status: sum(answer.status == status for answer in answers)
        for status in ("finite", "left-censored", "right-censored", "failed")
    }
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no members")
    worse, compared = (sum(getattr(a, name) for a in answers) for name in ("worse_when_bolted", "compared_with_bolted"))
    if compared:
        click.echo(f"a bolted fault would be worse for {worse or 'none'} of {compared}")
    if judged:
        from contingencies.protection import tally

        click.echo(tally(judged, "their required times" if len(required) > 1 else f"the required {asked}"))


def _note(answer: "Screened") -> str:
    """What else is known of a member."""
    notes = [answer.message] if answer.message else []
    if answer.restabilises:
        notes.append("restabilises")
    if answer.separation is not None:
        notes.append(f"{answer.separation:.2f} rad at the edge")
    if answer.compared_with_bolted:
        bolted = answer.bolted if answer.bolted_duration is None else f"{1e3 * answer.bolted_duration:.2f} ms"
        notes.append(f"bolted worse: {bolted}" if answer.worse_when_bolted else "bolted no worse")
    return ", ".join(notes)
