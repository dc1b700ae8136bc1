"""Routes that change what answers: deploy, roll back, retire, required times. Same gate and record as the commands.

A change names what it replaces: `If-Match: "deployment-7"`, or `"none"` where nothing is deployed, as the ETag of
`GET /deployments/{name}` says. So two people cannot undo each other unawares.
"""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Response

from registry.service.api.messages import DeployIn, ReasonIn, RequiredIn, RequiredOut
from registry.service.api.models import DeploymentOut, Listed
from registry.service.api.parts import Deployer, TheService, in_the_name_of, only_known_parameters
from registry.service.problems import Problem, invalid
from registry.store import contingencies, deployments, required_times
from registry.store.deployments import PRODUCTION, Replaces

router = APIRouter(prefix="/api/v1", dependencies=[Depends(only_known_parameters)], tags=["deploying"])

_TAG = re.compile(r'^"(?:deployment-([1-9][0-9]{0,8})|none)"\Z')
REFUSALS: dict[int | str, dict[str, Any]] = {
    409: {"description": "refused by the gate, or contradictory"},
    412: {"description": "another deployment is active"},
    428: {"description": "If-Match is missing"},
}
IfMatch = Annotated[str | None, Header(description='`"deployment-7"` or `"none"`')]


def tag_of(number: int | None) -> str:
    """The ETag of a slot in which a deployment is active, or none."""
    return '"none"' if number is None else f'"deployment-{number}"'


def replaced_by(if_match: str | None) -> Replaces:
    """What a change says that it replaces."""
    if if_match is None:
        raise Problem(
            428, "precondition", "say what is replaced: send If-Match with the ETag of GET /api/v1/deployments/{name}."
        )
    match = _TAG.match(if_match.strip())
    if not match:
        raise invalid(f'If-Match {if_match[:60]!r} is not valid; send "deployment-NUMBER" or "none", in quotes.')
    return int(match[1]) if match[1] else "nothing"


@router.get("/deployments/{name}")
def get_deployment(service: TheService, response: Response, name: str, alias: str = PRODUCTION) -> DeploymentOut:
    """The deployment that answers now; its ETag is what a change sends as If-Match."""
    row = deployments.active(service.home.database, name, alias)
    response.headers["ETag"] = tag_of(row.id)
    return DeploymentOut.of(row)


@router.post("/deployments/{name}", responses=REFUSALS)
def deploy(
    service: TheService, caller: Deployer, response: Response, name: str, body: DeployIn, if_match: IfMatch = None
) -> DeploymentOut:
    """Let a head answer for a contingency."""
    with in_the_name_of(caller):
        row = service.home.deploy(
            name,
            body.head,
            alias=body.alias,
            reason=body.reason,
            force=body.force,
            accept_worse=body.accept_worse,
            replaces=replaced_by(if_match),
        )
    response.headers["ETag"] = tag_of(row.id)
    return DeploymentOut.of(row)


@router.post("/deployments/{name}/rollback", responses=REFUSALS)
def roll_back(
    service: TheService, caller: Deployer, response: Response, name: str, body: ReasonIn, if_match: IfMatch = None
) -> DeploymentOut:
    """Restore the head that answered before, or the one that was retired."""
    with in_the_name_of(caller):
        row = service.home.rollback(name, alias=body.alias, reason=body.reason, replaces=replaced_by(if_match))
    response.headers["ETag"] = tag_of(row.id)
    return DeploymentOut.of(row)


@router.post("/deployments/{name}/retire", responses=REFUSALS)
def retire(
    service: TheService, caller: Deployer, response: Response, name: str, body: ReasonIn, if_match: IfMatch = None
) -> DeploymentOut:
    """End the deployment: nothing answers any more."""
    with in_the_name_of(caller):
        row = service.home.retire(name, alias=body.alias, reason=body.reason, replaces=replaced_by(if_match))
    response.headers["ETag"] = tag_of(None)
    return DeploymentOut.of(row)


@router.get("/required-times")
def list_required(service: TheService) -> Listed[RequiredOut]:
    """Required times, in order of contingency."""
    rows = required_times.required_times(service.home.database)
    return Listed(items=[RequiredOut.model_validate(row) for row in rows.values()], next=None)


@router.put("/required-times/{name}")
def set_required(service: TheService, caller: Deployer, name: str, body: RequiredIn) -> RequiredOut:
    """Set the time that protection needs for a contingency."""
    with in_the_name_of(caller):
        row = required_times.set_required(service.home.database, name, body.required_s, body.reason)
    return RequiredOut.model_validate(row)


@router.delete("/required-times/{name}", status_code=204)
def remove_required(service: TheService, caller: Deployer, name: str, reason: str = "") -> None:
    """Require nothing of a contingency any more."""
    contingencies.find(service.home.database, name)
    with in_the_name_of(caller):
        required_times.remove_required(service.home.database, name, reason)
