"""Commands that make and list heads."""

from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import severities
from zoo.commands.options import ROW_NUMBER, json_option, registry_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from espinn_moe.head import HeadKind
    from registry.records import HeadRecord
    from zoo.heads.distill import StrictProtocol


def head_report(row: "HeadRecord") -> dict[str, Any]:
    """A head as plain values for people and programs."""
    return {
        "head": row.id,
        "contingency": row.contingency.name,
        "contingency_version": row.contingency.version,
        "source": row.source,
        "checkpoint": row.checkpoint_id,
        "kind": row.kind,
        "severity": [row.severity_low, row.severity_high],
        "intervals": [{"from": a, "to": b, "status": status} for a, b, status in row.intervals],
        "error_bound_s": row.error_bound_s,
        "reconstruction_mae_s": row.errors["reconstruction"]["mae_s"],
        "reconstruction_max_s": row.errors["reconstruction"]["max_s"],
        "reference_severities": row.errors["reference"]["count"],
        "reference_mae_s": row.errors["reference"]["mae_s"],
        "reference_max_s": row.errors["reference"]["max_s"],
        "strict_severities": row.strict_count,
        "strict_mae_s": row.strict_mae_s,
        "strict_max_s": row.strict_max_s,
        "strict_disagreements": row.strict_disagreements,
        "digest": row.digest,
        "size": row.size,
        "created_at": row.created_at.isoformat(timespec="seconds"),
    }


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.4f} ms"


def _head_line(report: dict[str, Any]) -> str:
    source = "reference" if report["checkpoint"] is None else f"checkpoint {report['checkpoint']}"
    if report.get("model"):
        newest = f", the newest of {report['contingency']}" if report["requested_source"] == "latest" else ""
        source += f" ({report['model']}{newest})"
    finite = [f"{i['from']:.4f}..{i['to']:.4f}" for i in report["intervals"] if i["status"] == "finite"]
    mean, largest = (_milliseconds(report[key]) for key in ("strict_mae_s", "strict_max_s"))
    over = ""
    if report["kind"] == "conditions":  # the strict ODE is asked at few points of a domain of many dimensions
        fast = [_milliseconds(report[key]) for key in ("reference_mae_s", "reference_max_s")]
        rows = f"{report['reference_severities']} points of its domain"
        over = f"  against the fast ODE: mean {fast[0]}, max {fast[1]} ({rows})"
    bound = report["error_bound_s"]
    promise = "no bound" if bound is None else f"95 % within +- {1e3 * bound:.3g} ms"
    return (
        f"head {report['head']}  {report['contingency']} v{report['contingency_version']}  "
        f"{report['kind']} from {source}  finite {', '.join(finite) or 'nowhere'}  "
        f"against the strict ODE: mean {mean}, max {largest} ({severities(report['strict_severities'])}, "
        f"{report['strict_disagreements']} of other status){over}  {promise}"
    )


@click.command(epilog="Example: cct-zoo distill ieee30-line-3-4-restore --source latest")
@click.argument("name")
@click.option(
    "--source", default="reference", show_default=True, help="reference, latest, or the number of a checkpoint."
)
@click.option(
    "--head",
    "kind",
    type=click.Choice(["chebyshev", "network"]),
    default="chebyshev",
    show_default=True,
    help="Chebyshev series in the edge coordinate, or the paper's small network.",
)
@click.option(
    "--strict",
    type=click.IntRange(0, 1000),
    default=12,
    show_default=True,
    help="Severities measured against the strict ODE; 0 leaves the head unmeasured.",
)
@click.option(
    "--strict-protocol",
    "protocol",
    type=click.Choice(["confirm", "full"]),
    default="confirm",
    show_default=True,
    help="Confirm the fast root by strict simulations on either side of it, or search the whole clearing window "
    "(seconds for each severity).",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Draws the severities.")
@registry_options
@json_option
def distill(
    name: str,
    source: str,
    kind: "HeadKind",
    strict: int,
    protocol: "StrictProtocol",
    seed: int,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Distill a CCT head of contingency NAME and measure its error.

    NAME is registered (NAME@VERSION for an older version) or shipped. A head that the gate of 'deploy' would refuse is
    kept, and said to be such.
    """
    from registry.query import Registry
    from registry.store import runs
    from zoo.facade.heads import distill as make_head
    from zoo.heads.distill import HeadSettings

    settings = HeadSettings(kind, strict, seed, protocol)
    with Registry.open(home, registry, create=True) as opened:
        with progress(name) as display:
            found = make_head(name, source, settings, opened, display)
        database, head, checkpoint = opened.home.database, found.record, found.checkpoint
        run = None if checkpoint is None else runs.trained_in(database, checkpoint)
        trained = runs.default_checkpoints(database).get(head.contingency_id)
    report = head_report(head) | {
        "requested_source": source,
        "model": None if run is None else run.model,
        "objections": found.objections,
    }
    print_json(report) if as_json else click.echo(_head_line(report))
    if checkpoint is None and trained is not None:
        click.echo(f"Note: the source is the reference; --source latest takes checkpoint {trained}.", err=True)
    if found.objections:
        click.echo(f"Note: 'deploy' would refuse head {head.id}: {'; '.join(found.objections)}.", err=True)


@click.command(epilog="Example: cct-zoo heads ieee30-line-3-4-restore")
@click.argument("name", required=False)
@click.option("--limit", type=ROW_NUMBER, default=100, show_default=True, help="Show at most so many, newest first.")
@registry_options
@json_option
def heads(name: str | None, limit: int, home: str, registry: str | None, as_json: bool) -> None:
    """List heads, newest first: all of them, or those of contingency NAME (or NAME@VERSION)."""
    from registry.query import Registry

    with Registry.open(home, registry) as opened:
        rows = opened.heads(name, limit)
        aliases: dict[int, list[str]] = {}
        for deployment in opened.deployments():
            aliases.setdefault(deployment.head_id, []).append(deployment.alias)
    reports = [head_report(row) | {"deployed": aliases.get(row.id, [])} for row in rows]
    if as_json:
        print_json(reports)
        return
    for report in reports:
        deployed = f"  [{', '.join(report['deployed'])}]" if report["deployed"] else ""
        click.echo(_head_line(report) + deployed)
