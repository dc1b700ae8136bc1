"""The errors a user can meet, each with the exit code its command ends with.

The text of an error is one sentence that says what was wrong, where, and how to fix it;
the command line prints it as it stands. Several mistakes that are found together are one error
with a sentence on each line.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

MOST_COMPARED = 2000  # names that a misspelt one is compared with: some milliseconds


class ZooError(Exception):
    """Something the user can mend; `exit_code` is documented in the README."""

    exit_code = 1

    @property
    def sentences(self) -> list[str]:
        """What is to be mended, one sentence each."""
        return str(self).split("\n")


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


class Problems:
    """Mistakes in descriptions, gathered so that a user hears of all of them at once."""

    def __init__(self) -> None:
        self.found: list[ZooError] = []

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Note a mistake of the block instead of ending there."""
        try:
            yield
        except (SpecError, NotFoundError) as error:
            self.found.append(error)

    def raise_any(self) -> None:
        """Raise what was gathered, each sentence once; invalid descriptions decide the exit code."""
        if not self.found:
            return
        kind = SpecError if any(isinstance(error, SpecError) for error in self.found) else NotFoundError
        sentences = dict.fromkeys(sentence for error in self.found for sentence in error.sentences)
        raise kind("\n".join(sentences)) from None


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The end of a sentence that names what a user may have meant; empty where nothing is near."""
    close = get_close_matches(word[:100], list(names)[:MOST_COMPARED], n=2, cutoff=0.6)
    return f" Did you mean {' or '.join(close)}?" if close else ""
