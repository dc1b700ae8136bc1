"""The command that asks deployed heads; it imports neither torch nor pandapower nor mlflow."""

import csv
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.common import json_option, print_json, registry_options

if TYPE_CHECKING:
    from registry.query import Registry

MAX_SEVERITIES = 1_000_000
FIELDS = (
    "contingency",
    "alpha",
    "status",
    "cct_s",
    "duration_s",
    "error_bound_s",
    "head",
    "checkpoint",
    "contingency_version",
)


def parse_severities(texts: tuple[str, ...]) -> list[float]:
    """`0.9`, or `0.5:1.0:0.01` for a range with both ends."""
    from contingencies.errors import UsageError

    severities: list[float] = []
    for entry in texts:
        try:
            numbers = [float(part) for part in entry.split(":")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
            raise UsageError(f"--alpha {entry[:60]!r} is neither a finite number nor START:END:STEP.")
        if len(numbers) == 1:
            severities.append(numbers[0])
            continue
        start, end, step = numbers
        if step <= 0 or end < start:
            raise UsageError(f"--alpha {entry[:60]!r} is an empty range; use START <= END and STEP > 0.")
        count = (end - start) / step
        if count + len(severities) >= MAX_SEVERITIES:
            raise UsageError(f"--alpha {entry[:60]!r} has more than {MAX_SEVERITIES} severities; use a larger step.")
        severities += [round(start + k * step, 12) for k in range(math.floor(count + 1e-9) + 1)]
    return severities


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--alpha", "alphas", multiple=True, required=True, help="Severity, or START:END:STEP; may be given several times."
)
@click.option("--alias", default="production", show_default=True, help="Which deployment answers.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@registry_options
@json_option
def cct(
    names: tuple[str, ...],
    alphas: tuple[str, ...],
    alias: str,
    as_csv: bool,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """The critical clearing time of contingencies NAMES, by their deployed heads.

    The CCT is an instant on the simulation clock; the duration is how long the fault may last.
    """
    from registry.query import Registry

    severities = parse_severities(alphas)
    answers: list[dict[str, Any]] = []
    with Registry.open(home, registry) as opened:
        for name in names:
            for alpha in severities:
                a = opened.cct(name, alpha, alias)
                answer = (name, alpha, a.status, a.cct, a.duration, a.error_bound, a.head, a.checkpoint)
                answers.append(dict(zip(FIELDS, (*answer, a.contingency_version), strict=True)))
        newer = {name: _newer_version(opened, name, answers) for name in names}
    for name, version in newer.items():
        if version:
            click.echo(f"Note: {name} version {version} is registered, but an older version's head answers.", err=True)
    if as_json:
        print_json(answers[0] if len(answers) == 1 else answers)
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(answers)
    else:
        for given in answers:
            click.echo(_line(given))


def _newer_version(registry: "Registry", name: str, answers: list[dict[str, Any]]) -> int | None:
    """The registered version that is newer than the one that answered, if any."""
    from registry.store import contingencies as store

    if "@" in name:
        return None
    answered = next(answer["contingency_version"] for answer in answers if answer["contingency"] == name)
    latest = store.find(registry.home.database, name).version
    return latest if latest > answered else None


def _line(answer: dict[str, Any]) -> str:
    source = "reference" if answer["checkpoint"] is None else f"checkpoint {answer['checkpoint']}"
    origin = f"[head {answer['head']} from {source}, version {answer['contingency_version']}]"
    start = f"{answer['contingency']}  alpha {answer['alpha']:g}  "
    if answer["status"] != "finite":
        return f"{start}{answer['status']}  {origin}"
    bound = answer["error_bound_s"]
    within = "" if bound is None else f" +- {1e3 * bound:.3g} ms"
    return f"{start}CCT {answer['cct_s']:.6f} s, {answer['duration_s']:.6f} s after the fault{within}  {origin}"
