"""Options that mean the same in every command, and what their values stand for."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

MAX_SEVERITIES = 1_000_000

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LARGEST = 1e12  # no quantity of a grid, and no duration, comes near it


class Finite(click.FloatRange):
    """A number that is finite and lies in a range; NaN, which passes every comparison, is refused."""

    def __init__(self, low: float = -LARGEST, high: float = LARGEST, above: bool = False) -> None:
        super().__init__(low, high, min_open=above)  # above: the lower end is left out

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))

    def _describe_range(self) -> str:
        return "finite" if self.min == -LARGEST else super()._describe_range()


FINITE = Finite()
FRACTION = Finite(0.0, 1.0, above=True)
ROW_NUMBER = click.IntRange(1, 2**31 - 1)  # what both databases can number
JOBS = click.IntRange(1, 10_000)

file_option = click.Path(dir_okay=False, path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def csv_option(what: str) -> Decorator:
    """--csv FILE; the command gets `csv_file` and checks it before its work and writes it after."""
    return click.option(
        "--csv",
        "csv_file",
        metavar="FILE",
        type=click.Path(dir_okay=False, allow_dash=True),
        help=f"Write {what} as CSV; '-' prints it instead of text.",
    )


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; they stand in help in the order given."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# --- where things are -------------------------------------------------------------------------

registry_options = together(
    click.option(
        "--home",
        metavar="FOLDER",
        envvar="CCT_ZOO_HOME",
        default=".cct-zoo",
        show_default=True,
        help="The zoo home: registry, artifacts, runs (also CCT_ZOO_HOME).",
    ),
    click.option(
        "--registry",
        metavar="URL",
        envvar="CCT_ZOO_REGISTRY",
        help="A PostgreSQL registry instead of the SQLite file in the home (also CCT_ZOO_REGISTRY).",
    ),
)
executor_options = together(
    click.option("--jobs", type=JOBS, help="Worker processes of one thread each.  [default: one per core]"),
    click.option(
        "--cluster", metavar="URL", help="Scheduler of a Dask cluster, as tcp://host:8786; its workers see the home."
    ),
)
family_options = together(
    click.option(
        "--contingency",
        "names",
        metavar="NAME",
        multiple=True,
        help="A member; repeat it for each. Default: all registered contingencies of the one system there is.",
    ),
    click.option("--system", metavar="NAME", help="All registered contingencies of this system."),
)

# --- training ---------------------------------------------------------------------------------


def data_options(fraction: str = "Part of the training scenarios.") -> Decorator:
    """--fraction and --seed."""
    return together(
        click.option("--fraction", type=FRACTION, default=1.0, show_default=True, help=fraction),
        click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Weights and data."),
    )


def budget_options(
    budget: str = "How long to train; docs/surrogates.md has the minutes.",
    minutes: str = "Train for so long, by the clock on the wall, instead.",
    steps: str = "Train for so many steps instead; such a run is reproducible.",
) -> Decorator:
    """--budget, --minutes and --steps, with the help that suits the command."""
    return together(
        click.option(
            "--budget",
            type=click.Choice(["quick", "standard", "paper"]),
            default="standard",
            show_default=True,
            help=budget,
        ),
        click.option("--minutes", type=FINITE, help=minutes),
        click.option("--steps", type=click.IntRange(1, 10**9), help=steps),
    )


resume_option = click.option(
    "--resume/--fresh",
    default=True,
    show_default=True,
    help="Continue an interrupted training of the same request, or start anew.",
)
residual_option = click.option(
    "--residual",
    type=click.Choice(["pointwise", "shooting"]),
    help="How a one-shot model is held to the swing equation: at random instants, as in the paper, or by following its "
    "own event states in a second stage.  [default: shooting for es-pinn and moe, else pointwise]",
)
training_options = together(  # of every command that only trains
    data_options(),
    budget_options(),
    click.option(
        "--focus/--no-focus",
        default=True,
        show_default=True,
        help="Learn only what decides stability: up to a separation of 1.5 pi. The paper's protocol is --no-focus.",
    ),
    residual_option,
    click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Default: the model's own."),
    resume_option,
    click.option("--mlflow/--no-mlflow", default=True, show_default=True, help="Send the run to MLflow at the end."),
    registry_options,
    json_option,
)

# --- deployments ------------------------------------------------------------------------------

alias_option = click.option("--alias", default="production", show_default=True, help="Which deployment of a name.")
gate_options = together(
    click.option(
        "--max-mean-ms", type=Finite(0, 1e9), default=2.0, show_default=True, help="Gate: largest mean error."
    ),
    click.option("--max-ms", type=Finite(0, 1e9), default=10.0, show_default=True, help="Gate: largest error."),
)

# --- protection -------------------------------------------------------------------------------

required_option = click.option(
    "--required-ms",
    type=Finite(0, 1e6, above=True),
    help="Time that protection needs, ms: adds pass or fail and the margin to it.",
)

# --- severities -------------------------------------------------------------------------------


def alpha_option(default: str = "", required: bool = False) -> Decorator:
    """--alpha, several times, as `parse_severities` reads it; the command gets `alphas`."""
    return click.option(
        "--alpha",
        "alphas",
        multiple=True,
        required=required,
        metavar="A|LO:HI:STEP",
        help="Severity, or a range with both ends; may be given several times."
        + (f"  [default: {default}]" if default else ""),
    )


at_option = click.option(
    "--at",
    "at",
    multiple=True,
    metavar="NAME=VALUE",
    help="A condition, as load=1.1 or generation.2=35; one option each. Default: the case's own value.",
)

points_option = click.option(
    "--at",
    "at",
    multiple=True,
    metavar="NAME=V|LO:HI:STEP",
    help="A condition or a range of it, as load=1.1 or generation.2=30:50:5; one option each, ranges in every "
    "combination. Default: the case's own value.",
)


def parse_severities(texts: Iterable[str]) -> list[float]:
    """`0.9`, or `0.5:1.0:0.01` for a range with both ends."""
    from contingencies.errors import UsageError

    severities: list[float] = []
    for entry in texts:
        severities += _numbers(entry, f"--alpha {entry[:60]!r}")
        if len(severities) > MAX_SEVERITIES:
            raise UsageError(f"--alpha {entry[:60]!r} has more than {MAX_SEVERITIES} severities; use a larger step.")
    return severities


def parse_points(texts: Iterable[str]) -> list[dict[str, float]]:
    """Operating points of `load=1.1` or `load=0.8:1.2:0.1`, each name once: every combination of them."""
    from itertools import product

    from contingencies.errors import UsageError

    given: dict[str, list[float]] = {}
    total = 1
    for text in texts:
        name, sign, numbers = text.partition("=")
        name = name.strip()
        if not sign or not name:
            raise UsageError(f"--at {text[:60]!r} is not NAME=NUMBER; write a condition such as load=1.1.")
        if name in given:
            raise UsageError(f"--at names {name} twice; give each condition once.")
        given[name] = _numbers(numbers, f"--at {text[:60]!r}")
        total *= len(given[name])
        if total > MAX_SEVERITIES:
            raise UsageError(f"--at {text[:60]!r} makes more than {MAX_SEVERITIES} points; use a larger step.")
    return [dict(zip(given, values, strict=True)) for values in product(*given.values())]


def _numbers(entry: str, label: str) -> list[float]:
    """A number, or LO:HI:STEP with both ends."""
    from contingencies.errors import UsageError

    try:
        numbers = [float(part) for part in entry.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
        raise UsageError(f"{label} is neither a finite number nor LO:HI:STEP.")
    if len(numbers) == 1:
        return numbers
    start, end, step = numbers
    if step <= 0 or end < start:
        raise UsageError(f"{label} is an empty range; use LO <= HI and STEP > 0.")
    count = (end - start) / step
    if count >= MAX_SEVERITIES:
        raise UsageError(f"{label} has more than {MAX_SEVERITIES} severities or values; use a larger step.")
    return [round(start + k * step, 12) for k in range(math.floor(count + 1e-9) + 1)]


accept_worse_option = click.option(
    "--accept-worse", is_flag=True, help="Deploy although the head in place is better; it is recorded."
)
