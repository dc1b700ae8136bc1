"""Commands that enlarge and reduce a trained family: add-expert and remove-expert."""

from typing import Any

import click

from zoo.commands.options import ROW_NUMBER, budget_options, data_options, json_option, registry_options, resume_option
from zoo.commands.output import print_json
from zoo.commands.progress import progress


@click.command("add-expert", epilog="Example: cct-zoo add-expert 1 ieee30-bus-3-trip --fraction 0.1")
@click.argument("checkpoint", type=ROW_NUMBER)
@click.argument("name")
@data_options("Part of NAME's training scenarios.")
@budget_options("Takes less than a fifth of the time of train-moe at this budget.")
@resume_option
@registry_options
@json_option
def add_expert(
    checkpoint: int, name: str, resume: bool, home: str, registry: str | None, as_json: bool, **options: Any
) -> None:
    """Give contingency NAME an expert of the family in CHECKPOINT.

    The trunk and necks stay frozen, so every other member answers exactly as before. The result is a new checkpoint
    whose parent is CHECKPOINT. Ctrl-C saves: the same command resumes.
    """
    import torch

    from registry.home import Home
    from zoo.lookup import find_registered
    from zoo.training import experts
    from zoo.training.request import TrainingRequest
    from zoo.training.session import Session

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    with Home.open(home, registry, create=False) as opened:
        row = find_registered(opened, name)
        family = experts.load_family(opened, checkpoint)
        request = TrainingRequest(family.model, **options)
        with progress(f"expert for {row.name}") as display:
            trained = experts.add_expert(Session(opened, resume, display, display.say), family, row, request)
    (errors,) = trained.errors
    members = [operators.name for operators in trained.surrogate.members]
    if as_json:
        print_json(
            {
                "checkpoint": trained.checkpoint.id,
                "parent": checkpoint,
                "run": trained.run_id,
                "members": members,
                "parameters": trained.surrogate.n_parameters,
                "steps": trained.result.steps,
                "train_s": round(trained.result.elapsed_s, 3),
                "cct_mae_ms": None if errors.mae is None else 1e3 * errors.mae,
                "cct_max_ms": None if errors.maximum is None else 1e3 * errors.maximum,
                "status_errors": errors.mismatches,
            }
        )
        return
    error = "censored at every severity"
    if errors.mae is not None and errors.maximum is not None:
        error = f"mean {1e3 * errors.mae:.4f} ms, max {1e3 * errors.maximum:.4f} ms"
    click.echo(
        f"checkpoint {trained.checkpoint.id} (parent {checkpoint})  {len(members)} members  "
        f"{trained.surrogate.n_parameters:,} parameters  {trained.result.steps} steps in "
        f"{trained.result.elapsed_s:.0f} s"
    )
    click.echo(f"  {row.name} v{row.version}  CCT error {error}; the other members answer exactly as before")


@click.command("remove-expert", epilog="Example: cct-zoo remove-expert 1 ieee30-bus-3-trip")
@click.argument("checkpoint", type=ROW_NUMBER)
@click.argument("name")
@registry_options
@json_option
def remove_expert(checkpoint: int, name: str, home: str, registry: str | None, as_json: bool) -> None:
    """Make a checkpoint from CHECKPOINT without its expert for NAME; the others answer exactly as before.

    CHECKPOINT itself and the heads that came from it stay.
    """
    from registry.home import Home
    from zoo.training import experts

    with Home.open(home, registry, create=False) as opened:
        row, names = experts.remove_expert(opened, checkpoint, name)
    if as_json:
        print_json({"checkpoint": row.id, "parent": checkpoint, "members": list(names), "parameters": row.parameters})
    else:
        click.echo(
            f"checkpoint {row.id} (parent {checkpoint})  {len(names)} member{'s' if len(names) > 1 else ''} left, "
            f"with the same answers as before"
        )
