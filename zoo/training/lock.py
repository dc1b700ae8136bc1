"""One process at a time on one training, and on a home that is still there."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from contingencies.errors import ConflictError, UsageError, ZooError


@dataclass(frozen=True)
class Lock:
    """A lock that is held; its file vanishes only together with the home."""

    path: Path
    file: TextIO

    def check(self) -> None:
        """Refuse to go on when the home was deleted or replaced: what is stored there would be lost without a word."""
        try:
            still_there = os.path.samestat(os.stat(self.path), os.fstat(self.file.fileno()))
        except OSError:
            still_there = False
        if not still_there:
            raise ZooError(
                f"{str(self.path.parent.parent)!r} was deleted or replaced while a training ran in it; nothing more "
                "is stored: restore it, or train again with another --home."
            )


@contextmanager
def only_process(folder: Path, name: str) -> Iterator[Lock]:
    """Hold the lock of a training for as long as the block runs."""
    path = folder / f"{name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(path, "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{str(folder)!r} cannot be written ({error.strerror}); give another --home.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError("this very training already runs in another process; wait for it.") from None
        yield Lock(path, file)
