"""Commands for the tokens of the service: create, list, revoke."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import json_option, registry_options
from zoo.commands.output import print_json

if TYPE_CHECKING:
    from registry.store.tokens import Token


@click.group()
def token() -> None:
    """Make, list and revoke the tokens of 'cct-zoo serve'."""


@token.command(epilog="Example: cct-zoo token create control-room --role read")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["read", "deploy", "admin"]),
    required=True,
    help="read: ask and look; deploy: also change what answers; admin: everything.",
)
@click.option("--days", type=float, default=90.0, show_default=True, help="How long it is valid.")
@registry_options
@json_option
def create(name: str, role: str, days: float, home: str, registry: str | None, as_json: bool) -> None:
    """Make a token called NAME; its secret is shown once and stored nowhere."""
    from registry.home import Home
    from registry.store import tokens

    with Home.open(home, registry, create=False) as opened:
        made, secret = tokens.create(opened.database, name, role, days)
    if as_json:
        print_json(_report(made) | {"token": secret})
        return
    click.echo(f"{made.name}  {made.role}  until {_day(made)}; write it down, it is not shown again:", err=True)
    click.echo(secret)


@token.command("list", epilog="Example: cct-zoo token list")
@registry_options
@json_option
def list_tokens(home: str, registry: str | None, as_json: bool) -> None:
    """All tokens with their roles, but without their secrets."""
    from registry.home import Home
    from registry.store import tokens

    with Home.open(home, registry, create=False) as opened:
        found = tokens.tokens(opened.database)
    if as_json:
        print_json([_report(one) for one in found])
        return
    for one in found:
        click.echo(f"{one.name}  {one.role}  {one.state}  until {_day(one)}")


@token.command(epilog="Example: cct-zoo token revoke control-room")
@click.argument("name")
@registry_options
@json_option
def revoke(name: str, home: str, registry: str | None, as_json: bool) -> None:
    """End the token NAME at once, for good."""
    from registry.home import Home
    from registry.store import tokens

    with Home.open(home, registry, create=False) as opened:
        ended = tokens.revoke(opened.database, name)
    if as_json:
        print_json(_report(ended))
    else:
        click.echo(f"{ended.name}  {ended.role}  revoked")


def _report(one: "Token") -> dict[str, Any]:
    return {
        "name": one.name,
        "role": one.role,
        "state": one.state,
        "created_at": one.created_at.isoformat(timespec="seconds"),
        "expires_at": one.expires_at.isoformat(timespec="seconds"),
    }


def _day(one: "Token") -> str:
    return one.expires_at.strftime("%Y-%m-%d")
