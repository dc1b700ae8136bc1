"""The command that draws CCTs over one or two conditions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import csv_text
from zoo.commands.options import FINITE, at_option, csv_option, file_option, json_option, registry_options
from zoo.commands.output import check_csv, print_json, write_csv
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from contingencies.library import Contingency
    from contingencies.network import Float
    from contingencies.operator_family import OperatorFamily
    from zoo.judging.surfaces import Surface
    from zoo.work.reporting import Report

SHORT = {"right-censored": ">", "left-censored": "<", "uncertain": "?"}  # in a table over two conditions


@click.command(
    epilog="Example: cct-zoo surface docs/examples/ieee30-operating-points.yaml --alpha 0.9 --over load,generation.2"
)
@click.argument("name")
@click.option("--alpha", type=FINITE, required=True, help="Severity.")
@click.option("--over", required=True, metavar="A[,B]", help="One condition or two, as position or load,generation.2.")
@at_option
@click.option(
    "--source",
    default="reference",
    show_default=True,
    metavar="SOURCE",
    help="Who answers: reference (the fast reduced ODE), head (the deployed one), or the number of a checkpoint.",
)
@click.option("--points", type=click.IntRange(2, 1000), default=21, show_default=True, help="Values of each condition.")
@click.option("--plot", type=file_option, help="Write the surface or the curve (PNG, SVG or PDF).")
@csv_option("one row per point")
@registry_options
@json_option
def surface(
    name: str,
    alpha: float,
    over: str,
    at: tuple[str, ...],
    source: str,
    points: int,
    plot: Path | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """How long a fault of contingency NAME may last over one or two of its conditions, the others as --at says.

    Over two conditions the table has the first down and the second across, in ms; > is stable throughout the
    clearing window, < unstable throughout. The figure has iso-lines, and hatches where there is no number.
    """
    from contingencies.errors import UsageError
    from contingencies.operator_family import operator_family
    from contingencies.point_networks import axes_of, point_of
    from contingencies.points import parse_at
    from contingencies.reports import domain_remark
    from zoo.judging.surfaces import Surface, chosen_axes, grid_rows
    from zoo.lookup import find_contingency

    check_csv(csv_file, as_json)
    given, contingency = parse_at(at), find_contingency(name, home, registry)
    axes = axes_of(contingency)
    if not axes:
        raise UsageError(f"{contingency.name} has no conditions; add a conditions block to its description.")
    places = chosen_axes(contingency.name, axes, [one.strip() for one in over.split(",")])
    for one in given.keys() & {axes[place].name for place in places}:
        raise UsageError(f"{one} is both fixed by --at and varied by --over; leave one of them out.")
    varied = {axes[place].name: axes[place].low for place in places}
    point = point_of(contingency, varied | given)
    values, rows = grid_rows(axes, places, point, points)
    family = operator_family(contingency)
    with progress(contingency.name) as display:
        who, (cct, status, bound) = _answers(contingency, family, source, (alpha, rows), (home, registry), display)
    shape = tuple(len(one) for one in values)
    found = Surface(
        contingency.name, alpha, who, point, family.base.window.t_f, tuple(axes[place] for place in places), values,
        cct.reshape(shape), status.reshape(shape), None if bound is None else bound.reshape(shape),
    )  # fmt: skip
    if plot:
        from zoo.judging.condition_figures import plot_along, plot_surface
        from zoo.plots import save_figure

        save_figure(plot_surface(found) if len(places) == 2 else plot_along(found), plot)
    table = found.rows()
    if csv_file and write_csv(csv_file, csv_text(list(table[0]), table)):
        return
    if as_json:
        fixed = {key: value for key, value in point.to_dict().items() if key not in varied}
        print_json({"contingency": contingency.name, "alpha": alpha, "at": fixed, "source": who, "points": table})
        return
    at_text = f"  at {found.fixed}" if found.fixed else ""
    remark = domain_remark(family.base, alpha)
    click.echo(f"{contingency.name}  alpha {alpha:g}{at_text}  critical fault duration, ms  [{who}]{remark}")
    _print_table(found)


def _answers(
    contingency: "Contingency",
    family: "OperatorFamily",
    source: str,
    asked: "tuple[float, Float]",
    where: tuple[str, str | None],
    report: "Report",
) -> "tuple[str, tuple[Float, Any, Float | None]]":
    """Who answered, and CCT, status and bound of rows (m, d) at one severity."""
    import numpy as np

    from contingencies.errors import UsageError
    from zoo.judging.surfaces import boundary_answers, head_answers
    from zoo.work.reporting import within

    alpha, rows = asked
    severities = np.full(len(rows), alpha)
    told = within(report, "asking", len(rows))
    if source == "reference":
        from contingencies.point_references import reference_points

        return "fast ODE", boundary_answers(reference_points(family, severities, rows, report=told))
    if source == "head":
        from espinn_moe.condition_head import ConditionHead
        from registry.query import Registry

        with Registry.open(*where) as opened:
            deployed = opened.deployed(contingency.name)
        if not isinstance(deployed.head, ConditionHead):
            raise UsageError(f"the head of {contingency.name} knows no conditions; distill one for it as it is now.")
        return f"head {deployed.head_id}", head_answers(deployed.head, alpha, rows)
    if not (source.isascii() and source.isdigit() and 1 <= int(source[:10]) < 2**31):
        raise UsageError(f"--source {source[:40]!r} is not reference, head or the number of a checkpoint.")
    from espinn_moe.condition_boundary import point_boundary
    from zoo.commands.sensitivity import surrogate_over_conditions

    surrogate, member = surrogate_over_conditions(contingency.name, int(source), *where)
    return f"checkpoint {int(source)}", boundary_answers(point_boundary(surrogate, severities, rows, member, told))


def _print_table(found: "Surface") -> None:
    duration = found.duration_ms
    if len(found.axes) == 1:
        click.echo(f"{found.axes[0].name:>14}  status            ms{'' if found.bound is None else '        bound'}")
        for k, value in enumerate(found.values[0]):
            number = f"{duration[k]:9.3f}" if found.status[k] == "finite" else f"{'-':>9}"
            bound = "" if found.bound is None or found.status[k] != "finite" else f"  {1e3 * found.bound[k]:9.3f}"
            click.echo(f"{value:14.4g}  {found.status[k]:14}{number}{bound}")
        return
    down, across = found.axes
    head = f"{down.name} \\ {across.name}"
    click.echo(f"{head:>24}" + "".join(f"{value:10.4g}" for value in found.values[1]))
    for i, value in enumerate(found.values[0]):
        cells = [
            f"{duration[i, j]:10.2f}" if found.status[i, j] == "finite" else f"{SHORT.get(found.status[i, j], '-'):>10}"
            for j in range(len(found.values[1]))
        ]
        click.echo(f"{value:24.4g}" + "".join(cells))
