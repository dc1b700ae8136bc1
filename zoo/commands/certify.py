"""The command that certifies how wrong each learned CCT can be."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import csv_text
from zoo.commands.boundary import (
    checkpoint_option,
    load_surrogate,
    number_text,
    reference_option,
    severities_option,
)
from zoo.commands.options import at_option, csv_option, file_option, json_option, parse_severities, registry_options
from zoo.commands.output import check_csv, check_figure, print_json, write_csv
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from contingencies.references import Reference
    from espinn_moe.certificate import CertificateRow


@click.command(epilog="Example: cct-zoo certify ieee30-line-3-4-restore --reference fast")
@click.argument("name")
@checkpoint_option
@severities_option
@at_option
@reference_option
@click.option("--plot", type=file_option, help="Write errors, estimates and bounds (PNG, SVG or PDF).")
@csv_option("one row per severity")
@registry_options
@json_option
def certify(
    name: str,
    checkpoint: int | None,
    alphas: tuple[str, ...],
    at: tuple[str, ...],
    reference: "Reference",
    plot: Path | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """How wrong each learned CCT of contingency NAME can be, judged from the surrogate's own residual.

    Beside the true error stand the dual-weighted residual estimate, its absolute-value bound, and the paper's
    theorem with the logarithmic norm and with uniform Lipschitz constants.
    """
    check_csv(csv_file, as_json)
    check_figure(plot)
    given = parse_severities(alphas) or None

    from dataclasses import fields

    from espinn_moe.certificate import CertificateRow
    from zoo.facade.learning import severities_of
    from zoo.judging.certificates import certificate_summary, certify_boundary

    loaded, number = load_surrogate(name, checkpoint, home, registry, at)
    severities = severities_of(loaded, given)
    with progress(name) as display:
        rows = certify_boundary(loaded.surrogate, severities, loaded.member, reference, display)
    operators = loaded.surrogate.members[loaded.member]
    summary = certificate_summary(rows, operators.window.t_c[1] - operators.window.t_c[0])
    plain = [_json_row(row) for row in rows]
    if plot and rows:
        from zoo.judging.figures import plot_certificates
        from zoo.plots import save_figure

        save_figure(plot_certificates(operators, rows, reference), plot)
    columns = [*(column.name for column in fields(CertificateRow)), "error"]
    if csv_file and write_csv(csv_file, csv_text(columns, plain)):
        return
    if as_json:
        print_json(
            {"contingency": name, "model": loaded.model, "checkpoint": number} | summary | {"certificates": plain}
        )
        return
    where = f"  at {', '.join(at)}" if at else ""
    click.echo(f"{name}  {loaded.model}  checkpoint {number}{where}")
    _print_certificates(rows, summary)


def _json_row(row: "CertificateRow") -> dict[str, Any]:
    """A certificate without infinities, which JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.to_dict().items()
    }


def _print_certificates(rows: "list[CertificateRow]", summary: dict[str, Any]) -> None:
    if not rows:
        click.echo("no severity has a finite learned CCT; there is nothing to certify.")
        return
    click.echo("   alpha   CCT (s)  true error  estimate     bound  log-norm bound  paper's bound  (ms)")
    for row in rows:
        error = None if row.error is None else 1e3 * row.error
        ours = f"{number_text(error, 10, 5)}  {1e3 * row.estimate:8.5f}  {1e3 * row.bound:8.5f}"
        paper = f"1e{row.paper_log10 + 3.0:.0f}"
        click.echo(f"{row.alpha:8.4f}  {row.cct:8.5f}  {ours}  {1e3 * row.log_norm:14.4g}  {paper:>13}")
    vacuous, count = summary["vacuous"], summary["rows"]
    if summary["bound_covers"] is not None:
        worst = summary["worst_relative_error_of_estimate"]
        off = (
            "no error above 0.02 ms"
            if worst is None
            else f"off by at most {100 * worst:.1f} % where errors exceed 0.02 ms"
        )
        click.echo(
            f"The estimate is {off}; the bound covers {summary['bound_covers']} of {count} rows. Mean error "
            f"{summary['mean_error_ms']:.5f} ms, {summary['mean_error_after_correction_ms']:.5f} ms less its estimate."
        )
    for label, rows_without in (
        ("The dual-weighted bound", vacuous["dual_weighted_bound"]),
        ("The theorem with the logarithmic norm", vacuous["theorem_with_logarithmic_norm"]),
        ("The paper's bound", vacuous["theorem_of_the_paper"]),
    ):
        verdict = "says something on every row" if not rows_without else f"is VACUOUS on {rows_without} of {count} rows"
        click.echo(f"{label} {verdict}.")
    click.echo("A bound is vacuous when it is longer than the clearing window: any answer would satisfy it.")
