"""The errors a user can meet, each with the exit code its command ends with.

The text of an error is one sentence that says what was wrong, where, and how to fix it;
the command line prints it as it stands.
"""


class ZooError(Exception):
    """Something the user can mend; `exit_code` is documented in the README."""

    exit_code = 1


class UsageError(ZooError):
    """An argument or option that no command could accept."""

    exit_code = 2


class NotFoundError(ZooError):
    """A name, number or file that does not exist."""

    exit_code = 3


class ConflictError(ZooError):
    """A request that contradicts what is already recorded."""

    exit_code = 4


class SpecError(ZooError):
    """A system or contingency description that is not valid."""

    exit_code = 5


class GateError(ZooError):
    """A deployment refused because its measured error exceeds the limit."""

    exit_code = 6


class IntegrityError(ZooError):
    """A stored file or row that is not what was written."""

    exit_code = 7


class SolverError(ZooError):
    """A numerical method that failed; never to be read as instability."""

    exit_code = 1
