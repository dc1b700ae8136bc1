"""Commands that list the surrogates and train one of them."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import json_option, training_options
from zoo.commands.output import print_json
from zoo.commands.progress import PROGRESS_INTERVAL_S

if TYPE_CHECKING:
    from espinn_moe.plan import Progress
    from registry.records import CheckpointRecord, ContingencyRecord
    from zoo.training.session import Trained, TrainingRequest

BAR = 24  # characters
REFERENCE_CONTINGENCY = "ieee30-line-3-4-restore"  # whose six machines give the paper's parameter counts


class TrainingLine:
    """A line on standard error about a training: on a terminal always the same one, elsewhere now and then another."""

    def __init__(self, label: str) -> None:
        self.label, self.terminal, self.last = label, sys.stderr.isatty(), time.monotonic()

    def __call__(self, progress: "Progress") -> None:
        """Loss, residual, validated CCT error and time left."""
        self._show(progress.done, describe(progress))

    def measured(self, done: int, total: int) -> None:
        """How many members have been compared with the reference after the training."""
        self._show(done / total, f"compared with the reference ODE: {done} of {total}")

    def _show(self, done: float, text: str) -> None:
        if self.terminal:
            filled = int(BAR * done)
            bar = "#" * filled + "-" * (BAR - filled)
            click.echo(f"\r\x1b[K{self.label} [{bar}] {text}", err=True, nl=False)
        elif time.monotonic() - self.last >= PROGRESS_INTERVAL_S or done >= 1.0:
            self.last = time.monotonic()
            click.echo(f"{self.label}: {text}", err=True)


@contextmanager
def training_progress(label: str) -> Iterator[TrainingLine]:
    """The line of one training; ends it whatever happens."""
    line = TrainingLine(label)
    try:
        yield line
    except KeyboardInterrupt:
        click.echo("\nThe training is saved; the same command continues it.", err=True)
        raise
    finally:
        if line.terminal:
            click.echo(err=True)


def describe(progress: "Progress") -> str:
    """Where a training stands, in one line."""
    residuals = [value for name, value in progress.terms.items() if name.startswith("residual")]
    residual = f"  residual {sum(residuals):.1e}" if residuals else ""
    checked = "" if progress.validation is None else f"  CCT error {1e3 * progress.validation:.3g} ms"
    minutes, seconds = divmod(int(min(progress.left_s, 1e6)), 60)
    return (
        f"{100 * progress.done:3.0f}%  step {progress.step}  loss {progress.loss:.2e}{residual}{checked}  "
        f"{minutes}:{seconds:02d} left"
    )


def trained_report(request: "TrainingRequest", rows: "list[ContingencyRecord]", trained: "Trained") -> dict[str, Any]:
    """A finished training as plain values."""
    members = [
        {
            "contingency": row.name,
            "version": row.version,
            "cct_mae_ms": None if errors.mae is None else 1e3 * errors.mae,
            "cct_max_ms": None if errors.maximum is None else 1e3 * errors.maximum,
            "finite": errors.finite,
            "reference_finite": errors.reference_finite,
            "status_errors": errors.mismatches,
        }
        for row, errors in zip(rows, trained.errors, strict=True)
    ]
    return {
        "model": request.model,
        "checkpoint": trained.checkpoint_id,
        "run": trained.run_id,
        "parameters": trained.parameters,
        "parameters_saved": getattr(trained.surrogate, "parameters_saved", 0),  # by sharing experts
        "fraction": request.fraction,
        "seed": request.seed,
        "steps": trained.result.steps,
        "train_s": round(trained.result.elapsed_s, 3),
        "loss": trained.result.loss,
        "members": members,
    }


def stage_report(
    request: "TrainingRequest", rows: "list[ContingencyRecord]", trained: "Trained | CheckpointRecord"
) -> dict[str, Any]:
    """The same of one of several trainings, of which an interrupted command may have finished some."""
    from zoo.training.session import Trained

    if isinstance(trained, Trained):
        return trained_report(request, rows, trained)
    return {
        "model": request.model,
        "checkpoint": trained.id,
        "run": trained.run_id,
        "parameters": trained.parameters,
        "fraction": request.fraction,
        "seed": request.seed,
        "contingencies": [row.name for row in rows],
        "done_before": True,
    }


def print_trained(made: dict[str, Any]) -> None:
    """The same for people."""
    if made.get("done_before"):
        names = ", ".join(made["contingencies"])
        click.echo(
            f"checkpoint {made['checkpoint']}  {made['model']}  fraction {made['fraction']:g}  {names}: done before"
        )
        return
    click.echo(
        f"checkpoint {made['checkpoint']}  {made['model']}  {made['parameters']:,} parameters  "
        f"fraction {made['fraction']:g}  seed {made['seed']}  {made['steps']} steps in {made['train_s']:.0f} s"
    )
    if saved := made["parameters_saved"]:
        share = saved / (saved + made["parameters"])
        click.echo(f"  shared post-clearing experts save {saved:,} parameters ({share:.1%})")
    for member in made["members"]:
        if member["cct_mae_ms"] is None:
            verdict = "censored at every severity, as the reference" if not member["status_errors"] else "no finite CCT"
        else:
            verdict = f"CCT error mean {member['cct_mae_ms']:.4f} ms, max {member['cct_max_ms']:.4f} ms"
        click.echo(
            f"  {member['contingency']} v{member['version']}  {verdict}  ({member['finite']} of "
            f"{member['reference_finite']} finite severities, {member['status_errors']} of other status; fast ODE)"
        )


def send_to_mlflow(home: str, registry: str | None, wanted: bool) -> None:
    """Replay the run's diary to MLflow; a server that is away costs one warning."""
    if wanted:
        from registry.synchronising import synchronise

        done = synchronise(home, registry)
        if done.warning:
            click.echo(f"Warning: {done.warning}", err=True)


@click.command()
@json_option
def models(as_json: bool) -> None:
    """List the surrogates of the zoo with their parameter counts on six machines (IEEE 30)."""
    from contingencies.library import load_contingency
    from contingencies.operators import compile_contingency
    from zoo.surrogates.catalogue import CATALOGUE, create_model

    operators = compile_contingency(load_contingency(REFERENCE_CONTINGENCY))
    listed = []
    for name, entry in CATALOGUE.items():
        model = create_model(name, [operators])
        dtype = str(model.dtype).removeprefix("torch.")
        listed.append(
            {"model": name, "parameters": model.n_parameters, "dtype": dtype, "form": entry.form,
             "family": entry.family, "summary": entry.summary}
        )  # fmt: skip
    if as_json:
        print_json(listed)
        return
    for row in listed:
        click.echo(f"{row['model']:22s} {row['parameters']:>9,}  {row['dtype']}  {row['form']:8s}  {row['summary']}")


@click.command()
@click.argument("model")
@click.argument("name")
@training_options
def train(model: str, name: str, home: str, registry: str | None, as_json: bool, **options: Any) -> None:
    """Train surrogate MODEL on contingency NAME.

    MODEL is one that 'cct-zoo models' lists; NAME is registered (NAME@VERSION for an older version) or
    shipped. The checkpoint becomes the one that 'boundary', 'certify' and 'distill --source latest' take for
    NAME. Ctrl-C saves: the same command continues.
    """
    import torch

    from registry.home import Home
    from zoo.lookup import find_registered
    from zoo.surrogates.catalogue import entry_of
    from zoo.training.session import TrainingRequest, train_surrogate

    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    entry_of(model)
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    request = TrainingRequest(model=model, **options)
    with Home.open(home, registry) as opened:
        rows = [find_registered(opened, name)]
        with training_progress(f"{model} {name}") as report:
            trained = train_surrogate(opened, rows, request, resume=resume, report=report, measured=report.measured)
    made = trained_report(request, rows, trained)
    send_to_mlflow(home, registry, mlflow)
    print_json(made) if as_json else print_trained(made)
