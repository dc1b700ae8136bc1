"""Commands that ask the reference simulators: one trajectory, one CCT, a whole boundary."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from contingencies.tables import csv_text
from zoo.commands.options import (
    FINITE,
    alpha_option,
    at_option,
    csv_option,
    file_option,
    json_option,
    parse_severities,
    registry_options,
)
from zoo.commands.output import check_csv, check_figure, print_json, write_csv
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from contingencies.references import Reference

CSV_FIELDS = (  # of an answer, with what it assumes
    "contingency", "alpha", "status", "cct_s", "duration_s", "restabilises", "reference", "in_domain", "t_f_s", "T_s",
    "max_separation_rad",
)  # fmt: skip

reference_option = click.option(
    "--reference",
    type=click.Choice(["strict", "fast", "dae"]),
    default="fast",
    show_default=True,
    help="Strict SciPy protocol, compiled ODE, or full-network DAE.",
)


@click.command(epilog="Example: cct-zoo simulate ieee30-line-3-4-restore --alpha 0.93 --t-c 0.73 --plot trajectory.png")
@click.argument("name")
@click.option("--alpha", type=FINITE, required=True, help="Severity.")
@click.option("--t-c", type=FINITE, required=True, help="Clearing instant on the simulation clock, s.")
@at_option
@reference_option
@click.option("--plot", type=file_option, help="Write a figure of angles and speeds (PNG, SVG or PDF).")
@csv_option("the trajectory")
@registry_options
@json_option
def simulate(
    name: str,
    alpha: float,
    t_c: float,
    at: tuple[str, ...],
    reference: "Reference",
    plot: Path | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Simulate one scenario of contingency NAME and say whether it stays in step.

    In JSON, separation_rad is the largest that was reached, max_separation_rad the largest admissible, and margin_rad
    the first less the second: negative while synchronism is kept.
    """
    from contingencies.points import parse_at
    from contingencies.reports import domain_remark
    from contingencies.trajectories import trajectory_csv
    from zoo.facade import references
    from zoo.lookup import find_contingency

    check_csv(csv_file, as_json)
    check_figure(plot)
    given = parse_at(at)
    found = references.simulate(find_contingency(name, home, registry), alpha, t_c, given, reference)
    if plot:
        from zoo.plots import save_figure

        save_figure(found.plot(), plot)
    if csv_file and write_csv(csv_file, trajectory_csv(found.operators, found.trajectory)):
        return
    if as_json:
        print_json(found.report())
        return
    operators = found.operators
    at_s, largest = found.largest_separation
    where = f"  at {operators.point}" if operators.point.names else ""
    verdict = "stable" if found.stable else "UNSTABLE"
    crossed = "" if found.crossing is None else f", reached at {found.crossing:.3f} s"
    click.echo(
        f"{operators.name}  alpha {alpha:g}  t_c {t_c:g} s{where}  {verdict}: largest separation "
        f"{largest:.4f} rad at {at_s:.3f} s (limit {operators.max_separation:.4f}{crossed})"
        f"{domain_remark(operators, alpha)}  [{reference}]"
    )


@click.command("reference-cct", epilog="Example: cct-zoo reference-cct ieee30-line-3-4-restore --alpha 0.93")
@click.argument("name")
@alpha_option()
@at_option
@click.option("--curve", is_flag=True, help="The whole boundary, at 101 severities.")
@reference_option
@click.option("--intervals", is_flag=True, help="Every stable interval of clearing instants, not only the first.")
@click.option("--plot", type=file_option, help="With --curve: write a figure (PNG, SVG or PDF).")
@csv_option("one row per severity")
@registry_options
@json_option
def reference_cct(
    name: str,
    alphas: tuple[str, ...],
    at: tuple[str, ...],
    curve: bool,
    reference: "Reference",
    intervals: bool,
    plot: Path | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """The critical clearing time of contingency NAME by a reference simulator.

    The CCT is shown as an instant on the simulation clock and as a duration after the fault.
    """
    from contingencies.errors import UsageError
    from contingencies.points import parse_at
    from contingencies.reports import boundary_sentences, cct_sentence, interval_sentence
    from zoo.facade.references import boundary
    from zoo.lookup import find_contingency

    if bool(alphas) == curve:
        raise UsageError("give either --alpha A or --curve.")
    check_csv(csv_file, as_json)
    if plot and not curve:
        raise UsageError("--plot draws the whole boundary; add --curve.")
    check_figure(plot)
    severities, given = None if curve else parse_severities(alphas), parse_at(at)
    contingency = find_contingency(name, home, registry)
    with progress(name) as display:
        found = boundary(contingency, severities, given, reference, intervals, display)
    if plot:
        from zoo.plots import save_figure

        save_figure(found.plot(), plot)
    reports = found.reports()
    if csv_file and write_csv(
        csv_file, csv_text(CSV_FIELDS, [{key: report[key] for key in CSV_FIELDS} for report in reports])
    ):
        return
    if as_json:
        print_json(reports if curve or len(reports) > 1 else reports[0])
        return
    if curve and not intervals:
        click.echo("\n".join(boundary_sentences(found.operators, found.answers)))
        return
    for answer in found.answers:
        click.echo(cct_sentence(found.operators, answer))
        if intervals:
            click.echo(interval_sentence(found.operators, answer))
