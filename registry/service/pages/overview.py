"""Views of a whole system: the ranked table, the same as CSV, and the network with its faults."""

import csv
import io
import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from contingencies.points import Axis
from registry.records import ContingencyRecord
from registry.service.api.parts import TheService
from registry.service.drawing import LEVELS, Marked, draw
from registry.service.layout import layout
from registry.service.pages.rendering import render
from registry.service.ranking import Asked, Ranked, axes_among, outline, rank, urgency
from registry.service.state import Service
from registry.store import contingencies

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
    "margin_s", "margin_is", "head", "checkpoint", "source", "deployed_at", "alerts", "at",
)  # fmt: skip

Word = Annotated[str, Query(max_length=200)]
Sort = Literal["urgency", "contingency", "duration", "bound", "required", "margin", "source", "age"]
Alert = Literal["", "below-required", "stale", "missing"]


def _number(text: str) -> float | None:
    """A number typed into a form; None for what is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _alpha(text: str) -> float | None:
    """A severity typed into a form; what is no severity means the largest that was studied."""
    value = _number(text)
    return value if value is not None and 0 <= value <= 1e6 else None


@dataclass(frozen=True)
class Choice:
    """What a person looks at: a system, a severity and an operating point, as far as the forms hold them."""

    system: str
    systems: list[str]  # all there are
    alpha: str
    axes: list[Axis]  # conditions of the system's contingencies
    at: dict[str, str]  # what was typed for them

    @property
    def asked(self) -> Asked:
        """The ranking to show."""
        at = {name: value for name, text in self.at.items() if (value := _number(text)) is not None}
        return Asked(self.system or None, _alpha(self.alpha), at=at)

    @property
    def query(self) -> dict[str, str]:
        """Parameters that show the same choice on another page."""
        return {"system": self.system, "alpha": self.alpha} | {name: text for name, text in self.at.items() if text}

    @property
    def typed(self) -> dict[str, str]:
        """Severity and conditions, for the page of a contingency."""
        return {name: text for name, text in ({"alpha": self.alpha} | self.at).items() if text}


@dataclass(frozen=True)
class Wanted:
    """Which rows of the table a person wants to see, and in which order."""

    q: Word = ""
    alert: Alert = ""
    sort: Sort = "urgency"
    order: Literal["asc", "desc"] = "asc"


def _chosen(service: TheService, request: Request, system: Word = "", alpha: Word = "") -> Choice:
    """The system asked for, else the one with the most contingencies; one that is not known is an error."""
    rows = contingencies.latest(service.home.database)
    names = [row.system.name for row in rows]
    systems = sorted(set(names))
    if system and system not in systems:
        contingencies.check_system(service.home.database, system)
    system = system or max(systems, key=names.count, default="")
    axes = axes_among([row for row in rows if row.system.name == system])
    return Choice(
        system, systems, alpha, axes, {axis.name: request.query_params.get(axis.name, "")[:40] for axis in axes}
    )


TheChoice = Annotated[Choice, Depends(_chosen)]
TheWanted = Annotated[Wanted, Depends()]


def _shown(ranked: list[Ranked], wanted: Wanted) -> list[Ranked]:
    """The rows that a person wants to see, in the order asked for."""
    word = wanted.q.lower()
    shown = [one for one in ranked if word in f"{one.contingency} {one.fault} {one.clearing}".lower()]
    if wanted.alert:
        shown = [one for one in shown if wanted.alert in one.alerts]
    return sorted(shown, key=SORTS[wanted.sort], reverse=wanted.order == "desc")


@router.get("/")
def overview(request: Request, service: TheService, choice: TheChoice, wanted: TheWanted) -> Response:
    """The ranked table of a system."""
    everything = rank(service.registry, choice.asked)
    counts = {kind: sum(kind in one.alerts for one in everything) for kind in ("below-required", "stale", "missing")}
    values: dict[str, Any] = {
        "choice": choice, "system": choice.system, "ranked": _shown(everything, wanted), "total": len(everything),
        "counts": counts, **asdict(wanted),
    }  # fmt: skip
    template = "ranking.html" if request.headers.get("HX-Target") == "ranking" else "overview.html"
    return render(request, template, **values)


@router.get("/ranking.csv")
def ranking_csv(service: TheService, choice: TheChoice, wanted: TheWanted) -> Response:
    """The same table as CSV."""
    at = " ".join(f"{name}={value:g}" for name, value in choice.asked.at.items())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for one in _shown(rank(service.registry, choice.asked), wanted):
        row = {name: getattr(one, name) for name in CSV_FIELDS if name != "at"}
        row |= {"alerts": " ".join(one.alerts), "at": at}
        writer.writerow(["" if value is None else value for value in row.values()])
    headers = {"Content-Disposition": 'attachment; filename="ranking.csv"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


@router.get("/grid")
async def grid(request: Request, service: TheService, choice: TheChoice) -> Response:
    """The network of a system with its faults."""
    ranked = await to_thread.run_sync(rank, service.registry, choice.asked)
    rows = await to_thread.run_sync(contingencies.latest, service.home.database)
    members = {row.name: row for row in rows if row.system.name == choice.system}
    drawing = None
    if members:
        drawing = await service.whatif.run(_drawing, service, members, ranked)
    return render(
        request, "grid.html", system=choice.system, choice=choice, drawing=drawing, levels=LEVELS, ranked=ranked,
    )  # fmt: skip


def _drawing(service: Service, members: dict[str, ContingencyRecord], ranked: list[Ranked]) -> str:
    """The drawing of the newest network among the members' systems."""
    newest = max(members.values(), key=lambda row: row.system_id)
    network = service.whatif.network(newest)
    positions = service.drawings.get(newest.system.sha256, lambda: layout(network))
    marked = [Marked(one, outline(members[one.contingency].spec_json).element) for one in ranked]
    return draw(network, positions, marked)
