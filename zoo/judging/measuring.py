"""Members of a trained surrogate beside the reference ODE: one after the other, or where an executor has room."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contingencies.errors import ZooError
from contingencies.stability import Boundary
from espinn_moe.surrogate import Surrogate
from zoo.judging.certificates import member_certificate
from zoo.judging.unseen import unseen_boundaries
from zoo.work.executor import Executor, Serial
from zoo.work.jobs import Job

FEW = 4  # members that are measured sooner than workers have started


@dataclass(frozen=True)
class MemberMeasured:
    """What is known of one member on the severities that no training set contains."""

    member: int
    learned: Boundary
    truth: Boundary
    certificate: dict[str, float]  # estimated errors, which need no reference


def measure_member(member: int, surrogate: Surrogate) -> MemberMeasured:
    """Boundaries and certificate of one member; also in a worker."""
    learned, truth = unseen_boundaries(surrogate, member)
    return MemberMeasured(member, learned, truth, member_certificate(surrogate, learned, member))


def measure_members(
    surrogate: Surrogate, members: Sequence[int], executor: Executor | None = None
) -> Iterator[MemberMeasured]:
    """All members, each as soon as it is done, in any order."""
    if executor is None or isinstance(executor, Serial) or len(members) < FEW:
        for member in members:
            yield measure_member(member, surrogate)
        return
    context = {"surrogate": surrogate}
    jobs = [Job("zoo.judging.measuring:measure_member", {"member": member}, context) for member in members]
    for done in executor.run(jobs):
        if done.result is None:
            raise ZooError(f"member {done.job.inputs['member']} could not be measured: {done.error}")
        yield done.result
