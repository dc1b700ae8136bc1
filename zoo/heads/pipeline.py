"""From registered contingencies to deployed heads: one training, then boundary, head, gate and deployment per member.

Every step is done once: run again after an interruption, the same request continues where it was. A member whose head
does not pass the gate is not deployed and says why. A member that is censored at every severity gets a
head that answers with that status and has no number in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from contingencies.errors import GateError, NotFoundError, ZooError
from registry.home import Home
from registry.records import ContingencyRecord, HeadRecord
from registry.store import contingencies as contingency_store
from registry.store import heads, runs
from registry.store.deployments import PRODUCTION, Gate
from zoo.work.executor import Executor
from zoo.work.jobs import FOLDER, Done, Job, Results, run_jobs

if TYPE_CHECKING:
    from zoo.training.session import TrainingRequest

STRICT = 6  # severities per member asked of the strict ODE; each costs seconds
Stage = Literal["train", "distill"]
Report = Callable[[Stage, float, str], None]  # stage, done part of it, a few words


def _silent(stage: Stage, done: float, words: str) -> None:
    """Report nothing."""


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
    home: Home,
    rows: Sequence[ContingencyRecord],
    request: "TrainingRequest",
    executor: Executor,
    *,
    url: str | None = None,
    strict: int = STRICT,
    gate: Gate | None = None,
    alias: str = PRODUCTION,
    reason: str = "pipeline",
    fresh: bool = False,
    report: Report = _silent,
) -> PipelineResult:
    """Train once, then distill, measure and deploy every member.

    Parameters
    ----------
    home : Home
    rows : sequence of ContingencyRecord
        Registered contingencies; several need a model for families.
    request : TrainingRequest
    executor : Executor
        Where the members are distilled.
    url : str, optional
        The registry, when it is not the home's own.
    strict : int
        Severities of each head that are measured against the strict ODE.
    gate : Gate, optional
        Largest errors with which a head is deployed.
    alias, reason : str
        Of the deployments.
    fresh : bool
        Train and distill anew, although it has been done.
    report : callable
        Told the stage, the part of it that is done, and a few words.
    """
    trained = _train_once(home, rows, request, fresh, report)
    jobs = [_distill_job(home, row, trained, strict, url) for row in rows]
    results = Results(home.path / FOLDER)
    for job, row in zip(jobs, rows, strict=True):
        if fresh or not _has_head(home, row, results.get(job.key)):
            results.path(job.key).unlink(missing_ok=True)

    def tell(item: Done, done: int, total: int) -> None:
        report("distill", done / total, f"{done} of {total} heads")

    report("distill", 0.0, f"0 of {len(jobs)} heads")
    made = run_jobs(jobs, executor, results.folder, tell)
    members = tuple(_deploy(home, row, item, gate, alias, reason) for row, item in zip(rows, made, strict=True))
    return PipelineResult(
        request.model, trained["checkpoint"], trained["parameters"], trained["now"], trained["training_s"], members
    )


# --- training ---------------------------------------------------------------------------------


def _train_once(
    home: Home, rows: Sequence[ContingencyRecord], request: "TrainingRequest", fresh: bool, report: Report
) -> dict[str, Any]:
    """The checkpoint of a request: found when the same has been trained before."""
    job = Job("zoo.training.session:train_surrogate", {**asdict(request), "members": [row.sha256 for row in rows]}, {})
    results = Results(home.path / FOLDER)
    known = None if fresh else results.get(job.key)
    if known is not None and _is_there(home, known):
        report("train", 1.0, "trained before")
        return {**known, "now": False}
    from zoo.training.session import train_surrogate

    def tell(progress: Any) -> None:
        error = "" if progress.validation is None else f", CCT error {1e3 * progress.validation:.3g} ms"
        report("train", progress.done, f"loss {progress.loss:.2e}{error}, {progress.left_s:.0f} s left")

    def measured(done: int, total: int) -> None:
        report("train", 1.0, f"compared with the reference ODE: {done} of {total}")

    trained = train_surrogate(home, rows, request, resume=not fresh, report=tell, measured=measured)
    made = {
        "checkpoint": trained.checkpoint_id,
        "digest": runs.get_checkpoint(home.database, trained.checkpoint_id).digest,
        "parameters": trained.parameters,
        "training_s": trained.result.elapsed_s,
    }
    results.put(job, made)
    return {**made, "now": True}


def _is_there(home: Home, known: dict[str, Any]) -> bool:
    """Whether the registry still has the checkpoint that a result speaks of."""
    try:
        checkpoint = runs.get_checkpoint(home.database, known["checkpoint"])
        return checkpoint.digest == known["digest"] and bool(home.load_checkpoint(checkpoint))
    except ZooError:
        return False


# --- heads ------------------------------------------------------------------------------------


def _distill_job(home: Home, row: ContingencyRecord, trained: dict[str, Any], strict: int, url: str | None) -> Job:
    inputs = {"contingency": row.sha256, "digest": trained["digest"], "strict": strict}
    context = {"checkpoint": trained["checkpoint"], "home": str(home.path.resolve()), "url": url}
    return Job("zoo.heads.pipeline:distill_member", inputs, context)


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
    from zoo.heads.distill import distill

    with Home.open(home, url, create=False) as opened:
        row = contingency_store.find_sha256(opened.database, contingency)
        if row is None:
            raise NotFoundError(f"contingency {contingency[:12]} is not registered any more.")
        head = distill(opened, row, str(checkpoint), strict=strict)
    return {"head": head.id, "digest": head.digest}


def _has_head(home: Home, row: ContingencyRecord, known: dict[str, Any] | None) -> bool:
    """Whether the registry still has the head that a result speaks of."""
    if known is None or "lost" in known:  # an older version's, whose heads do not carry their statuses
        return False
    try:
        head = heads.get(home.database, known["head"])
        return head.digest == known["digest"] and head.contingency_id == row.id
    except ZooError:
        return False


def _deploy(home: Home, row: ContingencyRecord, item: Done, gate: Gate | None, alias: str, reason: str) -> MemberResult:
    if item.result is None:
        detail = item.error or "no result"
        return MemberResult(row.name, row.version, "failed", "unknown", None, None, None, None, detail)
    head = heads.get(home.database, item.result["head"])
    outcome: Literal["deployed", "refused"] = "deployed"
    detail = ""
    try:
        home.deploy(row.name, head.id, alias=alias, reason=reason, gate=gate)
    except GateError as error:
        outcome, detail = "refused", str(error)
    errors = (head.strict_mae_s, head.strict_max_s, head.error_bound_s)
    return MemberResult(row.name, row.version, outcome, head_status(head), head.id, *errors, detail)


def head_status(head: HeadRecord) -> str:
    """ "finite" when some severity has a number; otherwise what every severity is, such as right-censored."""
    found = sorted({status for _, _, status in head.intervals})
    return "finite" if "finite" in found else " or ".join(found)
