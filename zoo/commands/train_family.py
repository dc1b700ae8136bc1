"""Commands that train a whole family of contingencies: in one mixture of experts, or one by one."""

from typing import Any

import click

from zoo.commands.options import family_options, training_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress
from zoo.commands.train import print_trained, send_to_mlflow, stage_report


@click.command("train-moe", epilog="Example: cct-zoo train-moe --system ieee30 --fraction 0.1")
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
    member. Ctrl-C saves: the same command resumes.
    """
    from contingencies.errors import UsageError
    from zoo.surrogates.budgets import parse_schedule
    from zoo.surrogates.catalogue import entry_of

    entry_of(model)
    fractions = parse_schedule(schedule) if schedule else (options["fraction"],)
    if schedule and context.get_parameter_source("fraction") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("give either --fraction or --schedule, which goes through several of them.")
    if share_topology and model != "moe-chained":
        raise UsageError(
            f"--share-topology needs --model moe-chained: the experts of {model} do not see the state at clearing, so "
            "that one shared by two faults could not tell them apart."
        )

    import torch  # after what costs nothing to check

    from registry.home import Home
    from zoo.training.request import TrainingRequest
    from zoo.training.series import members_of, train_through
    from zoo.training.session import Session

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    settings = {"share_topology": True} if share_topology else None
    request = TrainingRequest(model=model, settings=settings, **options)
    with Home.open(home, registry) as opened:
        rows = members_of(opened, names, system)
        with progress(f"{model} of {len(rows)} contingencies") as display:
            stages = train_through(Session(opened, resume, display, display.say), rows, request, fractions)
    reports = [stage_report(stage, rows, trained) for stage, trained in stages]
    send_to_mlflow(home, registry, mlflow)
    if as_json:
        print_json(reports[-1] | {"stages": reports} if schedule else reports[-1])
        return
    for report in reports:
        print_trained(report)


@click.command("train-separate", epilog="Example: cct-zoo train-separate --system ieee30 --fraction 0.1")
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
    from contingencies.errors import UsageError
    from zoo.surrogates.catalogue import entry_of

    if entry_of(model).family:
        raise UsageError(f"{model} is one model for a family: use train-moe, or name a model for one contingency here.")

    import torch  # after what costs nothing to check

    from registry.home import Home
    from zoo.training.request import TrainingRequest
    from zoo.training.series import members_of, train_each
    from zoo.training.session import Session

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    request = TrainingRequest(model=model, **options)
    reports = []
    with Home.open(home, registry) as opened:
        rows = members_of(opened, names, system)
        with progress(f"{model} of {len(rows)} contingencies") as display:
            for row, trained in train_each(Session(opened, resume, display, display.say), rows, request):
                reports.append(stage_report(request, [row], trained))
                display.end_line()
                if not as_json:
                    print_trained(reports[-1])
    send_to_mlflow(home, registry, mlflow)
    if as_json:
        print_json(reports)
