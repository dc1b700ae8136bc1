"""Commands that enlarge and reduce a trained family: add-expert and remove-expert."""

import click

from zoo.commands.options import budget_options, data_options, json_option, registry_options, resume_option
from zoo.commands.output import print_json
from zoo.commands.train import training_progress


@click.command("add-expert")
@click.argument("checkpoint", type=click.IntRange(1))
@click.argument("name")
@data_options("Part of NAME's training scenarios.")
@budget_options("Takes less than a fifth of the time of train-moe at this budget.")
@resume_option
@registry_options
@json_option
def add_expert(
    checkpoint: int,
    name: str,
    fraction: float,
    seed: int,
    budget: str,
    minutes: float | None,
    steps: int | None,
    resume: bool,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Give contingency NAME an expert of the family in CHECKPOINT.

    The trunk and necks stay frozen, so every other member answers exactly as before. The result is a new checkpoint
    whose parent is CHECKPOINT.
    """
    import torch

    from registry.home import Home
    from zoo.lookup import find_registered
    from zoo.training import experts as onboarding

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    with Home.open(home, registry, create=False) as opened:
        row = find_registered(opened, name)
        with training_progress(f"expert for {row.name}") as report:
            made = onboarding.add_expert(
                opened, checkpoint, row, fraction=fraction, seed=seed, budget=budget, minutes=minutes, steps=steps,
                resume=resume, report=report,
            )  # fmt: skip
    mae, largest = made.errors.mae, made.errors.maximum
    if as_json:
        print_json(
            {
                "checkpoint": made.checkpoint_id,
                "parent": checkpoint,
                "run": made.run_id,
                "members": list(made.members),
                "parameters": made.surrogate.n_parameters,
                "steps": made.result.steps,
                "train_s": round(made.result.elapsed_s, 3),
                "cct_mae_ms": None if mae is None else 1e3 * mae,
                "cct_max_ms": None if largest is None else 1e3 * largest,
                "status_errors": made.errors.mismatches,
            }
        )
        return
    error = (
        "censored at every severity"
        if mae is None or largest is None
        else f"mean {1e3 * mae:.4f} ms, max {1e3 * largest:.4f} ms"
    )
    click.echo(
        f"checkpoint {made.checkpoint_id} (parent {checkpoint})  {len(made.members)} members  "
        f"{made.surrogate.n_parameters:,} parameters  {made.result.steps} steps in {made.result.elapsed_s:.0f} s"
    )
    click.echo(f"  {row.name} v{row.version}  CCT error {error}; the other members answer exactly as before")


@click.command("remove-expert")
@click.argument("checkpoint", type=click.IntRange(1))
@click.argument("name")
@registry_options
@json_option
def remove_expert(checkpoint: int, name: str, home: str, registry: str | None, as_json: bool) -> None:
    """Make a checkpoint from CHECKPOINT without its expert for NAME; the others answer exactly as before.

    CHECKPOINT itself and the heads that came from it stay.
    """
    from registry.home import Home
    from zoo.training import experts as onboarding

    with Home.open(home, registry, create=False) as opened:
        row, names = onboarding.remove_expert(opened, checkpoint, name)
    if as_json:
        print_json({"checkpoint": row.id, "parent": checkpoint, "members": list(names), "parameters": row.parameters})
    else:
        click.echo(
            f"checkpoint {row.id} (parent {checkpoint})  {len(names)} member{'s' if len(names) > 1 else ''} left, "
            f"with the same answers as before"
        )
