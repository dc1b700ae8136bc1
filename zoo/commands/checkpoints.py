"""The command that lists trained surrogates."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import ROW_NUMBER, json_option, registry_options
from zoo.commands.output import print_json

if TYPE_CHECKING:
    from registry.records import CheckpointRecord, DeploymentRecord, RunRecord

SHOWN = 4  # members named in a line of text


@click.command(epilog="Example: cct-zoo checkpoints ieee30-line-3-4-restore")
@click.argument("name", required=False)
@click.option("--limit", type=ROW_NUMBER, default=100, show_default=True, help="The newest so many.")
@registry_options
@json_option
def checkpoints(name: str | None, limit: int, home: str, registry: str | None, as_json: bool) -> None:
    """List checkpoints, newest first: all of them, or those that serve contingency NAME (or NAME@VERSION).

    A checkpoint is the default of a member when it is the one that 'boundary' and 'distill --source latest' take,
    and deployed when the head that answers for the member came from it.
    """
    from registry.home import Home
    from registry.store import contingencies, deployments, runs

    with Home.open(home, registry, create=False) as opened:
        database = opened.database
        if name is not None:
            contingencies.find(database, name)
        rows = runs.checkpoints(database, name, limit)
        trained = [runs.trained_in(database, row) for row in rows]
        defaults = runs.default_checkpoints(database)
        active = deployments.all_active(database)
    reports = [checkpoint_report(row, run, defaults, active) for row, run in zip(rows, trained, strict=True)]
    if as_json:
        print_json(reports)
        return
    for report in reports:
        click.echo(_line(report))
    if not reports:
        click.echo("no checkpoint yet; 'cct-zoo train' and 'cct-zoo train-moe' make some", err=True)


def checkpoint_report(
    row: "CheckpointRecord", run: "RunRecord | None", defaults: dict[int, int], active: "list[DeploymentRecord]"
) -> dict[str, Any]:
    """A checkpoint as plain values; `run` is the training it came from."""
    metrics = row.metrics
    deployed = [deployment for deployment in active if deployment.head.checkpoint_id == row.id]
    members = [
        {
            "contingency": member.contingency_name,
            "version": member.contingency_version,
            "expert": member.expert,
            "default": defaults.get(member.contingency_id) == row.id,
            "deployed": [d.alias for d in deployed if d.head.contingency_id == member.contingency_id],
        }
        for member in row.members
    ]
    measured = metrics.get("measured_member")  # of a family to which an expert was added: the newcomer alone
    return {
        "checkpoint": row.id,
        "model": None if run is None else run.model,
        "members": members,
        "parameters": row.parameters,
        "cct_mae_ms": metrics.get("cct_mae_ms"),
        "cct_max_ms": metrics.get("cct_max_ms"),
        "cct_error_of": None if measured is None else members[int(measured)]["contingency"],
        "status_errors": metrics.get("status_errors"),
        "fraction": None if run is None else run.fraction,
        "seed": None if run is None else run.seed,
        "residual": None if run is None else run.config.get("residual"),
        "steps": metrics.get("steps"),
        "run": row.run_id,
        "run_status": None if row.run is None else row.run.status,
        "parent": row.parent_id,
        "created_at": row.created_at.isoformat(timespec="seconds"),
        "digest": row.digest,
    }


def _line(report: dict[str, Any]) -> str:
    members = report["members"]
    error = report["cct_mae_ms"]
    whose = f" of {report['cct_error_of']}" if report["cct_error_of"] else ""
    parts = [
        f"checkpoint {report['checkpoint']}",
        report["model"] or "unknown model",
        _named([f"{member['contingency']} v{member['version']}" for member in members]),
        f"{report['parameters']:,} parameters",
        "CCT error not measured" if error is None else f"CCT error{whose} {error:.4f} ms",
    ]
    if report["fraction"] is not None:
        parts.append(f"fraction {report['fraction']:g}  seed {report['seed']}")
    if report["residual"] == "shooting":  # the other is each model's own: pointwise, or none
        parts.append("shooting residual")
    if report["steps"] is not None:
        parts.append(f"{report['steps']:,.0f} steps")
    parts.append(report["created_at"])
    if report["parent"] is not None:
        parts.append(f"parent {report['parent']}")
    if report["run_status"] not in (None, "finished"):
        parts.append(f"run {report['run_status']}")
    default = [member["contingency"] for member in members if member["default"]]
    if default:
        parts.append("[default]" if len(default) == len(members) else f"[default of {_named(default)}]")
    deployed = [f"{alias} of {member['contingency']}" for member in members for alias in member["deployed"]]
    if deployed:
        parts.append(f"[deployed: {_named(deployed)}]")
    return "  ".join(parts)


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown}, ... ({len(names)})"
