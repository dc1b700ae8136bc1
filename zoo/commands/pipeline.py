"""The command that goes from contingencies to deployed heads in one step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import (
    accept_worse_option,
    alias_option,
    budget_options,
    data_options,
    executor_options,
    gate_options,
    json_option,
    registry_options,
    required_option,
)
from zoo.commands.output import print_json
from zoo.commands.progress import progress
from zoo.commands.recipes import RECIPE, option_name, recipe_of, recipe_options, severity_option

if TYPE_CHECKING:
    from contingencies.library import Contingency
    from contingencies.protection import Verdict
    from contingencies.recipes import Recipe
    from registry.home import Home
    from registry.records import ContingencyRecord
    from zoo.heads.comparison import Example
    from zoo.heads.pipeline import PipelineResult


@click.command(epilog="Example: cct-zoo pipeline --system ieee39 --fault line --clearing remove-line --fraction 0.2")
@click.argument("names", nargs=-1)
@click.option(
    "--system", metavar="NAME", help="A whole system: its registered contingencies, or a family made by --fault."
)
@recipe_options(required=False)
@severity_option
@click.option("--model", help="A surrogate.  [default: es-pinn-chained for one contingency, moe-chained for several]")
@data_options()
@budget_options()
@click.option(
    "--strict",
    type=click.IntRange(1, 1000),
    default=6,
    show_default=True,
    help="Severities of each head measured against the strict ODE.",
)
@required_option
@accept_worse_option
@gate_options
@alias_option
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
    required_ms: float | None,
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
    again, the same command resumes where it was interrupted. Exit code 6 when a head was refused. The options from
    --position to --severity describe the family as those of 'screen' and 'generate-contingencies' do; without
    --position each line is faulted near its more critical end.
    """
    from zoo.surrogates.catalogue import entry_of

    if model is not None:
        entry_of(model)
    fresh, deployment = (
        options.pop("fresh"),
        {key: options.pop(key) for key in ("strict", "alias", "reason", "accept_worse")},
    )
    family = {key: options.pop(key) for key in (*RECIPE, "severity")}
    recipe = _family_recipe(names, system, fault, clearing, family)

    import torch  # after what costs nothing to check

    from contingencies.errors import GateError
    from registry.home import Home
    from registry.store.deployments import Gate
    from zoo.heads.comparison import example
    from zoo.heads.pipeline import PipelinePlan, run_pipeline
    from zoo.training.request import TrainingRequest
    from zoo.training.series import members_of
    from zoo.training.session import Session
    from zoo.work.executor import make_executor

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    executor = make_executor(jobs, cluster)
    with Home.open(home, registry) as opened:
        rows = members_of(opened, names, system) if recipe is None else _generated(opened, system or "", recipe)
        chosen = model or ("es-pinn-chained" if len(rows) == 1 else "moe-chained")
        gate = Gate(mae_s=1e-3 * max_mean_ms, max_s=1e-3 * max_ms)
        plan = PipelinePlan(TrainingRequest(model=chosen, **options), gate=gate, **deployment)
        with progress(f"{chosen} of {len(rows)} contingencies", resumable=True) as display:
            session = Session(opened, not fresh, display, display.say, executor)
            result = run_pipeline(session, rows, plan, executor, registry)
        by_name = {row.name: row for row in rows}
        telling = sorted(result.members, key=lambda member: member.status != "finite")  # one with a number, if any
        deployed = [by_name[member.contingency] for member in telling if member.outcome == "deployed"]
        shown = [
            example(opened.path, row, opened.contingency(row), url=registry, alias=deployment["alias"])
            for row in deployed[:1]
        ]
        verdicts = _verdicts(opened, deployed, deployment["alias"], required_ms)
    if as_json:
        report = result.report() | {"examples": [vars(entry) for entry in shown]}
        if verdicts:
            report |= {"verdicts": {name: vars(verdict) for name, verdict in verdicts.items()}}
        print_json(report)
    else:
        _print(result, shown, verdicts)
    refused = [member for member in result.members if member.outcome != "deployed"]
    if refused:
        raise GateError(f"{len(refused)} of {len(rows)} heads were not deployed; the reasons are above.")


def _family_recipe(
    names: tuple[str, ...], system: str | None, fault: Any, clearing: str | None, family: dict[str, Any]
) -> "Recipe | None":
    """The family that is to be made, if any; a request that is none is refused before anything is made."""
    from contingencies.errors import UsageError

    if bool(names) == bool(system):
        raise UsageError("name either contingencies or their --system.")
    if (fault is None) != (clearing is None):
        raise UsageError("--fault and --clearing make a family together; give both or neither.")
    if names and fault is not None:
        raise UsageError("--fault and --clearing make a family of a --system; leave out the names.")
    for key, value in family.items():
        if value is not None and value != () and fault is None:
            raise UsageError(f"{option_name(key)} describes a family; give --fault and --clearing, or leave it out.")
    return None if fault is None or clearing is None else recipe_of(fault, clearing, **family)


def _generated(home: "Home", system: str, recipe: "Recipe") -> "list[ContingencyRecord]":
    from contingencies.errors import UsageError
    from contingencies.families import generate_family
    from contingencies.library import load_system

    family = generate_family(load_system(system), recipe)
    members = list(family.members)
    if recipe.fault == "line" and len(recipe.positions) > 1:
        members = _more_critical_ends(members, recipe)
    if not members:
        raise UsageError(f"{system} has no place for {recipe.fault} faults cleared by {recipe.clearing}.")
    rows = [result.row for result in home.register(members)]
    click.echo(f"{len(rows)} contingencies registered; {len(family.left_out)} places left out", err=True)
    return rows


def _more_critical_ends(members: "list[Contingency]", recipe: "Recipe") -> "list[Contingency]":
    """One member per line: the fault near the end where less time is left, by the fast ODE."""
    from contingencies.operators import compile_members
    from zoo.studies.screening import screen, worse_ends

    return worse_ends(members, screen(compile_members(members), recipe.severity[1])) if members else []


def milliseconds(seconds: float | None) -> str:
    """A time in ms, or a dash."""
    return "-" if seconds is None else f"{1e3 * seconds:.4f}"


def _verdicts(
    home: "Home", rows: "list[ContingencyRecord]", alias: str, required_ms: float | None
) -> "dict[str, Verdict]":
    """What the deployed heads make of the required times, as given or else as the registry has them.

    Each at the most severe fault of its contingency; those without a required time are left out.
    """
    from contingencies.protection import judge
    from registry.store import deployments
    from registry.store.required_times import required_times

    required = (
        {name: each.required_s for name, each in required_times(home.database).items()}
        if required_ms is None
        else {row.name: 1e-3 * required_ms for row in rows}
    )
    verdicts = {}
    for row in rows:
        if row.name not in required:
            continue
        head = home.load_head(deployments.active(home.database, row.name, alias).head)
        cct, status = head.answer(head.severity[1])
        duration = None if cct is None else cct - head.t_f
        window = home.contingency(row).spec.window
        verdicts[row.name] = judge(status, duration, window, required[row.name], head.error_bound_s)
    return verdicts


def _print(
    result: "PipelineResult",
    examples: "Sequence[Example]",
    verdicts: "dict[str, Verdict]",
) -> None:
    trained = f"trained in {result.training_s:.0f} s" if result.trained_now else "trained before"
    click.echo(f"checkpoint {result.checkpoint}  {result.model}  {result.parameters:,} parameters  {trained}")
    width = max(len("contingency"), *(len(member.contingency) for member in result.members))
    click.echo(
        f"{'contingency':{width}}  {'outcome':8}  {'status':14}  {'head':>5}  {'mean ms':>9}  {'max ms':>9}"
        + (f"  {'required':10}" if verdicts else "")
    )
    for m in result.members:
        head = "-" if m.head is None else str(m.head)
        click.echo(
            f"{m.contingency:{width}}  {m.outcome:8}  {m.status:14}  {head:>5}  {milliseconds(m.strict_mae_s):>9}  "
            f"{milliseconds(m.strict_max_s):>9}"
            + ("" if not verdicts else f"  {verdicts[m.contingency].words() if m.contingency in verdicts else '-':10}")
            + (f"  {m.detail}" if m.detail else "")
        )
    passed = sum(member.outcome == "deployed" for member in result.members)
    censored = sum(member.outcome == "deployed" and member.status != "finite" for member in result.members)
    status_only = f", {censored} of them censored at every severity (status only, no number)" if censored else ""
    click.echo(f"{passed} of {len(result.members)} heads passed the gate and are deployed{status_only}")
    if verdicts:
        from contingencies.protection import tally

        click.echo(f"at the most severe fault: {tally(verdicts.values(), 'the required time')}")
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
