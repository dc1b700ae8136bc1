"""From registered contingencies to deployed heads: one training, then boundary, head, gate and deployment per member.

Every step is done once: run again after an interruption, the same request resumes where it was. A member whose head
does not pass the gate is not deployed and says why. A member that is censored at every severity gets a
head that answers with that status and has no number in it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from contingencies.errors import GateError, NotFoundError, ZooError
from registry.home import Home
from registry.records import ContingencyRecord, HeadRecord
from registry.store import contingencies as contingency_store
from registry.store import heads, runs
from registry.store.deployments import PRODUCTION, Gate
from zoo.heads.distill import HeadSettings, distill
from zoo.training.request import TrainingRequest
from zoo.training.session import Session
from zoo.work.batch import run_jobs
from zoo.work.code import HEADS, code_digest
from zoo.work.executor import Executor
from zoo.work.jobs import FOLDER, Done, Job, Results

STRICT = 6  # severities per member asked of the strict ODE; each costs seconds


@dataclass(frozen=True)
class PipelinePlan:
    """What is trained, how its heads are measured, and how they are deployed."""

    request: TrainingRequest
    strict: int = STRICT  # severities of each head that are measured against the strict ODE
    gate: Gate | None = None  # largest errors with which a head is deployed
    alias: str = PRODUCTION
    reason: str = "pipeline"
    accept_worse: bool = False  # whether a head may replace a better one


@dataclass(frozen=True)
class MemberResult:
    """What became of one contingency."""

    contingency: str
    version: int
    outcome: Literal["deployed", "refused", "failed"]
    status: str  # "finite", or the one status of every severity
    head: int | None
    strict_mae_s: float | None
    strict_max_s: float | None
    error_bound_s: float | None
    detail: str  # why it was refused or failed

    def report(self) -> dict[str, Any]:
        """Plain values for JSON and CSV."""
        return asdict(self)


@dataclass(frozen=True)
class PipelineResult:
    """A trained checkpoint and what became of its members, in their order."""

    model: str
    checkpoint: int
    parameters: int
    trained_now: bool
    training_s: float
    members: tuple[MemberResult, ...]

    def report(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def run_pipeline(
    session: Session, rows: Sequence[ContingencyRecord], plan: PipelinePlan, executor: Executor, url: str | None = None
) -> PipelineResult:
    """Train once, then distill, measure and deploy every member.

    Parameters
    ----------
    session : Session
        Where it is done; without `resume`, everything is done anew.
    rows : sequence of ContingencyRecord
        Registered contingencies; several need a model for families.
    plan : PipelinePlan
    executor : Executor
        Where the members are distilled.
    url : str, optional
        The registry, when it is not the home's own.
    """
    home = session.home
    trained = _train_once(session, rows, plan.request)
    jobs = [_distill_job(home, row, trained, plan.strict, url) for row in rows]
    results = Results(home.path / FOLDER)
    for job, row in zip(jobs, rows, strict=True):
        if not session.resume or not _has_head(home, row, results.get(job)):
            results.forget(job)

    def hear(item: Done, count: int, total: int) -> None:
        session.report("boundaries and heads", count, total)

    session.report("boundaries and heads", 0, len(jobs))
    done = run_jobs(jobs, executor, results.folder, hear, session.say)
    members = tuple(_deploy(home, row, item, plan) for row, item in zip(rows, done, strict=True))
    return PipelineResult(
        plan.request.model, trained["checkpoint"], trained["parameters"], trained["now"], trained["training_s"], members
    )


# --- training ---------------------------------------------------------------------------------


def _train_once(session: Session, rows: Sequence[ContingencyRecord], request: TrainingRequest) -> dict[str, Any]:
    """The checkpoint of a request: found when the same code has trained the same before."""
    inputs = {**asdict(request), "members": [row.sha256 for row in rows]}
    job = Job("zoo.training.session:Session.train", inputs, code=code_digest())
    home, results = session.home, Results(session.home.path / FOLDER)
    earlier = results.get(job) if session.resume else None
    if earlier is not None and _is_there(home, earlier):
        return {**earlier, "now": False}
    if session.resume and results.has_outdated(job):
        session.say("An earlier checkpoint of this request was trained by other code and is not reused.")
    trained = session.train(rows, request)
    result = {
        "checkpoint": trained.checkpoint.id,
        "digest": trained.checkpoint.digest,
        "parameters": trained.checkpoint.parameters,
        "training_s": trained.result.elapsed_s,
    }
    results.put(job, result)
    return {**result, "now": True}


def _is_there(home: Home, trained: dict[str, Any]) -> bool:
    """Whether the registry still has the checkpoint that a result speaks of."""
    try:
        checkpoint = runs.get_checkpoint(home.database, trained["checkpoint"])
        return checkpoint.digest == trained["digest"] and bool(home.load_checkpoint(checkpoint))
    except ZooError:
        return False


# --- heads ------------------------------------------------------------------------------------


def _distill_job(home: Home, row: ContingencyRecord, trained: dict[str, Any], strict: int, url: str | None) -> Job:
    inputs = {"contingency": row.sha256, "digest": trained["digest"], "strict": strict}
    context = {"checkpoint": trained["checkpoint"], "home": str(home.path.resolve()), "url": url}
    return Job("zoo.heads.pipeline:distill_member", inputs, context, code_digest(HEADS), row.name)


def distill_member(
    contingency: str, digest: str, strict: int, checkpoint: int, home: str, url: str | None
) -> dict[str, Any]:
    """In a worker: the boundary of one member, its head, and the head's errors.

    Parameters
    ----------
    contingency, digest : str
        SHA-256 of the member and of the checkpoint's bytes.
    strict : int
        Severities measured against the strict ODE.
    checkpoint : int
    home, url
        Where the registry is.
    """
    with Home.open(home, url, create=False) as opened:
        row = contingency_store.find_sha256(opened.database, contingency)
        if row is None:
            raise NotFoundError(f"contingency {contingency[:12]} is not registered any more.")
        head = distill(opened, row, str(checkpoint), HeadSettings(strict=strict))
    return {"head": head.id, "digest": head.digest}


def _has_head(home: Home, row: ContingencyRecord, distilled: dict[str, Any] | None) -> bool:
    """Whether the registry still has the head that a result speaks of."""
    if distilled is None:
        return False
    try:
        head = heads.get(home.database, distilled["head"])
        return head.digest == distilled["digest"] and head.contingency_id == row.id
    except ZooError:
        return False


def _deploy(home: Home, row: ContingencyRecord, item: Done, plan: PipelinePlan) -> MemberResult:
    if item.result is None:
        detail = item.error or "no result"
        return MemberResult(row.name, row.version, "failed", "unknown", None, None, None, None, detail)
    head = heads.get(home.database, item.result["head"])
    outcome: Literal["deployed", "refused"] = "deployed"
    detail = ""
    try:
        home.deploy(
            row.name,
            head.id,
            alias=plan.alias,
            reason=plan.reason,
            accept_worse=plan.accept_worse,
            gate=plan.gate,
        )
    except GateError as error:
        outcome, detail = "refused", str(error)
    errors = (head.strict_mae_s, head.strict_max_s, head.error_bound_s)
    return MemberResult(row.name, row.version, outcome, head_status(head), head.id, *errors, detail)


def head_status(head: HeadRecord) -> str:
    """ "finite" when some severity has a number; otherwise what every severity is, such as right-censored."""
    statuses = sorted({status for _, _, status in head.intervals})
    return "finite" if "finite" in statuses else " or ".join(statuses)
