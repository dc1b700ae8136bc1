"""Views that only look: overview, grid, contingency, head, runs."""

import csv
import io
import json
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from contingencies.errors import NotFoundError
from registry.records import ContingencyRecord, DeploymentRecord, HeadRecord
from registry.service.api.parts import LARGEST, TheService
from registry.service.drawing import LEVELS, Marked, draw
from registry.service.layout import layout
from registry.service.pages.rendering import render
from registry.service.ranking import Ranked, outline, rank, urgency
from registry.service.runs import is_silent, live_run
from registry.service.state import Service
from registry.store import contingencies, deployments, heads, listing, runs
from registry.store.deployments import Gate
from registry.store.required_times import required_times

router = APIRouter()

SORTS = {
    "urgency": urgency,
    "contingency": lambda one: one.contingency,
    "duration": lambda one: (one.duration_s is None, one.duration_s or 0.0),
    "bound": lambda one: (one.error_bound_s is None, one.error_bound_s or 0.0),
    "required": lambda one: (one.required_s is None, one.required_s or 0.0),
    "margin": lambda one: (one.margin_s is None, one.margin_s or 0.0),
    "source": lambda one: (one.source or "~", one.checkpoint or 0),
    "age": lambda one: -one.deployed_at.timestamp() if one.deployed_at else 0.0,
}
CSV_FIELDS = (
    "contingency", "system", "fault", "clearing", "alpha", "status", "duration_s", "error_bound_s", "required_s",
    "margin_s", "margin_is", "head", "checkpoint", "source", "deployed_at", "alerts",
)  # fmt: skip
HISTORY = 50  # events shown on a page

Severity = Annotated[float | None, Query(ge=0, le=1e6, allow_inf_nan=False)]
Word = Annotated[str, Query(max_length=200)]
Sort = Literal["urgency", "contingency", "duration", "bound", "required", "margin", "source", "age"]
Alert = Literal["", "below-required", "stale", "missing"]


def _alpha(text: str) -> float | None:
    """A severity typed into a form; what is no severity means the largest that was studied."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _system(service: Service, given: str) -> tuple[str, list[str]]:
    """The system that is shown, and all there are: as asked for, else the one with the most contingencies."""
    names = [row.system.name for row in contingencies.latest(service.home.database)]
    systems = sorted(set(names))
    if given in systems or not systems:
        return given, systems
    return max(systems, key=names.count), systems


def _table(
    service: Service, system: str, alpha: str, q: str, alert: str, sort: str, order: str
) -> tuple[list[Ranked], list[Ranked]]:
    """All of a system, and those that a person asked to see, in the order asked for."""
    everything = rank(service.registry, system or None, _alpha(alpha))
    shown = [one for one in everything if q.lower() in f"{one.contingency} {one.fault} {one.clearing}".lower()]
    if alert:
        shown = [one for one in shown if alert in one.alerts]
    return everything, sorted(shown, key=SORTS[sort], reverse=order == "desc")


@router.get("/")
def overview(
    request: Request,
    service: TheService,
    system: Word = "",
    alpha: Word = "",
    q: Word = "",
    alert: Alert = "",
    sort: Sort = "urgency",
    order: Literal["asc", "desc"] = "asc",
) -> Response:
    """The ranked table of a system."""
    system, systems = _system(service, system)
    everything, shown = _table(service, system, alpha, q, alert, sort, order)
    counts = {kind: sum(kind in one.alerts for one in everything) for kind in ("below-required", "stale", "missing")}
    values: dict[str, Any] = {
        "system": system, "systems": systems, "alpha": alpha, "q": q, "alert": alert, "sort": sort, "order": order,
        "ranked": shown, "total": len(everything), "counts": counts, "is_alpha": _alpha(alpha) is not None,
    }  # fmt: skip
    template = "ranking.html" if request.headers.get("HX-Target") == "ranking" else "overview.html"
    return render(request, template, **values)


@router.get("/ranking.csv")
def ranking_csv(
    service: TheService,
    system: Word = "",
    alpha: Word = "",
    q: Word = "",
    alert: Alert = "",
    sort: Sort = "urgency",
    order: Literal["asc", "desc"] = "asc",
) -> Response:
    """The same table as CSV."""
    system, _ = _system(service, system)
    _, shown = _table(service, system, alpha, q, alert, sort, order)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for one in shown:
        row = {name: getattr(one, name) for name in CSV_FIELDS} | {"alerts": " ".join(one.alerts)}
        writer.writerow(["" if value is None else value for value in row.values()])
    headers = {"Content-Disposition": 'attachment; filename="ranking.csv"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


@router.get("/grid")
async def grid(request: Request, service: TheService, system: Word = "", alpha: Word = "") -> Response:
    """The network of a system with its faults."""
    system, systems = await to_thread.run_sync(_system, service, system)
    ranked = await to_thread.run_sync(rank, service.registry, system or None, _alpha(alpha))
    rows = await to_thread.run_sync(contingencies.latest, service.home.database)
    members = {row.name: row for row in rows if row.system.name == system}
    drawing = None
    if members:
        drawing = await service.whatif.run(_drawing, service, members, ranked)
    return render(
        request, "grid.html", system=system, systems=systems, alpha=alpha, drawing=drawing, levels=LEVELS,
        ranked=ranked,
    )  # fmt: skip


def _drawing(service: Service, members: dict[str, ContingencyRecord], ranked: list[Ranked]) -> str:
    """The drawing of the newest network among the members' systems."""
    newest = max(members.values(), key=lambda row: row.system_id)
    network = service.whatif.network(newest)
    positions = service.drawings.get(newest.system.sha256, lambda: layout(network))
    marked = [Marked(one, outline(members[one.contingency].spec_json).element) for one in ranked]
    return draw(network, positions, marked)


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
        "network": json.loads(record.contingency.system.spec_json)["network"],
        "errors": {name: record.errors.get(name) for name in ("strict", "reference", "reconstruction")},
        "objections": Gate().objections(record),
        "certificate": detail.get("certificate") or {},
        "parameters": detail.get("parameters"),
        "checkpoint": checkpoint,
        "run": run,
    }


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
