"""Commands on what a trained surrogate implies: its stability boundary, and certificates of its CCT errors."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import csv_text
from zoo.commands.options import (
    ROW_NUMBER,
    alpha_option,
    csv_option,
    file_option,
    json_option,
    parse_severities,
    registry_options,
)
from zoo.commands.output import check_csv, print_json, write_csv
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from contingencies.references import Reference
    from espinn_moe.certificate import CertificateRow
    from zoo.judging.assessment import Assessment
    from zoo.surrogates.checkpoints import Loaded

checkpoint_option = click.option(
    "--checkpoint", type=ROW_NUMBER, metavar="ID", help="Which checkpoint; default: the newest of NAME."
)
severities_option = alpha_option("the 50 between those of the training grid")
reference_option = click.option(
    "--reference",
    type=click.Choice(["strict", "fast"]),
    default="strict",
    show_default=True,
    help="The reduced ODE that is the truth; strict takes seconds per severity.",
)


def _loaded(name: str, checkpoint: int | None, home: str, registry: str | None) -> "tuple[Loaded, int]":
    """The surrogate of a checkpoint and the checkpoint's number."""
    import torch

    from registry.home import Home
    from registry.store import contingencies as store
    from zoo.lookup import find_checkpoint
    from zoo.surrogates import checkpoints

    torch.set_num_threads(1)  # two threads on shared cores are slower
    with Home.open(home, registry, create=False) as opened:
        row = store.find(opened.database, name)  # asking registers nothing
        stored = find_checkpoint(opened, row, "latest" if checkpoint is None else str(checkpoint))
        return checkpoints.from_bytes(opened.load_checkpoint(stored), opened.contingency(row)), stored.id


def _severities(alphas: tuple[str, ...], loaded: "Loaded") -> Any:
    import numpy as np

    from contingencies.stability import check_scenario
    from zoo.surrogates.datasets import evaluation_grid

    operators = loaded.surrogate.members[loaded.member]
    if not alphas:
        return evaluation_grid(operators).unseen_alpha
    severities = np.unique(parse_severities(alphas))
    for value in severities:
        check_scenario(operators, float(value))
    return severities


@click.command()
@click.argument("name")
@checkpoint_option
@severities_option
@click.option("--margin", type=click.Choice(["smooth", "hard"]), help="Default: the surrogate's own.")
@reference_option
@click.option("--dae", is_flag=True, help="Also simulate the full network, at 21 of the severities at most.")
@click.option("--plot", type=file_option, help="Write the margin map and the boundaries (PNG, SVG or PDF).")
@csv_option("one row per severity")
@registry_options
@json_option
def boundary(
    name: str,
    checkpoint: int | None,
    alphas: tuple[str, ...],
    margin: Any,
    reference: "Reference",
    dae: bool,
    plot: Path | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """The stability boundary that a trained surrogate implies for contingency NAME, beside the reduced ODE."""
    from espinn_moe.margins import MarginRule
    from zoo.judging.assessment import assess_boundary, margin_picture

    check_csv(csv_file, as_json)
    loaded, number = _loaded(name, checkpoint, home, registry)
    severities = _severities(alphas, loaded)
    rule = None if margin is None else MarginRule(margin)
    with progress(name) as display:
        assessment = assess_boundary(loaded.surrogate, severities, loaded.member, rule, reference, dae, display)
    if plot:
        from zoo.judging.figures import plot_learned_boundary
        from zoo.plots import save_figure

        picture = margin_picture(loaded.surrogate, loaded.member, assessment.rule)
        save_figure(plot_learned_boundary(assessment, picture), plot)
    rows = assessment.rows()
    if csv_file and write_csv(csv_file, csv_text(list(rows[0]), rows)):
        return
    if as_json:
        report = {"model": loaded.model, "checkpoint": number} | assessment.summary() | {"rows": rows}
        if assessment.dae is not None:
            full = assessment.dae
            report["dae"] = [
                {"alpha": float(a), "status": s, "cct_s": None if t != t else float(t)}
                for a, s, t in zip(full.alpha, full.status, full.cct, strict=True)
            ]
        print_json(report)
        return
    click.echo(f"{name}  {loaded.model}  checkpoint {number}  {assessment.rule.kind} margin")
    _print_boundary(assessment, rows)


def _print_dae(rows: list[dict[str, Any]]) -> None:
    """The full network's CCTs beside the reduced ODE's."""
    click.echo("Full network (DAE):")
    for row in rows:
        if row["dae_status"] is not None:
            gap = (
                None if None in (row["dae_cct_s"], row["true_cct_s"]) else 1e3 * (row["dae_cct_s"] - row["true_cct_s"])
            )
            minus = "" if gap is None else f"   minus ODE {gap:9.4f} ms"
            click.echo(f"{row['alpha']:8.4f}  {row['dae_status']:14} {_number(row['dae_cct_s'], 8, 5)}{minus}")


def _print_boundary(assessment: "Assessment", rows: list[dict[str, Any]]) -> None:
    click.echo(
        "   alpha  status          CCT (s)   true (s)  error (ms)  dCCT/da (s)  centred (s)     true (s)  excluded"
    )
    for row in rows:
        instants = f"{_number(row['cct_s'], 8, 5)}   {_number(row['true_cct_s'], 8, 5)}"
        slopes = "  ".join(
            _number(row[key], 11, 4) for key in ("dcct_dalpha_s", "centred_difference_s", "true_dcct_dalpha_s")
        )
        click.echo(
            f"{row['alpha']:8.4f}  {row['status']:14} {instants}   {_number(row['error_ms'], 9, 4)}  {slopes}  "
            f"{row['excluded'] or ''}"
        )
    if assessment.dae is not None:
        _print_dae(rows)
    errors, split = assessment.errors, assessment.split
    if errors.mae is None:
        click.echo(
            f"no severity has a finite CCT in both; {errors.mismatches} of {len(assessment.learned.alpha)} disagree."
        )
        return
    assert errors.p95 is not None and errors.maximum is not None
    click.echo(
        f"CCT error ({assessment.truth.reference} ODE): mean {1e3 * errors.mae:.4f} ms, P95 {1e3 * errors.p95:.4f} ms, "
        f"max {1e3 * errors.maximum:.4f} ms over {errors.finite} severities; {errors.mismatches} of other status."
    )
    if split.rows:
        click.echo(
            f"Split: smoothing {1e3 * (split.smoothing or 0):.4f} ms, surrogate {1e3 * (split.surrogate or 0):.4f} ms, "
            f"end to end (smooth margin) {1e3 * (split.end_to_end or 0):.4f} ms."
        )
    for label, agreement in (
        ("centred differences", assessment.implicit_and_centred),
        ("ODE", assessment.implicit_and_true),
    ):
        if agreement.mae is not None:
            correlation = "-" if agreement.correlation is None else f"{agreement.correlation:.5f}"
            click.echo(
                f"Implicit sensitivity against {label}: mean difference {1e3 * agreement.mae:.3g} ms per unit of "
                f"severity, correlation {correlation} ({agreement.rows} rows)."
            )


@click.command()
@click.argument("name")
@checkpoint_option
@severities_option
@reference_option
@click.option("--plot", type=file_option, help="Write errors, estimates and bounds (PNG, SVG or PDF).")
@csv_option("one row per severity")
@registry_options
@json_option
def certify(
    name: str,
    checkpoint: int | None,
    alphas: tuple[str, ...],
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
    from dataclasses import fields

    from espinn_moe.certificate import CertificateRow
    from zoo.judging.certificates import certificate_summary, certify_boundary

    check_csv(csv_file, as_json)
    loaded, number = _loaded(name, checkpoint, home, registry)
    severities = _severities(alphas, loaded)
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
    click.echo(f"{name}  {loaded.model}  checkpoint {number}")
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
        ours = f"{_number(error, 10, 5)}  {1e3 * row.estimate:8.5f}  {1e3 * row.bound:8.5f}"
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


def _number(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None or value != value else f"{value:{width}.{digits}f}"
