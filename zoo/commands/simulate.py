"""Commands that ask the reference simulators: one trajectory, one CCT, a whole boundary."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from zoo.commands.output import check_csv, print_json, write_csv
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from contingencies.operators import PhaseOperators
    from contingencies.references import Reference
    from contingencies.trajectories import Trajectory

CURVE_POINTS = 101  # severities of a whole boundary
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


@click.command()
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
    """Simulate one scenario of contingency NAME and say whether it stays in step."""
    from contingencies.references import reference_trajectory
    from contingencies.trajectories import trajectory_csv

    check_csv(csv_file, as_json)
    operators = _compiled(name, at, home, registry)
    trajectory = reference_trajectory(operators, alpha, t_c, reference)
    if plot:
        from zoo.plots import plot_trajectory, save_figure

        save_figure(plot_trajectory(operators, trajectory, alpha, t_c), plot)
    if csv_file and write_csv(csv_file, trajectory_csv(operators, trajectory)):
        return
    summary = _scenario_summary(operators, trajectory, alpha, t_c, reference)
    if as_json:
        print_json(summary)
        return
    verdict = "stable" if summary["stable"] else "UNSTABLE"
    where = f"  at {operators.point}" if operators.point.names else ""
    click.echo(
        f"{name}  alpha {alpha:g}  t_c {t_c:g} s{where}  {verdict}: largest separation "
        f"{summary['max_separation_rad']:.4f} rad at {summary['at_s']:.3f} s "
        f"(limit {operators.max_separation:.4f})  [{reference}]"
    )


def _compiled(name: str, at: tuple[str, ...], home: str, registry: str | None) -> "PhaseOperators":
    """Operators of a contingency at the operating point that --at gives."""
    from contingencies.operators import compile_contingency
    from contingencies.point_networks import axes_of, point_of
    from contingencies.points import parse_at
    from zoo.lookup import find_contingency

    given, contingency = parse_at(at), find_contingency(name, home, registry)
    point = point_of(contingency, given) if given or axes_of(contingency) else None
    return compile_contingency(contingency, point)


def _scenario_summary(
    operators: "PhaseOperators", trajectory: "Trajectory", alpha: float, t_c: float, reference: str
) -> dict[str, Any]:
    separation = trajectory.separation
    peak = int(separation.argmax())
    margin = float(separation[peak] - operators.max_separation)
    return {
        "contingency": operators.name,
        "alpha": alpha,
        "t_c_s": t_c,
        "duration_s": round(t_c - operators.window.t_f, 12),
        "reference": reference,
        "stable": margin < 0,
        "margin_rad": margin,
        "max_separation_rad": float(separation[peak]),
        "at_s": float(trajectory.t[peak]),
        "machines": list(operators.machine_buses),
        "final_delta_rad": trajectory.delta[-1].tolist(),
        "final_omega_pu": trajectory.omega[-1].tolist(),
        **({"at": operators.point.to_dict()} if operators.point.names else {}),
    }


@click.command("reference-cct")
@click.argument("name")
@alpha_option()
@at_option
@click.option("--curve", is_flag=True, help=f"The whole boundary, at {CURVE_POINTS} severities.")
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
    import numpy as np

    from contingencies import references
    from contingencies.errors import UsageError
    from contingencies.reports import cct_sentence, describe_cct, interval_sentence
    from contingencies.stability import boundary_of, check_scenario

    if bool(alphas) == curve:
        raise UsageError("give either --alpha A or --curve.")
    check_csv(csv_file, as_json)
    if plot and not curve:
        raise UsageError("--plot draws the whole boundary; add --curve.")
    given = parse_severities(alphas)
    operators = _compiled(name, at, home, registry)
    severities = np.linspace(*operators.severity, CURVE_POINTS) if curve else np.array(given)
    for value in severities:
        check_scenario(operators, float(value))
    answers = []
    with progress(name) as display:
        for value in severities:
            answers.append(references.reference_cct(operators, float(value), reference, intervals=intervals))
            display(f"{reference} reference", len(answers), len(severities))
    if plot:
        from zoo.plots import plot_boundary, save_figure

        save_figure(plot_boundary(operators, boundary_of(answers, reference)), plot)
    reports = [describe_cct(operators, answer) for answer in answers]
    if csv_file and write_csv(
        csv_file, csv_text(CSV_FIELDS, [{key: report[key] for key in CSV_FIELDS} for report in reports])
    ):
        return
    if as_json:
        print_json(reports if curve or len(reports) > 1 else reports[0])
        return
    for answer in answers:
        click.echo(cct_sentence(operators, answer))
        if intervals:
            click.echo(interval_sentence(operators, answer))
