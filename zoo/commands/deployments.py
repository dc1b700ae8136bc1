"""Commands that decide which head answers: deploy, rollback, retire, and their history."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import (
    ROW_NUMBER,
    accept_worse_option,
    alias_option,
    gate_options,
    json_option,
    registry_options,
)
from zoo.commands.output import print_json

if TYPE_CHECKING:
    from registry.records import DeploymentRecord, EventRecord

reason_option = click.option("--reason", default="", help="Why, for the record.")


@click.command(epilog='Example: cct-zoo deploy ieee30-line-3-4-restore --reason "first head"')
@click.argument("name")
@click.option("--head", "head_id", type=ROW_NUMBER, help="Number of the head; default: the newest.")
@alias_option
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("--force", is_flag=True, help="Deploy although the measured error exceeds the limit; it is recorded.")
@accept_worse_option
@gate_options
@registry_options
@json_option
def deploy(
    name: str,
    head_id: int | None,
    alias: str,
    reason: str,
    force: bool,
    accept_worse: bool,
    max_mean_ms: float,
    max_ms: float,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Let a head answer for contingency NAME.

    A head is refused (exit code 6) when its measured error against the strict ODE exceeds the limits, or when it is
    censored where the reference is not, or the reverse, at more than a tenth of the severities. So is a head that is
    worse than the one it would replace, unless --accept-worse is given: a worse bound, fewer severities measured
    against the strict ODE, or a surrogate in place of the reference. The head that answers already is left as it is.
    """
    from registry.query import Registry
    from registry.store.deployments import Gate
    from zoo.facade.deploying import deploy as deploy_head

    gate = Gate(mae_s=1e-3 * max_mean_ms, max_s=1e-3 * max_ms)
    with Registry.open(home, registry) as opened:
        found = deploy_head(
            name, head_id, reason=reason, alias=alias, force=force, accept_worse=accept_worse, gate=gate,
            registry=opened,
        )  # fmt: skip
    against = " against the gate" if found.record.forced else ""
    verb = f"deployed{against}{_evidence(found.record)}" if found.changed else "answers already; nothing was changed"
    _print_change(found.record, verb, as_json, found.changed)


def _evidence(row: "DeploymentRecord") -> str:
    """What the head's error was measured on, so that a gate passed on one severity is seen as such."""
    count, mean, largest = row.head.strict_count, row.head.strict_mae_s, row.head.strict_max_s
    if not count:
        return ": never measured against the strict ODE"
    if mean is None or largest is None:
        right = count - row.head.strict_disagreements
        return f": {right} of {count} statuses are those of the strict ODE, none with a number to compare"
    places = f"{count} severit{'y' if count == 1 else 'ies'}"
    return f": error {1e3 * mean:.3g} ms, largest {1e3 * largest:.3g} ms, against the strict ODE at {places}"


@click.command(epilog='Example: cct-zoo rollback ieee30-line-3-4-restore --reason "wrong network"')
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


@click.command(epilog='Example: cct-zoo retire ieee30-line-3-4-restore --reason "line removed"')
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


def _print_change(row: "DeploymentRecord", verb: str, as_json: bool, changed: bool = True) -> None:
    from zoo.facade.deploying import Deployment

    if as_json:
        print_json(Deployment(row, changed).report())
    else:
        click.echo(
            f"{row.contingency}  {row.alias}  head {row.head_id} (version {row.head.contingency.version}) {verb}"
        )


@click.command(epilog="Example: cct-zoo history ieee30-line-3-4-restore")
@click.argument("name")
@click.option("--alias", help="Only this alias; default: all.")
@registry_options
@json_option
def history(name: str, alias: str | None, home: str, registry: str | None, as_json: bool) -> None:
    """Everything that happened to NAME, oldest first: registered, trained, distilled, deployed, retired.

    Each line says when, what, from what to what, by whom and why.
    """
    from registry.home import Home
    from registry.store import deployments, events, runs
    from registry.texts import split_reference
    from zoo.facade.deploying import deployment_report

    with Home.open(home, registry, create=False) as opened:
        rows = deployments.history(opened.database, name, alias)
        bare, _ = split_reference(name)
        models = {}
        for row in runs.checkpoints(opened.database, bare):
            run = runs.trained_in(opened.database, row)
            models[f"checkpoint-{row.id}"] = {
                "checkpoint": row.id,
                "model": None if run is None else run.model,
                "members": len(row.members),
                "parent": row.parent_id,
            }
        log = events.events_of(opened.database, bare, *models)
    entries = [_event(event) | models.get(event.subject, {}) for event in log]
    entries = [event for event in entries if alias is None or event.get("alias", alias) == alias]
    by_number = {row.id: deployment_report(row) for row in rows}
    for event in entries:
        if event["action"] in ("deploy", "rollback") and event["deployment"] in by_number:
            by_number[event["deployment"]]["replaced_head"] = event["replaced_head"]
    if as_json:
        print_json({"contingency": name, "deployments": list(by_number.values()), "events": entries})
        return
    for event in entries:
        deployment = by_number.get(event.get("deployment", 0), {})
        until = ""
        if event["action"] in ("deploy", "rollback"):
            until = "  active" if deployment["active"] else f"  until {deployment['ended_at']}"
            until += "  FORCED" if deployment["forced"] else ""
            until += "  WORSE, ACCEPTED" if event.get("accepted_worse") else ""
        what = _describe(event, deployment)
        click.echo(f"{event['at']}  {event['action']}  {what}{until}  by {event['actor']}: {event['reason'] or '-'}")


def _event(event: "EventRecord") -> dict[str, Any]:
    return {
        "at": event.at.isoformat(timespec="seconds"),
        "actor": event.actor,
        "action": event.action,
        "reason": event.reason,
        **event.detail,
    }


def _describe(event: dict[str, Any], deployment: dict[str, Any]) -> str:
    """What an event changed, from what to what."""
    action = event["action"]
    if action in ("deploy", "rollback"):
        before = event["replaced_head"]
        source = "reference" if deployment["checkpoint"] is None else f"checkpoint {deployment['checkpoint']}"
        replaced = "none" if before is None else f"head {before}"
        return (
            f"{event['alias']}: {replaced} -> head {event['head']} "
            f"(version {deployment['contingency_version']}, from {source})"
        )
    if action == "retire":
        return f"{event['alias']}: head {event['head']} -> none"
    if action == "distill":
        source = event["source"]
        if event.get("checkpoint") is not None:
            source = f"checkpoint {event['checkpoint']}"
        return f"head {event['head']} (version {event['version']}) from {source}"
    if action == "register":
        return f"version {event['version']} ({event['sha256'][:12]})"
    if action == "checkpoint":
        parent = "" if event["parent"] is None else f", parent {event['parent']}"
        return (
            f"{event['checkpoint']} ({event['model'] or event['kind']}, {event['members']} "
            f"member{'s' if event['members'] != 1 else ''}{parent})"
        )
    return ""
