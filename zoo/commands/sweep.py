"""The command that runs the data-fraction schedule."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import budget_options, executor_options, family_options, json_option, registry_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from zoo.work.jobs import Done


def _numbers(text: str, kind: Any, what: str) -> tuple[Any, ...]:
    from contingencies.errors import UsageError

    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--{what} {text[:60]!r} is not a list of numbers; separate them by commas.") from None


@click.command(epilog="Example: cct-zoo sweep --system ieee30 --fractions 0.1,1.0 --seeds 1 --output sweep")
@click.option("--fractions", default="0.1,0.2,0.5,1.0", show_default=True, help="Parts of the training scenarios.")
@click.option(
    "--methods",
    default="moe,separate",
    show_default=True,
    help="Of moe, separate, moe-chained and separate-chained, separated by commas.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Seeds 0, 1, ... of each.")
@family_options
@budget_options(
    "Training time of all members together, the same for every method.",
    "So many minutes for all members together instead.",
    "So many steps for every training instead: equal epochs, not equal time.",
)
@click.option(
    "--focus/--no-focus",
    default=None,
    help="Learn only what decides stability.  [default: chained methods do, the paper's do not]",
)
@click.option(
    "--residual",
    type=click.Choice(["pointwise", "shooting"]),
    default="pointwise",
    show_default=True,
    help="How moe and separate are held to the swing equation; the paper's way is pointwise.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("sweep"),
    show_default=True,
    help="Folder for results, table and figure; what it holds is not done again.",
)
@executor_options
@registry_options
@json_option
def sweep(
    fractions: str,
    methods: str,
    seeds: int,
    names: tuple[str, ...],
    system: str | None,
    output: Path,
    jobs: int | None,
    cluster: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare one model for a family with separate models, over data fractions and seeds.

    Every method sees the same scenarios. Interrupted at any moment, the same command resumes. The output folder gets
    sweep.txt, sweep.csv, sweep.json and sweep.png.
    """
    from contingencies.errors import ZooError
    from contingencies.files import write_atomically
    from registry.home import Home
    from zoo.plots import save_figure
    from zoo.studies.sweep import SweepPlan, run_sweep
    from zoo.studies.sweep_table import plot_sweep, summarise, table_csv, table_text
    from zoo.training.series import members_of
    from zoo.work.batch import failures
    from zoo.work.executor import make_executor

    plan = SweepPlan(tuple(methods.split(",")), _numbers(fractions, float, "fractions"), tuple(range(seeds)), **options)
    executor = make_executor(jobs, cluster)
    with Home.open(home, registry) as opened:
        members = opened.contingencies(members_of(opened, names, system))
    with progress("sweep", resumable=True) as display:

        def hear(item: "Done", count: int, total: int) -> None:
            display.say(_line(item, count, total))
            display("trainings", count, total)

        rows, done = run_sweep(plan, members, executor, output, hear, display.say)
    failed = failures(done)
    for line in failed:
        click.echo(f"failed: {line}", err=True)
    if not rows:
        raise ZooError("no method was completed; the failures are above.")
    summaries = summarise(rows)
    content = {"members": [m.name for m in members], "plan": asdict(plan), "rows": [asdict(row) for row in rows],
               "summary": [asdict(entry) for entry in summaries], "failed": failed}  # fmt: skip
    table = table_text(summaries)
    write_atomically(output / "sweep.txt", f"{table}\n".encode())
    write_atomically(output / "sweep.csv", table_csv(rows).encode())
    write_atomically(output / "sweep.json", json.dumps(content, indent=1, allow_nan=False).encode())
    save_figure(
        plot_sweep(summaries, f"{len(members)} contingencies of {members[0].system.name}"), output / "sweep.png"
    )
    if as_json:
        print_json(content)
    else:
        click.echo(table)
        click.echo(f"table and figure: {output / 'sweep.txt'}, {output / 'sweep.png'}")
    if failed:
        raise ZooError(f"{len(failed)} of {len(done)} trainings failed; the same command tries them again.")


def _line(item: "Done", count: int, total: int) -> str:
    """What became of one training."""
    outcome = f"failed: {item.error}"
    if item.result is not None:
        outcome = f"{item.result['steps']} steps in {item.result['training_s']:.0f} s"
        outcome += "" if item.fresh else " (done before)"
    return f"{count}/{total}  {item.job.label}: {outcome}"
