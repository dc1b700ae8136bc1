"""Commands that decide which head answers: deploy, rollback, retire, and their history."""

import json
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.common import json_option, print_json, registry_options

if TYPE_CHECKING:
    from registry.schema import DeploymentRow

alias_option = click.option("--alias", default="production", show_default=True, help="Which deployment of the name.")
reason_option = click.option("--reason", default="", help="Why, for the record.")


def _report(row: "DeploymentRow") -> dict[str, Any]:
    return {
        "deployment": row.id,
        "contingency": row.contingency,
        "alias": row.alias,
        "head": row.head_id,
        "contingency_version": row.head.contingency.version,
        "checkpoint": row.head.checkpoint_id,
        "action": row.action,
        "active": row.active,
        "forced": row.forced,
        "reason": row.reason,
        "actor": row.actor,
        "created_at": row.created_at.isoformat(timespec="seconds"),
        "ended_at": None if row.ended_at is None else row.ended_at.isoformat(timespec="seconds"),
    }


@click.command()
@click.argument("name")
@click.option("--head", "head_id", type=click.IntRange(1), help="Number of the head; default: the newest.")
@alias_option
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("--force", is_flag=True, help="Deploy although the measured error exceeds the limit; it is recorded.")
@click.option(
    "--max-mean-ms", type=click.FloatRange(0), default=2.0, show_default=True, help="Limit of the mean error."
)
@click.option("--max-ms", type=click.FloatRange(0), default=10.0, show_default=True, help="Limit of the maximum error.")
@registry_options
@json_option
def deploy(
    name: str,
    head_id: int | None,
    alias: str,
    reason: str,
    force: bool,
    max_mean_ms: float,
    max_ms: float,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Let a head answer for contingency NAME.

    A head whose measured error against the strict ODE exceeds its limits is refused (exit code 6).
    """
    from registry.home import Home
    from registry.store.deployments import Gate

    gate = Gate(mae_s=1e-3 * max_mean_ms, max_s=1e-3 * max_ms)
    with Home.open(home, registry, create=False) as opened:
        row = opened.deploy(name, head_id, alias=alias, reason=reason, force=force, gate=gate)
    _print_change(row, "deployed" + (" against the gate" if row.forced else ""), as_json)


@click.command()
@click.argument("name")
@alias_option
@reason_option
@registry_options
@json_option
def rollback(name: str, alias: str, reason: str, home: str, registry: str | None, as_json: bool) -> None:
    """Restore the head that answered for NAME before, or the one that was retired."""
    from registry.home import Home

    with Home.open(home, registry, create=False) as opened:
        row = opened.rollback(name, alias=alias, reason=reason)
    _print_change(row, "restored", as_json)


@click.command()
@click.argument("name")
@alias_option
@reason_option
@registry_options
@json_option
def retire(name: str, alias: str, reason: str, home: str, registry: str | None, as_json: bool) -> None:
    """End the deployment of NAME: nothing answers under the alias any more."""
    from registry.home import Home

    with Home.open(home, registry, create=False) as opened:
        row = opened.retire(name, alias=alias, reason=reason)
    _print_change(row, "retired", as_json)


def _print_change(row: "DeploymentRow", verb: str, as_json: bool) -> None:
    if as_json:
        print_json(_report(row))
    else:
        click.echo(
            f"{row.contingency}  {row.alias}  head {row.head_id} (version {row.head.contingency.version}) {verb}"
        )


@click.command()
@click.argument("name")
@click.option("--alias", help="Only this alias; default: all.")
@registry_options
@json_option
def history(name: str, alias: str | None, home: str, registry: str | None, as_json: bool) -> None:
    """Every deployment of NAME and every event about it, oldest first."""
    from registry.home import Home
    from registry.store import deployments, events

    with Home.open(home, registry, create=False) as opened:
        rows = deployments.history(opened.database, name, alias)
        log = events.events_of(opened.database, name)
    reports = [_report(row) for row in rows]
    told = [
        {
            "at": event.at.isoformat(timespec="seconds"),
            "actor": event.actor,
            "action": event.action,
            "reason": event.reason,
            **json.loads(event.detail_json),
        }
        for event in log
    ]
    if as_json:
        print_json({"contingency": name, "deployments": reports, "events": told})
        return
    lines = []
    for report in reports:
        until = "active" if report["active"] else f"until {report['ended_at']}"
        forced = "  FORCED" if report["forced"] else ""
        lines.append(
            f"{report['created_at']}  {report['alias']}  {report['action']} head {report['head']} "
            f"(version {report['contingency_version']})  {until}{forced}  "
            f"by {report['actor']}: {report['reason'] or '-'}"
        )
    for event in told:
        if event["action"] not in ("deploy", "rollback"):  # told above, with more
            lines.append(f"{event['at']}  {event['action']}  by {event['actor']}: {event['reason'] or '-'}")
    for line in sorted(lines):  # by time, which every line begins with
        click.echo(line)
