"""Commands that list the surrogates and train one of them."""

from typing import TYPE_CHECKING, Any

import click

from contingencies.tables import counted
from zoo.commands.options import json_option, training_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress

if TYPE_CHECKING:
    from registry.records import CheckpointRecord, ContingencyRecord
    from zoo.surrogates.catalogue import Entry
    from zoo.training.outcome import Trained
    from zoo.training.request import TrainingRequest

REFERENCE_CONTINGENCY = "ieee30-line-3-4-restore"  # whose six machines give the paper's parameter counts


def trained_report(request: "TrainingRequest", rows: "list[ContingencyRecord]", trained: "Trained") -> dict[str, Any]:
    """A finished training as plain values."""
    from zoo.surrogates.catalogue import entry_of

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
        "checkpoint": trained.checkpoint.id,
        "run": trained.run_id,
        "parameters": trained.surrogate.n_parameters,
        "residual": request.chosen_residual if entry_of(request.model).form == "one-shot" else None,
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
    from zoo.training.outcome import Trained

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


def print_trained(report: dict[str, Any]) -> None:
    """The same for people."""
    if report.get("done_before"):
        names = ", ".join(report["contingencies"])
        stage = f"checkpoint {report['checkpoint']}  {report['model']}  fraction {report['fraction']:g}"
        click.echo(f"{stage}  {names}: done before")
        return
    residual = "  shooting residual" if report["residual"] == "shooting" else ""  # the other is the paper's, or none
    click.echo(
        f"checkpoint {report['checkpoint']}  {report['model']}  {report['parameters']:,} parameters  "
        f"fraction {report['fraction']:g}  seed {report['seed']}  {report['steps']} steps in {report['train_s']:.0f} s"
        f"{residual}"
    )
    if saved := report["parameters_saved"]:
        share = saved / (saved + report["parameters"])
        click.echo(f"  shared post-clearing experts save {saved:,} parameters ({share:.1%})")
    for member in report["members"]:
        if member["cct_mae_ms"] is None:
            verdict = "censored at every severity, as the reference" if not member["status_errors"] else "no finite CCT"
        else:
            verdict = f"CCT error mean {member['cct_mae_ms']:.4f} ms, max {member['cct_max_ms']:.4f} ms"
        expected = counted(member["reference_finite"], "finite severity", "finite severities")
        click.echo(
            f"  {member['contingency']} v{member['version']}  {verdict}  ({member['finite']} of "
            f"{expected}, {member['status_errors']} of other status; fast ODE)"
        )


def send_to_mlflow(home: str, registry: str | None, wanted: bool) -> None:
    """Replay the run's diary to MLflow; a server that is away costs one warning."""
    if wanted:
        from registry.synchronising import synchronise

        synced = synchronise(home, registry)
        if synced.warning:
            click.echo(f"Warning: {synced.warning}", err=True)


@click.command(epilog="Example: cct-zoo models")
@json_option
def models(as_json: bool) -> None:
    """List the surrogates of the zoo: parameters on six machines (IEEE 30), form, residuals, and what each is.

    Of several residuals ('train --residual') the first is the one that a model learns with unless told otherwise;
    chained windows and the ablation without residuals have none to choose.
    """
    from contingencies.library import load_contingency
    from contingencies.operators import compile_contingency
    from zoo.surrogates.catalogue import CATALOGUE, create_model

    operators = compile_contingency(load_contingency(REFERENCE_CONTINGENCY))
    listed: list[dict[str, Any]] = []
    for name, entry in CATALOGUE.items():
        model = create_model(name, [operators])
        dtype = str(model.dtype).removeprefix("torch.")
        listed.append(
            {"model": name, "parameters": model.n_parameters, "dtype": dtype, "form": entry.form,
             "residuals": _residuals(entry), "family": entry.family, "summary": entry.summary}
        )  # fmt: skip
    if as_json:
        print_json(listed)
        return
    for row in listed:
        residuals = ", ".join(row["residuals"]) or "-"
        click.echo(
            f"{row['model']:22s} {row['parameters']:>9,}  {row['dtype']}  {row['form']:8s}  {residuals:19s}  "
            f"{row['summary']}"
        )


def _residuals(entry: "Entry") -> list[str]:
    """The residuals a model can be trained with, its own first."""
    from zoo.surrogates.budgets import RESIDUALS

    if entry.form == "chained" or entry.objective.get("residual_weight") == 0.0:
        return []
    others = [] if entry.no_shooting else [each for each in RESIDUALS if each != entry.residual]
    return [entry.residual, *others]


@click.command(epilog="Example: cct-zoo train es-pinn-chained ieee30-line-3-4-restore --fraction 0.1")
@click.argument("model")
@click.argument("name")
@training_options
def train(model: str, name: str, home: str, registry: str | None, as_json: bool, **options: Any) -> None:
    """Train surrogate MODEL on contingency NAME.

    MODEL is one that 'cct-zoo models' lists; NAME is registered (NAME@VERSION for an older version) or
    shipped. The checkpoint becomes the one that 'boundary', 'certify' and 'distill --source latest' take for
    NAME. Ctrl-C saves: the same command resumes.
    """
    from registry.query import Registry
    from zoo.lookup import find_registered
    from zoo.surrogates.catalogue import entry_of

    entry_of(model)
    resume, mlflow = options.pop("resume"), options.pop("mlflow")
    with Registry.open(home, registry, create=True) as opened, progress(f"{model} {name}") as display:
        find_registered(opened.home, name)  # a name that is not known is told before torch is loaded
        from zoo.facade.learning import train as train_model

        found = train_model(model, name, registry=opened, resume=resume, report=display, say=display.say, **options)
    report = trained_report(found.request, list(found.members), found.trained)
    send_to_mlflow(home, registry, mlflow)
    print_json(report) if as_json else print_trained(report)
