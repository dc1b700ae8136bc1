"""Commands that train a whole family of contingencies: in one mixture of experts, or one by one."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import family_options, training_options
from zoo.commands.output import print_json
from zoo.commands.train import print_trained, send_to_mlflow, stage_report, training_progress

if TYPE_CHECKING:
    from registry.records import ContingencyRecord
    from zoo.training.session import Trained


@click.command("train-moe")
@family_options
@click.option(
    "--model",
    type=click.Choice(["moe-chained", "moe"]),
    default="moe-chained",
    show_default=True,
    help="Chained windows, or the paper's form.",
)
@click.option("--schedule", metavar="F,F,...", help="Train through growing fractions, each from where the last ended.")
@click.option("--share-topology", is_flag=True, help="Members with one post-clearing topology share that expert.")
@training_options
@click.pass_context
def train_moe(
    context: click.Context,
    names: tuple[str, ...],
    system: str | None,
    model: str,
    schedule: str | None,
    share_topology: bool,
    home: str,
    registry: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train one hard-routed mixture of experts for a family of contingencies of one system.

    The checkpoint becomes the one that 'boundary', 'certify' and 'distill --source latest' take for every
    member. Ctrl-C saves: the same command continues.
    """
    import torch

    from contingencies.errors import UsageError
    from registry.home import Home
    from zoo.surrogates.budgets import parse_schedule
    from zoo.training.series import members_of, train_through
    from zoo.training.session import TrainingRequest

    if schedule and context.get_parameter_source("fraction") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("give either --fraction or --schedule, which goes through several of them.")
    if share_topology and model != "moe-chained":
        raise UsageError(
            f"--share-topology needs --model moe-chained: the experts of {model} do not see the state at clearing, so "
            "that one shared by two faults could not tell them apart."
        )
    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    fractions = parse_schedule(schedule) if schedule else (options["fraction"],)
    settings = {"share_topology": True} if share_topology else None
    request = TrainingRequest(model=model, settings=settings, **options)
    with Home.open(home, registry) as opened:
        rows = members_of(opened, names, system)
        with training_progress(f"{model} of {len(rows)} contingencies") as report:
            stages = train_through(
                opened, rows, request, fractions, resume=resume, report=report, measured=report.measured
            )
    made = [stage_report(stage, rows, trained) for stage, trained in stages]
    send_to_mlflow(home, registry, mlflow)
    if as_json:
        print_json(made[-1] | {"stages": made} if schedule else made[-1])
        return
    for report_of_stage in made:
        print_trained(report_of_stage)


@click.command("train-separate")
@family_options
@click.option("--model", default="es-pinn-chained", show_default=True, help="A model for one contingency.")
@training_options
def train_separate(
    names: tuple[str, ...],
    system: str | None,
    model: str,
    home: str,
    registry: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train one surrogate per contingency of a family, on the subsets of scenarios that train-moe would use."""
    import torch

    from contingencies.errors import UsageError
    from registry.home import Home
    from zoo.surrogates.catalogue import entry_of
    from zoo.training.series import members_of, train_each
    from zoo.training.session import TrainingRequest, train_surrogate

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    if entry_of(model).family:
        raise UsageError(f"{model} is one model for a family: use train-moe, or name a model for one contingency here.")
    request = TrainingRequest(model=model, **options)
    made = []
    with Home.open(home, registry) as opened:
        rows = members_of(opened, names, system)

        def train(row: "ContingencyRecord") -> "Trained":
            with training_progress(f"{model} {row.name} ({rows.index(row) + 1} of {len(rows)})") as report:
                return train_surrogate(opened, [row], request, resume=resume, report=report, measured=report.measured)

        for row, trained in train_each(opened, rows, request, resume=resume, train=train):
            made.append(stage_report(request, [row], trained))
            if not as_json:
                print_trained(made[-1])
    send_to_mlflow(home, registry, mlflow)
    if as_json:
        print_json(made)
