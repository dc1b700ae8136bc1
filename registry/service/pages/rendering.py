"""Templates and how numbers, times and errors are shown in them."""

from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from contingencies.points import Axis
from registry.service.answers import NO_HEAD
from registry.service.drawing import level_of
from registry.service.problems import TITLES, Problem
from registry.service.settings import Settings
from registry.store.events import now

FOLDER = Path(__file__).parent.parent / "templates"
VIEWS = (("/", "Overview"), ("/grid", "Grid"), ("/runs", "Runs"), ("/required", "Required times"))


def milliseconds(seconds: float | None, digits: int = 1) -> str:
    """Seconds as milliseconds; a dash where there is no number."""
    return "–" if seconds is None else f"{1e3 * seconds:.{digits}f}"


def small(value: float | None) -> str:
    """A number of three digits; a dash where there is none."""
    return "–" if value is None else f"{value:.3g}"


def age(at: datetime | None) -> str:
    """How long ago something was, in the unit that suits it."""
    if at is None:
        return "–"
    return span((now() - at).total_seconds())


def span(seconds: float | None) -> str:
    """A length of time in the unit that suits it."""
    if seconds is None:
        return "–"
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (129600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86400:.0f} d"


def instant(at: datetime | None) -> str:
    """A date and time, UTC."""
    return "–" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def condition(axis: Axis) -> str:
    """A condition in words: `load.north` is the load of north, `generation.2` the generation at bus 2."""
    kind, _, which = axis.name.partition(".")
    words = {"load": "Load factor", "generation": "Generation", "position": "Fault position"}[kind]
    return words + (f" of {which}" if kind == "load" and which else f" at bus {which}" if which else "")


STATUS_WORDS = {
    "finite": "finite",
    "right-censored": "stable throughout",
    "left-censored": "unstable at once",
    "uncertain": "uncertain",
    "out-of-domain": "not covered",
    NO_HEAD: "no head",
}


def status_words(status: str) -> str:
    """What people are shown of a status."""
    return STATUS_WORDS[status]


def plain(value: float) -> str:
    """A number without zeros that say nothing."""
    return f"{value:g}"


def environment() -> Environment:
    """The templates; every value is escaped, and a name that is missing is an error."""
    made = Environment(loader=FileSystemLoader(FOLDER), autoescape=select_autoescape(), undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {"ms": milliseconds, "small": small, "age": age, "span": span, "instant": instant}
    made.filters |= {"condition": condition, "plain": plain, "status": status_words}
    made.globals |= {"level_of": level_of, "views": VIEWS}
    return made


_TEMPLATES = environment()


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page."""
    caller = request.scope.get("caller")
    service = request.app.state.service
    settings: Settings = service.settings
    common = {
        "caller": caller,
        "may_deploy": caller is not None and caller.may("deploy"),
        "path": request.url.path,
        "away": service.answers.away,
        "mlflow_url": settings.mlflow_url,
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(common | values), status)


def problem_page(request: Request, problem: Problem) -> HTMLResponse:
    """A problem as people are shown it."""
    return render(
        request, "problem.html", problem.status_code, title=TITLES[problem.kind], detail=problem.detail, system=None
    )
