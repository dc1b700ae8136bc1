"""Checking a home and clearing it up: every row and file verified, unneeded files removed."""

from dataclasses import dataclass, field

from contingencies.errors import ZooError
from registry.artifacts import StoredFile
from registry.home import Home
from registry.steps import step
from registry.store import maintenance

GRACE_S = 3600.0  # a younger file may belong to a row that is about to be committed


@dataclass
class Verdict:
    """What was checked, and everything that is wrong."""

    contingencies: int = 0
    heads: int = 0
    deployments: int = 0
    files: int = 0
    rows: int = 0
    unreferenced: int = 0  # not wrong: 'gc' removes them
    problems: list[str] = field(default_factory=list)


def verify(home: Home) -> Verdict:
    """Check every row and every file of a home."""
    verdict = Verdict()
    verdict.problems += maintenance.database_problems(home.database)
    verdict.rows, altered = maintenance.altered_rows(home.database)
    verdict.problems += altered
    contingencies, unreadable = maintenance.all_contingencies(home.database)
    verdict.problems += unreadable
    for row in contingencies:
        verdict.contingencies += 1
        try:
            home.contingency(row)
        except ZooError as error:
            verdict.problems.append(f"contingency {row.name} version {row.version}: {error}")
    stored_heads, unreadable = maintenance.all_heads(home.database)
    verdict.problems += unreadable
    for head in stored_heads:
        verdict.heads += 1
        try:
            home.load_head(head)
        except ZooError as error:
            verdict.problems.append(f"head {head.id} of {head.contingency.name}: {error}")
    verdict.deployments, wrong = maintenance.deployment_problems(home.database)
    verdict.problems += wrong
    references = maintenance.references(home.database)
    for digest, users in references.items():
        verdict.files += 1
        if all(user.startswith("checkpoint") for user in users):  # the others were read above
            try:
                home.artifacts.get(digest)
            except ZooError as error:
                verdict.problems.append(f"{', '.join(users)}: {error}")
    verdict.unreferenced = sum(file.digest not in references for file in home.artifacts.files())
    verdict.problems = list(dict.fromkeys(verdict.problems))  # a row that others need is met more than once
    return verdict


@dataclass(frozen=True)
class Garbage:
    """What a clean-up removed, or would remove."""

    heads: list[int]
    files: list[StoredFile]
    deleted: bool

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def collect_garbage(home: Home, *, delete: bool, heads: bool = False, grace_s: float = GRACE_S) -> Garbage:
    """Files that no row refers to, and with `heads` those that were never deployed and are superseded.

    Whatever a deployment uses, or ever used, stays: a rollback may need it. Without `delete`
    nothing is changed.
    """
    superseded = maintenance.superseded_heads(home.database, remove=delete) if heads else []
    references = maintenance.references(home.database, without_heads=superseded)
    unneeded = [file for file in home.artifacts.files() if file.digest not in references and file.age_s > grace_s]
    if delete:
        unneeded = [file for file in unneeded if _remove(home, file, grace_s)]
    return Garbage(superseded, unneeded, delete)


def _remove(home: Home, file: StoredFile, grace_s: float) -> bool:
    """Delete a file unless somebody has come to need it since it was listed; nobody can while it is decided."""
    with home.artifacts.undisturbed(), home.database.write() as session:
        needed = file.digest is not None and maintenance.is_referred_to(session, file.digest)
        if needed or home.artifacts.age_s(file) <= grace_s:
            return False
        step("remove a file")
        home.artifacts.remove(file)
        return True
