"""The command that runs the paper's tables and figures and writes the report."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import executor_options, json_option, registry_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress
from zoo.commands.train import send_to_mlflow

if TYPE_CHECKING:
    from zoo.work.jobs import Done

DIGITS = 6  # significant ones of a stored number, enough for microseconds of a CCT
STORED = (  # what is printed of a stored number
    "entry", "table_name", "row_label", "quantity", "unit", "value", "std", "count", "paper", "paper_std", "budget",
    "seeds", "code_version", "group_digest",
)  # fmt: skip


@click.command(epilog="Example: cct-zoo benchmark case30-accuracy --budget quick")
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
@click.option(
    "--no-run", is_flag=True, help="Run nothing: write the report from what there is; without a name, its pages only."
)
@click.option("--stored", is_flag=True, help="Run nothing: print the newest numbers in the registry.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder of the report; entries that are not named keep their sections.",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="Folder of finished work, instead of the home's: what is in it is done, on whichever machine it was.",
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
    results: Path | None,
    mlflow: bool,
    jobs: int | None,
    cluster: str | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Run benchmarks NAMES, or all, and write the report; without a name, list them.

    Trainings that several entries need are done once. Interrupted at any moment, the same command resumes and
    repeats nothing that was done. The trainings have a home of their own, 'benchmarks' in --home, so
    that a hurried one never becomes the default of a contingency. Every number is stored in the registry there.
    """
    from contingencies.errors import UsageError
    from contingencies.tables import counted
    from zoo.paper import ENTRIES, NAMES, check_name, load_benchmark

    own_home = Path(home) / "benchmarks"
    if stored and (no_run or no_train):
        raise UsageError("--stored prints what the registry holds; leave out --no-run and --no-train beside it.")
    if stored and results is not None:
        raise UsageError("--stored prints what the registry holds, not a folder of results; leave out --results.")
    chosen = list(NAMES) if "all" in names or not names else list(dict.fromkeys(names))
    for name in chosen:
        check_name(name)
    if stored:
        _print_stored(own_home, registry, chosen, bool(names) and "all" not in names, as_json)
        return
    if not names and no_run:
        from zoo.paper.pages import write_pages

        count = write_pages(output)
        report = {"report": str(output / "index.html"), "entries": count}
        if as_json:
            print_json(report)
        else:
            entries = counted(count, "entry", "entries")
            click.echo(f"{entries}; report: {output / 'index.html'}, {output / 'README.md'}")
        return
    if not names:
        if as_json:
            print_json([{"name": name, **listed._asdict()} for name, listed in ENTRIES.items()])
            return
        for name, listed in ENTRIES.items():
            click.echo(f"{name:22s} {listed.title} ({listed.source})")
        return

    from contingencies.errors import NotFoundError, ZooError
    from zoo.paper.budgets import budget_of
    from zoo.paper.circumstances import circumstances
    from zoo.paper.entry import Setting
    from zoo.paper.jobs import Place
    from zoo.paper.pages import write_pages
    from zoo.paper.run import Conduct, run_entry
    from zoo.paper.sections import read_section, write_section
    from zoo.work.executor import make_executor

    loaded = [load_benchmark(name) for name in chosen]
    setting = Setting(budget_of(budget), tuple(range(seeds)))
    executor = None if no_run else make_executor(jobs, cluster)
    reports: list[dict[str, Any]] = []
    left_alone = False
    with progress("benchmark", resumable=True) as display:

        def hear(stage: str, item: "Done", count: int, total: int) -> None:
            outcome = f"failed: {item.error}" if item.error else "done" if item.fresh else "done before"
            display.say(f"  {stage} {count}/{total}  {item.job.label}: {outcome}")
            display("trainings and measurements", count, total)

        conduct = Conduct(Place(own_home, registry, results), executor, not resume, not no_train, hear, display.say)
        for position, entry in enumerate(loaded, 1):
            display.say(f"[{position}/{len(loaded)}] {entry.name}: {entry.title}")
            result = run_entry(entry, setting, conduct)
            earlier = read_section(output, entry.name)
            if not result.results and not result.failures:
                left = "no section is written" if earlier is None else "its section is left as it is"
                display.say(f"{entry.name}: nothing was done of it by this code; {left}.")
                continue
            missing = result.wanted - result.results
            if missing:
                display.say(f"{entry.name}: {missing} of {result.wanted} pieces of work are missing.")
            if earlier is not None and not result.fresh and result.results < earlier.results:
                display.say(
                    f"{entry.name}: its section rests on {earlier.results} results and is left as it is, because there "
                    f"are only {result.results} here; name another folder with --output to present these."
                )
                left_alone = True
                continue
            around = circumstances(setting, result.made)
            section = write_section(output, entry, result.presentation, around, result.failures, result.results)
            write_pages(output)
            rows = sum(len(table.rows) for table in section.tables)
            failures = list(result.failures)
            reports.append(
                {
                    "name": entry.name, "rows": rows, "done_now": result.fresh, "missing": missing,
                    "failures": failures,
                }
            )  # fmt: skip
    if not reports and not left_alone:
        raise NotFoundError(
            f"{str(conduct.place.results.folder)!r} has no results of {', '.join(chosen)} by this code; name another "
            "folder with --results, or leave out --no-run and --no-train."
        )
    if not no_run:
        send_to_mlflow(str(own_home), registry, mlflow)
    failed = sum(len(each["failures"]) for each in reports)
    if as_json:
        print_json({"budget": budget, "seeds": seeds, "report": str(output / "index.html"), "entries": reports})
    else:
        for each in reports:
            problems = f", {len(each['failures'])} failed" if each["failures"] else ""
            shown, work = counted(each["rows"], "row", "rows"), counted(each["done_now"], "piece", "pieces")
            lacking = f", {each['missing']} missing" if each["missing"] else ""
            click.echo(f"{each['name']:22s} {shown}, {work} of work done now{lacking}{problems}")
        click.echo(f"report: {output / 'index.html'}, {output / 'README.md'}")
    if failed:
        pieces = "1 piece of work failed and is" if failed == 1 else f"{failed} pieces of work failed and are"
        raise ZooError(f"{pieces} named in the report; the same command tries again.")


def _print_stored(home: Path, registry: str | None, names: list[str], all_wanted: bool, as_json: bool) -> None:
    """Print what the registry holds; with `all_wanted`, an entry without numbers is an error."""
    from contingencies.errors import NotFoundError
    from registry.home import Home
    from registry.store.benchmarks import newest_numbers
    from zoo.paper.formats import ours, paper
    from zoo.paper.tables import Cell

    rows = []
    with suppress(NotFoundError), Home.open(home, registry, create=False) as opened:  # no registry, no numbers
        rows = newest_numbers(opened.database, names)
    stored_entries = {row.entry for row in rows}
    missing = [name for name in names if name not in stored_entries]
    if missing and (all_wanted or not stored_entries):
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
