"""The command that runs the paper's tables and figures and writes the report."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import executor_options, json_option, registry_options
from zoo.commands.output import print_json
from zoo.commands.train import send_to_mlflow

if TYPE_CHECKING:
    from zoo.paper.run import Progress

DIGITS = 6  # significant ones of a stored number, enough for microseconds of a CCT
STORED = (  # what is printed of a stored number
    "entry", "table_name", "row_label", "quantity", "unit", "value", "std", "count", "paper", "paper_std", "budget",
    "seeds", "code_version", "group_digest",
)  # fmt: skip


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Seeds 0, 1, ... of each.")
@click.option(
    "--budget",
    type=click.Choice(["quick", "standard", "paper"]),
    default="quick",
    show_default=True,
    help="How long to train and how much to measure: minutes, hours, days.",
)
@click.option(
    "--resume/--fresh", default=True, show_default=True, help="Keep what earlier runs have done, or do it again."
)
@click.option("--no-train", is_flag=True, help="Train nothing: measure what is trained, and write the report.")
@click.option("--no-run", is_flag=True, help="Run nothing: write the report from what there is.")
@click.option("--stored", is_flag=True, help="Run nothing: print the newest numbers in the registry.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder of the report; entries that are not named keep their sections.",
)
@click.option("--mlflow/--no-mlflow", default=True, show_default=True, help="Send the runs to MLflow at the end.")
@executor_options
@registry_options
@json_option
def benchmark(
    names: tuple[str, ...],
    seeds: int,
    budget: str,
    resume: bool,
    no_train: bool,
    no_run: bool,
    stored: bool,
    output: Path,
    mlflow: bool,
    jobs: int | None,
    cluster: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Run benchmarks NAMES, or all, and write the report; without a name, list them.

    Trainings that several entries need are done once. Interrupted at any moment, the same command continues and
    repeats nothing that was done. The trainings have a home of their own, 'benchmarks' in --home, so
    that a hurried one never becomes the default of a contingency. Every number is stored in the registry there.
    """
    from zoo.paper import NAMES, load_benchmark

    own_home = Path(home) / "benchmarks"
    chosen = list(NAMES) if "all" in names or not names else list(dict.fromkeys(names))
    if stored:
        for name in chosen:
            load_benchmark(name)  # an unknown one is refused by name
        _print_stored(own_home, registry, chosen, bool(names) and "all" not in names, as_json)
        return
    if not names:
        entries = [load_benchmark(name) for name in NAMES]
        if as_json:
            print_json([{"name": e.name, "title": e.title, "source": e.source} for e in entries])
            return
        for entry in entries:
            click.echo(f"{entry.name:22s} {entry.title} ({entry.source})")
        return

    from contingencies.errors import ZooError
    from zoo.paper.budgets import budget_of
    from zoo.paper.entry import Setting
    from zoo.paper.report import circumstances, write_section
    from zoo.paper.run import run_entry
    from zoo.work.executor import make_executor

    entries = [load_benchmark(name) for name in chosen]
    setting = Setting(budget_of(budget), tuple(range(seeds)))
    executor = None if no_run else make_executor(jobs, cluster)
    made: list[dict[str, Any]] = []
    for position, entry in enumerate(entries, 1):
        click.echo(f"[{position}/{len(entries)}] {entry.name}: {entry.title}", err=True)
        outcome = run_entry(entry, setting, own_home, registry, executor, _tell, not resume, not no_train)
        section = write_section(output, entry, outcome.presentation, circumstances(setting), outcome.failures)
        rows = sum(len(table.rows) for table in section.tables)
        made.append({"name": entry.name, "rows": rows, "done_now": outcome.fresh, "failures": list(outcome.failures)})
    if not no_run:
        send_to_mlflow(str(own_home), registry, mlflow)
    failed = sum(len(each["failures"]) for each in made)
    if as_json:
        print_json({"budget": budget, "seeds": seeds, "report": str(output / "index.html"), "entries": made})
    else:
        for each in made:
            problems = f", {len(each['failures'])} failed" if each["failures"] else ""
            click.echo(f"{each['name']:22s} {each['rows']} rows, {each['done_now']} pieces of work done now{problems}")
        click.echo(f"report: {output / 'index.html'}, {output / 'README.md'}")
    if failed:
        raise ZooError(
            f"{failed} pieces of work failed and are named in the report; the same command tries them again."
        )


def _print_stored(home: Path, registry: str | None, names: list[str], all_wanted: bool, as_json: bool) -> None:
    """Print what the registry holds; with `all_wanted`, an entry without numbers is an error."""
    from contingencies.errors import NotFoundError
    from registry.home import Home
    from registry.store.benchmarks import newest_numbers
    from zoo.paper.report import ours, paper
    from zoo.paper.tables import Cell

    rows = []
    with suppress(NotFoundError), Home.open(home, registry, create=False) as opened:  # no registry, no numbers
        rows = newest_numbers(opened.database, names)
    found = {row.entry for row in rows}
    missing = [name for name in names if name not in found]
    if missing and (all_wanted or not found):
        raise NotFoundError(f"no numbers of {missing[0]} are stored; 'cct-zoo benchmark {missing[0]}' finds them.")
    rows.sort(key=lambda row: names.index(row.entry))
    if as_json:
        print_json(
            [{name: getattr(row, name) for name in STORED} | {"created_at": row.created_at.isoformat()} for row in rows]
        )
        return
    shown = None
    for row in rows:
        if shown != row.group_digest:
            shown = row.group_digest
            seeds = f"{row.seeds} seed{'s' if row.seeds > 1 else ''}"
            click.echo(
                f"{row.entry}  budget {row.budget}, {seeds}, version {row.code_version}, "
                f"{row.created_at:%Y-%m-%d %H:%M} UTC, group {row.group_digest[:12]}"
            )
        cell = Cell(row.value, row.std, row.paper, row.paper_std)
        published = "" if cell.paper is None else f"  paper {paper(cell, DIGITS)}"
        click.echo(
            f"  {row.table_name}  {row.row_label}  {row.quantity}: {ours(cell, DIGITS)} {row.unit}".rstrip() + published
        )


def _tell(progress: "Progress") -> None:
    outcome = f"failed: {progress.error}" if progress.error else "done" if progress.fresh else "done before"
    click.echo(
        f"  {progress.entry} {progress.stage} {progress.done}/{progress.total}  {progress.what}: {outcome}", err=True
    )
