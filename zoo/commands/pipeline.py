"""The command that goes from contingencies to deployed heads in one step."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.common import PROGRESS_INTERVAL_S, json_option, print_json, registry_options

if TYPE_CHECKING:
    from registry.home import Home
    from registry.schema import ContingencyRow
    from zoo.pipeline import Example, PipelineResult

BAR = 24  # characters
WORDS = {"train": "training", "distill": "boundaries and heads"}


def executor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where many tasks run."""
    command = click.option(
        "--cluster", metavar="URL", help="Scheduler of a Dask cluster, as tcp://host:8786; its workers see the home."
    )(command)
    return click.option(
        "--jobs", type=click.IntRange(min=1), help="Worker processes of one thread each.  [default: one per core]"
    )(command)


@contextmanager
def stages() -> Iterator[Callable[[str, float, str], None]]:
    """Progress through named stages, on standard error: a bar on a terminal, else one line per interval."""
    terminal = sys.stderr.isatty()
    last, current = 0.0, ""

    def report(stage: str, done: float, words: str) -> None:
        nonlocal last, current
        label = WORDS.get(stage, stage)
        if terminal:
            bar = "#" * int(BAR * done) + "-" * (BAR - int(BAR * done))
            new_line = "\n" if current and stage != current else ""
            click.echo(f"{new_line}\r\x1b[K{label} [{bar}] {words}", err=True, nl=False)
        elif stage != current or time.monotonic() - last >= PROGRESS_INTERVAL_S or done >= 1.0:
            last = time.monotonic()
            click.echo(f"{label}: {100 * done:.0f}%  {words}", err=True)
        current = stage

    try:
        yield report
    finally:
        if terminal and current:
            click.echo(err=True)


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--system", metavar="NAME", help="A whole system: its registered contingencies, or a family made by --fault."
)
@click.option("--fault", type=click.Choice(["line", "bus", "mechanical"]), help="Make the family: kind of fault.")
@click.option(
    "--clearing",
    type=click.Choice(["remove-line", "restore", "trip-feeders", "restore-mechanical"]),
    help="Make the family: how every member is cleared.",
)
@click.option("--model", help="A surrogate.  [default: es-pinn-chained for one contingency, moe-chained for several]")
@click.option("--fraction", type=float, default=1.0, show_default=True, help="Part of the training scenarios.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Weights and data.")
@click.option(
    "--budget",
    type=click.Choice(["quick", "standard", "paper"]),
    default="standard",
    show_default=True,
    help="How long to train.",
)
@click.option("--minutes", type=float, help="Train for so long instead.")
@click.option("--steps", type=int, help="Train for so many steps instead; such a run is reproducible.")
@click.option(
    "--strict",
    type=click.IntRange(1, 1000),
    default=6,
    show_default=True,
    help="Severities of each head measured against the strict ODE (seconds each).",
)
@click.option("--max-mean-ms", type=click.FloatRange(0), default=2.0, show_default=True, help="Gate: mean error.")
@click.option("--max-ms", type=click.FloatRange(0), default=10.0, show_default=True, help="Gate: maximum error.")
@click.option("--alias", default="production", show_default=True, help="Deploy under this alias.")
@click.option("--reason", default="pipeline", show_default=True, help="Why, for the record.")
@click.option("--fresh", is_flag=True, help="Train and distill anew what an earlier run has done.")
@executor_options
@registry_options
@json_option
def pipeline(
    names: tuple[str, ...],
    system: str | None,
    fault: Any,
    clearing: str | None,
    model: str | None,
    max_mean_ms: float,
    max_ms: float,
    jobs: int | None,
    cluster: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """From contingencies NAMES, or a whole family, to deployed heads.

    One training; then, for every member in parallel, boundary, head, measurement against the strict ODE, gate and
    deployment. With --system, --fault and --clearing the family is generated and registered first. Run
    again, the same command continues where it was interrupted. Exit code 6 when a head was refused.
    """
    import torch

    from contingencies.errors import GateError
    from registry.home import Home
    from registry.store.deployments import Gate
    from zoo.executor import make_executor
    from zoo.pipeline import example, run_pipeline
    from zoo.training import TrainingRequest

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    executor = make_executor(jobs, cluster)
    deployment = {key: options.pop(key) for key in ("strict", "alias", "reason", "fresh")}
    with Home.open(home, registry) as opened:
        rows = _members(opened, names, system, fault, clearing)
        chosen = model or ("es-pinn-chained" if len(rows) == 1 else "moe-chained")
        with stages() as report:
            result = run_pipeline(
                opened, rows, TrainingRequest(model=chosen, **options), executor, url=registry,
                gate=Gate(mae_s=1e-3 * max_mean_ms, max_s=1e-3 * max_ms), report=report, **deployment,
            )  # fmt: skip
        by_name = {row.name: row for row in rows}
        telling = sorted(result.members, key=lambda member: member.status != "finite")  # one with a number, if any
        deployed = [by_name[member.contingency] for member in telling if member.outcome == "deployed"]
        shown = [
            example(opened.path, row, opened.contingency(row), url=registry, alias=deployment["alias"])
            for row in deployed[:1]
        ]
    if as_json:
        print_json(result.report() | {"examples": [vars(entry) for entry in shown]})
    else:
        _print(result, shown)
    refused = [member for member in result.members if member.outcome != "deployed"]
    if refused:
        raise GateError(f"{len(refused)} of {len(rows)} heads were not deployed; the reasons are above.")


def _members(
    home: "Home", names: tuple[str, ...], system: str | None, fault: Any, clearing: str | None
) -> "list[ContingencyRow]":
    from contingencies.errors import UsageError
    from zoo.family_training import members_of

    if bool(names) == bool(system):
        raise UsageError("name either contingencies or their --system.")
    if (fault is None) != (clearing is None):
        raise UsageError("--fault and --clearing make a family together; give both or neither.")
    if names:
        if fault is not None:
            raise UsageError("--fault and --clearing make a family of a --system; leave out the names.")
        return members_of(home, names)
    assert system is not None
    if fault is None:
        return members_of(home, (), system)
    return _generated(home, system, fault, clearing or "")


def _generated(home: "Home", system: str, fault: Any, clearing: str) -> "list[ContingencyRow]":
    from contingencies.errors import UsageError
    from contingencies.families import Recipe, generate_family
    from contingencies.library import load_system

    loaded = load_system(system)
    family = generate_family(loaded, Recipe(fault, clearing))
    if not family.members:
        raise UsageError(f"{system} has no place for {fault} faults cleared by {clearing}.")
    rows = [result.row for result in home.register(family.members)]
    click.echo(f"{len(rows)} contingencies registered; {len(family.left_out)} places left out", err=True)
    return rows


def milliseconds(seconds: float | None) -> str:
    """A time in ms, or a dash."""
    return "-" if seconds is None else f"{1e3 * seconds:.4f}"


def _print(result: "PipelineResult", examples: "Sequence[Example]") -> None:
    trained = f"trained in {result.training_s:.0f} s" if result.trained_now else "trained before"
    click.echo(f"checkpoint {result.checkpoint}  {result.model}  {result.parameters:,} parameters  {trained}")
    width = max(len("contingency"), *(len(member.contingency) for member in result.members))
    click.echo(f"{'contingency':{width}}  {'outcome':8}  {'status':14}  {'head':>5}  {'mean ms':>9}  {'max ms':>9}")
    for m in result.members:
        head = "-" if m.head is None else str(m.head)
        click.echo(
            f"{m.contingency:{width}}  {m.outcome:8}  {m.status:14}  {head:>5}  {milliseconds(m.strict_mae_s):>9}  "
            f"{milliseconds(m.strict_max_s):>9}" + (f"  {m.detail}" if m.detail else "")
        )
    passed = sum(member.outcome == "deployed" for member in result.members)
    censored = sum(member.outcome == "deployed" and member.status != "finite" for member in result.members)
    status_only = f", {censored} of them censored at every severity (status only, no number)" if censored else ""
    click.echo(f"{passed} of {len(result.members)} heads passed the gate and are deployed{status_only}")
    for entry in examples:
        click.echo(example_line(entry))


def example_line(entry: "Example") -> str:
    """A deployed answer beside the reference ODEs."""
    start = f"{entry.contingency}  alpha {entry.alpha:g}  "
    if entry.cct is None or entry.strict is None:
        return f"{start}head: {entry.status}  strict ODE: {entry.strict_status}"
    fast = "-" if entry.fast is None else f"{entry.fast:.6f} s"
    return (
        f"{start}head: CCT {entry.cct:.6f} s  strict ODE: {entry.strict:.6f} s  fast ODE: {fast}  "
        f"error {milliseconds(entry.error)} ms"
    )
