"""Views of one thing: a contingency, a head, a run; and the list of runs."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from contingencies.errors import NotFoundError
from registry.records import DeploymentRecord, HeadRecord
from registry.service.api.parts import LARGEST, TheService
from registry.service.pages.rendering import render
from registry.service.ranking import outline
from registry.service.runs import is_silent, live_run
from registry.service.state import Service
from registry.store import contingencies, deployments, heads, listing, runs
from registry.store.deployments import Gate
from registry.store.required_times import required_times

router = APIRouter()

HISTORY = 50  # events shown on a page


@router.get("/contingencies/{name}")
def contingency(request: Request, service: TheService, name: str) -> Response:
    """One contingency: its boundary, live simulation, heads and history."""
    database = service.home.database
    row = contingencies.find(database, name)
    active = _active(service, row.name)
    page = listing.heads(database, None, HISTORY, row.name)
    events = listing.events(database, None, HISTORY, row.name)
    required = required_times(database).get(row.name)
    return render(
        request, "contingency.html", row=row, outline=outline(row.spec_json), spec=json.loads(row.spec_json),
        system=row.system.name, active=active, heads=page.items, events=events.items, required=required,
    )  # fmt: skip


def _active(service: Service, name: str) -> DeploymentRecord | None:
    try:
        return deployments.active(service.home.database, name)
    except NotFoundError:
        return None


@router.get("/heads/{number}")
def head(
    request: Request,
    service: TheService,
    number: Annotated[int, Path(ge=1, le=LARGEST)],
    other: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The model card of a head, beside another one if asked for."""
    database = service.home.database
    shown = [heads.get(database, number)] + ([heads.get(database, other)] if other else [])
    name = shown[0].contingency.name
    latest = contingencies.find(database, name)
    return render(
        request, "head.html", head=shown[0], cards=[_card(service, one) for one in shown], other=other,
        name=name, system=latest.system.name, latest=latest, active=_active(service, name),
        heads=listing.heads(database, None, HISTORY, name).items,
        history=listing.deployments(database, None, HISTORY, name).items,
    )  # fmt: skip


def _card(service: Service, record: HeadRecord) -> dict[str, Any]:
    """Everything that is known about a head."""
    database = service.home.database
    checkpoint = None if record.checkpoint_id is None else runs.get_checkpoint(database, record.checkpoint_id)
    run = None if checkpoint is None else runs.trained_in(database, checkpoint)
    shape = outline(record.contingency.spec_json)
    detail = record.errors.get("detail", {})
    return {
        "head": record,
        "shape": shape,
        "system": record.contingency.system,
        "network": _source(json.loads(record.contingency.system.spec_json)["network"]),
        "errors": {name: record.errors.get(name) for name in ("strict", "reference", "reconstruction")},
        "objections": Gate().objections(record),
        "certificate": detail.get("certificate") or {},
        "parameters": detail.get("parameters"),
        "checkpoint": checkpoint,
        "run": run,
    }


def _source(network: dict[str, Any]) -> str:
    """Where a network comes from, in words."""
    return f"pandapower's {network['pandapower']}" if network.get("pandapower") else f"the file {network.get('file')}"


@router.get("/runs")
def list_runs(request: Request, service: TheService) -> Response:
    """Trainings, newest first, kept up to date."""
    page = listing.runs(service.home.database, None, HISTORY)
    shown = [(run, live_run(service.home, run) if run.status == "running" else None) for run in page.items]
    template = "runs_table.html" if request.headers.get("HX-Target") == "runs" else "runs.html"
    silent = {run.id for run in page.items if is_silent(run)}
    return render(request, template, runs=shown, silent=silent, system=None)


@router.get("/runs/{number}")
def run(request: Request, service: TheService, number: Annotated[int, Path(ge=1, le=LARGEST)]) -> Response:
    """One training with its curves."""
    record = runs.get_run(service.home.database, number)
    live = live_run(service.home, record)
    return render(request, "run.html", run=record, live=live, silent=is_silent(record), system=None)
