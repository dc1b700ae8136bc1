"""The command that asks deployed heads; it imports neither torch nor pandapower nor mlflow."""

from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import counted, csv_text
from zoo.commands.options import (
    alias_option,
    alpha_option,
    csv_option,
    json_option,
    parse_points,
    parse_severities,
    points_option,
    registry_options,
    required_option,
)
from zoo.commands.output import check_csv, print_json, write_csv

if TYPE_CHECKING:
    from registry.home import Home
    from registry.query import Registry

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
    "strict_severities",
)


@click.command(epilog="Example: cct-zoo cct ieee30-line-3-4-restore --alpha 0.93")
@click.argument("names", nargs=-1, required=True)
@alpha_option(required=True)
@points_option
@alias_option
@required_option
@csv_option("one row per answer")
@registry_options
@json_option
def cct(
    names: tuple[str, ...],
    alphas: tuple[str, ...],
    at: tuple[str, ...],
    alias: str,
    required_ms: float | None,
    csv_file: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """The critical clearing time of contingencies NAMES, by their deployed heads.

    The CCT is an instant on the simulation clock; the duration is how long the fault may last. With a required time,
    given here or set in the registry, each answer says whether protection is fast enough. Of several
    NAMES, one without a deployed head has the status no-head and the exit code is 3; the others are answered. So it
    is 3 where a severity or condition is out of a head's domain, unless --json or --csv tell the status.
    """
    from contingencies.errors import NotFoundError, Problems
    from registry.query import Registry

    check_csv(csv_file, as_json)
    severities, points = parse_severities(alphas), parse_points(at)
    answers: list[dict[str, Any]] = []
    newer: dict[str, int | None] = {}
    silent = Problems()  # names that nobody answers for
    with Registry.open(home, registry) as opened:
        for name in names:
            try:
                answers += [_answer(opened, name, alpha, alias, given) for given in points for alpha in severities]
                newer[name] = _newer_version(opened, name, answers)
            except NotFoundError as error:
                if len(names) == 1:
                    raise
                silent.found.append(error)
                nothing = dict.fromkeys(FIELDS) | {"contingency": name, "status": "no-head"}
                answers += [nothing | {"alpha": alpha} | _at(given) for given in points for alpha in severities]
        _judged(opened.home, answers, required_ms)
    for name, version in newer.items():
        if version:
            click.echo(f"Note: {name} version {version} is registered, but an older version's head answers.", err=True)
    columns, rows = _table(answers)
    printed = csv_file is not None and write_csv(csv_file, csv_text(columns, rows))
    if as_json:
        print_json(answers[0] if len(answers) == 1 else answers)
    elif not printed:
        for answer in answers:
            click.echo(_line(answer))
    silent.raise_any()
    if not (as_json or csv_file) and any("domain" in row for row in answers):
        raise click.exceptions.Exit(NotFoundError.exit_code)  # whoever reads no status reads the exit code


def _answer(registry: "Registry", name: str, alpha: float, alias: str, given: dict[str, float]) -> dict[str, Any]:
    """One answer; over conditions with its whole operating point, and out of the domain with what that is."""
    from espinn_moe.condition_head import ConditionHead

    a = registry.cct(name, alpha, alias, **given)
    values = (name, alpha, a.status, a.cct, a.duration, a.error_bound, a.head, a.checkpoint)
    answer: dict[str, Any] = dict(zip(FIELDS, (*values, a.contingency_version, a.strict_severities), strict=True))
    head = registry.deployed(name, alias).head
    axes = head.axes if isinstance(head, ConditionHead) else ()
    if isinstance(head, ConditionHead):
        answer |= _at(dict(zip((axis.name for axis in axes), head.values(given, name), strict=True)))
    if a.status == "out-of-domain":
        answer["domain"] = registry.domain(name, alias)
    return answer


def _at(given: dict[str, float]) -> dict[str, Any]:
    return {"at": given} if given else {}


def _table(answers: list[dict[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows; those of required times and conditions only where there are any."""
    judged = any("verdict" in answer for answer in answers)
    conditions = dict.fromkeys(name for answer in answers for name in answer.get("at", {}))
    columns = [*FIELDS, *(("required_s", "verdict", "margin_s") if judged else ())]
    rows = [
        {key: value for key, value in answer.items() if key in columns}
        | {f"at_{name}": value for name, value in answer.get("at", {}).items()}
        for answer in answers
    ]
    return [*columns, *(f"at_{name}" for name in conditions)], rows


def _newer_version(registry: "Registry", name: str, answers: list[dict[str, Any]]) -> int | None:
    """The registered version that is newer than the one that answered, if any."""
    from registry.store import contingencies as store

    if "@" in name:
        return None
    answered = next(answer["contingency_version"] for answer in answers if answer["contingency"] == name)
    latest = store.find(registry.home.database, name).version
    return latest if latest > answered else None


def _judged(home: "Home", answers: list[dict[str, Any]], required_ms: float | None) -> None:
    """Add what the required time makes of each answer: as given, or else as the registry has it for the name."""
    from contingencies.protection import judge
    from registry.store import contingencies as store
    from registry.store.required_times import required_times

    stored = required_times(home.database) if required_ms is None else {}
    for answer in answers:
        name = answer["contingency"].partition("@")[0]
        required = (
            1e-3 * required_ms if required_ms is not None else (stored[name].required_s if name in stored else None)
        )
        if required is None:
            continue
        if answer["head"] is None:
            answer |= {"required_s": required, "verdict": None, "margin_s": None}
            continue
        row = store.find(home.database, f"{name}@{answer['contingency_version']}")
        window, bound = home.contingency(row).spec.window, answer["error_bound_s"]
        verdict = judge(answer["status"], answer["duration_s"], window, required, bound)
        answer |= {"required_s": required, "verdict": verdict.outcome, "margin_s": verdict.margin}


def _verdict_words(answer: dict[str, Any]) -> str:
    if answer.get("verdict") is None:
        return ""
    margin = "" if answer["margin_s"] is None else f" by {abs(1e3 * answer['margin_s']):.1f} ms"
    after = " after the error bound" if answer["duration_s"] is not None and answer["error_bound_s"] else ""
    return f"  {answer['verdict']}{margin}{after}: {1e3 * answer['required_s']:g} ms required"


def _line(answer: dict[str, Any]) -> str:
    at = ", ".join(f"{name}={value:g}" for name, value in answer.get("at", {}).items())
    start = f"{answer['contingency']}  alpha {answer['alpha']:g}  {f'at {at}  ' if at else ''}"
    if answer["head"] is None:
        return f"{start}{answer['status']}"
    from registry.store.replacing import FEW_STRICT

    source = "reference" if answer["checkpoint"] is None else f"checkpoint {answer['checkpoint']}"
    measured = answer["strict_severities"]
    few = counted(measured, "strict severity", "strict severities")
    seldom = f", measured at {few} only" if measured < FEW_STRICT else ""
    seldom = seldom if measured else ", never measured against the strict ODE"
    origin = f"[head {answer['head']} from {source}, version {answer['contingency_version']}{seldom}]"
    if answer["status"] != "finite":
        ranges = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in answer.get("domain", {}).items())
        known = f" (the domain is {ranges})" if ranges else ""
        return f"{start}{answer['status']}{known}{_verdict_words(answer)}  {origin}"
    bound = answer["error_bound_s"]
    within = "" if bound is None else f", 95 % within +- {1e3 * bound:.3g} ms"
    lasting = f"fault may last {1e3 * answer['duration_s']:.3f} ms{within} (CCT {answer['cct_s']:.6f} s)"
    return f"{start}{lasting}{_verdict_words(answer)}  {origin}"
