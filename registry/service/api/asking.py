"""Routes that compute: rankings, boundaries of heads, and what-if simulations by the compiled ODE."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response

from espinn_moe.head import Array
from registry.records import ContingencyRecord
from registry.service.api.messages import BoundaryOut, RankedOut, ReferenceOut, ScenarioOut
from registry.service.api.models import Listed, Measurement, intervals_of
from registry.service.api.parts import LARGEST, At, TheService, only_known_parameters
from registry.service.curves import curve_of, strict_points
from registry.service.points import head_at, point_of_head
from registry.service.problems import invalid
from registry.service.ranking import Asked, rank
from registry.service.state import Service
from registry.service.whatif import MAX_SEVERITIES
from registry.store import contingencies, deployments, heads
from registry.store.deployments import PRODUCTION

router = APIRouter(prefix="/api/v1", dependencies=[Depends(only_known_parameters)], tags=["asking"])

Severity = Annotated[float, Query(ge=0, le=1e6, allow_inf_nan=False)]


@router.get("/ranking")
def get_ranking(
    service: TheService,
    at: At,
    system: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    alpha: Annotated[float | None, Query(ge=0, le=1e6, allow_inf_nan=False)] = None,
    alias: str = PRODUCTION,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> Listed[RankedOut]:
    """All contingencies of a system at a severity (default: each one's largest), most critical first.

    Conditions name an operating point; a head that does not know them is out of its domain there.
    """
    ranked = rank(service.registry, Asked(system, alpha, alias, at))
    return Listed(items=[RankedOut.model_validate(one) for one in ranked[:limit]], next=None)


@router.get("/contingencies/{name}/boundary", responses={304: {"description": "unchanged"}})
def get_boundary(
    service: TheService,
    request: Request,
    response: Response,
    at: At,
    name: str,
    head: Annotated[int | None, Query(ge=1, le=LARGEST, description="default: the one that answers")] = None,
    other: Annotated[int | None, Query(ge=1, le=LARGEST, description="a head to compare with")] = None,
    alias: str = PRODUCTION,
) -> BoundaryOut:
    """The boundary of a head at an operating point; its ETag names both, and neither ever changes."""
    database = service.home.database
    record = deployments.active(database, name, alias).head if head is None else heads.get(database, head)
    if record.contingency.name != contingencies.find(database, name).name:
        raise invalid(f"head {record.id} belongs to {record.contingency.name!r}, not to {name[:100]!r}.")
    place = "".join(f";{key}={value!r}" for key, value in sorted(at.items()))
    etag = f'"head-{record.id}{place}"' if other is None else f'"head-{record.id}-{other}{place}"'
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    if request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=dict(response.headers))  # type: ignore[return-value]
    loaded = head_at(service.registry.head(record), record.contingency.name, at)
    curve = curve_of(loaded)
    return BoundaryOut(
        contingency=record.contingency.name,
        head=record.id,
        alpha=curve.alpha.tolist(),
        duration_s=curve.duration_s.tolist(),
        slope_s=curve.slope_s.tolist(),
        breaks=curve.breaks,
        censored=intervals_of(curve.censored),
        conditions=point_of_head(loaded),
        error_bound_s=loaded.error_bound_s,
        bound_s=_or_none(curve.bound_s),
        strict=[
            Measurement(alpha=alpha, duration_s=None if cct is None else cct - loaded.t_f, status=status)
            for alpha, cct, status in strict_points(record)
        ],
        other_duration_s=None if other is None else _durations(service, other, curve.alpha, at),
    )


@router.get("/contingencies/{name}/reference", responses={429: {"description": "busy"}})
async def get_reference(
    service: TheService, at: At, name: str, alpha: Annotated[list[Severity], Query()]
) -> ReferenceOut:
    """Critical clearing times by the compiled ODE at an operating point, whether or not a head is deployed."""
    if len(alpha) > MAX_SEVERITIES:
        raise invalid(f"{len(alpha)} severities are too many to simulate; ask for at most {MAX_SEVERITIES}.")
    row = await to_thread.run_sync(_find, service, name)
    found = await service.whatif.run(lambda: [service.whatif.reference(row, one, at) for one in alpha])
    return ReferenceOut(
        contingency=row.name,
        version=row.version,
        conditions=service.whatif.operators(row, at).point.to_dict(),
        alpha=alpha,
        status=[one.status for one in found],
        cct_s=[one.cct for one in found],
        duration_s=[one.duration for one in found],
        restabilises=[one.restabilises for one in found],
    )


@router.get("/contingencies/{name}/simulate", responses={429: {"description": "busy"}})
async def get_scenario(
    service: TheService, at: At, name: str, alpha: Severity, t_c: Annotated[float, Query(allow_inf_nan=False)]
) -> ScenarioOut:
    """One scenario by the compiled ODE at an operating point: angles, speeds and whether it stays in step.

    `t_c` is an instant, s.
    """
    row = await to_thread.run_sync(_find, service, name)
    scenario = await service.whatif.run(service.whatif.simulate, row, alpha, t_c, at)
    return ScenarioOut(
        contingency=row.name,
        version=row.version,
        conditions=scenario.at,
        alpha=alpha,
        t_c_s=t_c,
        duration_s=t_c - scenario.cct.t_f,
        stable=scenario.stable,
        sentence=scenario.sentence,
        spare_s=scenario.spare_s,
        cct_s=scenario.cct.cct,
        status=scenario.cct.status,
        separation_rad=scenario.separation_rad,
        max_separation_rad=scenario.max_separation_rad,
        at_s=scenario.at_s,
        t_s=np.round(scenario.t, 6).tolist(),
        machines=list(scenario.machines),
        delta_rad=np.round(scenario.delta.T, 6).tolist(),
        omega_pu=np.round(scenario.omega.T, 8).tolist(),
    )


def _durations(service: Service, number: int, alpha: Array, at: Mapping[str, float]) -> list[float | None]:
    """What a head says at some severities, s; None unless finite."""
    record = heads.get(service.home.database, number)
    head = head_at(service.registry.head(record), record.contingency.name, at)
    return _or_none(head.answers(alpha)[0] - head.t_f)


def _or_none(values: Array) -> list[float | None]:
    return [float(one) if np.isfinite(one) else None for one in values]


def _find(service: Service, name: str) -> ContingencyRecord:
    return contingencies.find(service.home.database, name)
