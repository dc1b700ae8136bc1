"""The command that shows the stability boundary which a trained surrogate implies."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import counted, csv_text
from zoo.commands.options import (
    ROW_NUMBER,
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


def load_surrogate(
    name: str, checkpoint: int | None, home: str, registry: str | None, at: tuple[str, ...] = ()
) -> "tuple[Loaded, int]":
    """The surrogate of a checkpoint, at an operating point if one is given, and the checkpoint's number."""
    from contingencies.points import parse_at
    from registry.query import Registry
    from zoo.facade.learning import load_checkpoint

    given = parse_at(at)
    with Registry.open(home, registry) as opened:
        return load_checkpoint(name, checkpoint, opened, given)


def _required_ms(name: str, home: str, registry: str | None) -> float | None:
    """The duration that protection needs, ms, where the registry knows it."""
    from registry.home import Home
    from registry.store.required_times import required_times

    with Home.open(home, registry, create=False) as opened:
        required = required_times(opened.database).get(name.partition("@")[0])
    return None if required is None else 1e3 * required.required_s


@click.command(epilog="Example: cct-zoo boundary ieee30-line-3-4-restore --reference fast --plot boundary.png")
@click.argument("name")
@checkpoint_option
@severities_option
@at_option
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
    at: tuple[str, ...],
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
    check_csv(csv_file, as_json)
    check_figure(plot)
    given = parse_severities(alphas) or None

    from espinn_moe.margins import MarginRule
    from zoo.facade.learning import LearnedBoundary, severities_of
    from zoo.judging.assessment import assess_boundary

    loaded, number = load_surrogate(name, checkpoint, home, registry, at)
    severities = severities_of(loaded, given)
    rule = None if margin is None else MarginRule(margin)
    with progress(name) as display:
        assessment = assess_boundary(loaded.surrogate, severities, loaded.member, rule, reference, dae, display)
    if plot:
        from zoo.plots import save_figure

        save_figure(LearnedBoundary(loaded, number, assessment).plot(_required_ms(name, home, registry)), plot)
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
    where = f"  at {', '.join(at)}" if at else ""
    click.echo(f"{name}  {loaded.model}  checkpoint {number}{where}  {assessment.rule.kind} margin")
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
            click.echo(f"{row['alpha']:8.4f}  {row['dae_status']:14} {number_text(row['dae_cct_s'], 8, 5)}{minus}")


def _print_boundary(assessment: "Assessment", rows: list[dict[str, Any]]) -> None:
    click.echo(
        "   alpha  status          CCT (s)   true (s)  error (ms)  dCCT/da (s)  centred (s)     true (s)  excluded"
    )
    for row in rows:
        instants = f"{number_text(row['cct_s'], 8, 5)}   {number_text(row['true_cct_s'], 8, 5)}"
        slopes = "  ".join(
            number_text(row[key], 11, 4) for key in ("dcct_dalpha_s", "centred_difference_s", "true_dcct_dalpha_s")
        )
        click.echo(
            f"{row['alpha']:8.4f}  {row['status']:14} {instants}   {number_text(row['error_ms'], 9, 4)}  {slopes}  "
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
    number = counted(errors.finite, "severity", "severities")
    click.echo(
        f"CCT error ({assessment.truth.reference} ODE): mean {1e3 * errors.mae:.4f} ms, P95 {1e3 * errors.p95:.4f} ms, "
        f"max {1e3 * errors.maximum:.4f} ms over {number}; {errors.mismatches} of other status."
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


def number_text(value: float | None, width: int, digits: int) -> str:
    """A number in a column, or a dash."""
    return f"{'-':>{width}}" if value is None or value != value else f"{value:{width}.{digits}f}"
