"""Routes that list what the registry holds: paged, filtered, continued by cursors that stay valid."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query

from registry.service.api.models import (
    CheckpointOut,
    ContingencyOut,
    DeploymentOut,
    EventOut,
    HeadOut,
    Listed,
    LiveRun,
    NumberOut,
    RunOut,
    SystemOut,
)
from registry.service.api.parts import (
    LARGEST,
    Cursor,
    Limit,
    TheService,
    after_name,
    after_number,
    next_of,
    only_known_parameters,
)
from registry.service.runs import live_run
from registry.store import contingencies, heads, listing, runs
from registry.texts import split_reference

router = APIRouter(prefix="/api/v1", dependencies=[Depends(only_known_parameters)], tags=["lists"])

Number = Annotated[int, Path(ge=1, le=LARGEST)]
Word = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]


@router.get("/contingencies")
def list_contingencies(
    service: TheService, system: Word = None, limit: Limit = 100, cursor: Cursor = None
) -> Listed[ContingencyOut]:
    """The latest version of every contingency, in order of name."""
    if system is not None:
        contingencies.check_system(service.home.database, system)
    page = listing.contingencies(service.home.database, after_name(cursor), limit, system)
    return Listed(items=[ContingencyOut.of(row) for row in page.items], next=next_of(page))


@router.get("/contingencies/{name}")
def get_contingency(service: TheService, name: str) -> ContingencyOut:
    """One contingency: its latest version, or `name@version`."""
    return ContingencyOut.of(contingencies.find(service.home.database, name))


@router.get("/systems")
def list_systems(service: TheService) -> Listed[SystemOut]:
    """All systems, in order of name."""
    return Listed(items=[SystemOut.of(row) for row in contingencies.systems(service.home.database)], next=None)


@router.get("/heads")
def list_heads(
    service: TheService,
    contingency: Word = None,
    source: Literal["reference", "checkpoint"] | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Listed[HeadOut]:
    """Heads, newest first."""
    page = listing.heads(service.home.database, after_number(cursor), limit, contingency, source)
    return Listed(items=[HeadOut.of(row) for row in page.items], next=next_of(page))


@router.get("/heads/{number}")
def get_head(service: TheService, number: Number) -> HeadOut:
    """One head."""
    return HeadOut.of(heads.get(service.home.database, number))


@router.get("/checkpoints")
def list_checkpoints(
    service: TheService, contingency: Word = None, limit: Limit = 100, cursor: Cursor = None
) -> Listed[CheckpointOut]:
    """Checkpoints, newest first; those that serve a contingency if one is named."""
    page = listing.checkpoints(service.home.database, after_number(cursor), limit, contingency)
    return Listed(items=[CheckpointOut.of(row) for row in page.items], next=next_of(page))


@router.get("/checkpoints/{number}")
def get_checkpoint(service: TheService, number: Number) -> CheckpointOut:
    """One checkpoint."""
    return CheckpointOut.of(runs.get_checkpoint(service.home.database, number))


@router.get("/runs")
def list_runs(
    service: TheService,
    status: Literal["running", "finished", "failed", "stale"] | None = None,
    model: Word = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Listed[RunOut]:
    """Trainings, newest first."""
    page = listing.runs(service.home.database, after_number(cursor), limit, status, model)
    return Listed(items=[RunOut.of(row) for row in page.items], next=next_of(page))


@router.get("/runs/{number}")
def get_run(service: TheService, number: Number) -> LiveRun:
    """One training with its curves, also while it goes on."""
    return live_run(service.home, runs.get_run(service.home.database, number))


@router.get("/deployments")
def list_deployments(
    service: TheService,
    contingency: Word = None,
    alias: Word = None,
    active: bool | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Listed[DeploymentOut]:
    """Deployments, newest first."""
    page = listing.deployments(service.home.database, after_number(cursor), limit, contingency, alias, active)
    return Listed(items=[DeploymentOut.of(row) for row in page.items], next=next_of(page))


@router.get("/history/{name}")
def get_history(
    service: TheService, name: str, action: Word = None, limit: Limit = 100, cursor: Cursor = None
) -> Listed[EventOut]:
    """What happened to a contingency, newest first: who, what, when and why."""
    database = service.home.database
    contingencies.find(database, split_reference(name)[0])
    page = listing.events(database, after_number(cursor), limit, split_reference(name)[0], action)
    return Listed(items=[EventOut.model_validate(row) for row in page.items], next=next_of(page))


@router.get("/benchmarks")
def list_numbers(
    service: TheService, entry: Word = None, limit: Limit = 100, cursor: Cursor = None
) -> Listed[NumberOut]:
    """Numbers of benchmarks, newest first."""
    page = listing.numbers(service.home.database, after_number(cursor), limit, entry)
    return Listed(items=[NumberOut.model_validate(row) for row in page.items], next=next_of(page))
