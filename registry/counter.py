"""A change counter beside a SQLite registry, so that a reader need not ask SQLite on every query.

SQLite's own files are left alone: closing any descriptor of them drops the locks of the whole process (POSIX), and
another process may then truncate what is in use. The counter is a small file of ours. It is odd while a commit is
on its way and even otherwise, so a reader that finds the same even number twice knows that nothing was committed in
between. Writers move it under a lock (`flock`) that they hold only around their commit; a process killed there
leaves an odd number, which the next writer puts right, or a reader that may write to the counter.
"""

import contextlib
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contingencies.errors import IntegrityError, ZooError
from registry.locking import locked

SUFFIX = "-counter"
SIZE = 8  # bytes: one little-endian number
_NUMBER = struct.Struct("<Q")


def counter_path(database: str | Path) -> Path:
    """The counter of a SQLite file."""
    return Path(f"{os.path.realpath(database)}{SUFFIX}")


@contextmanager
def counted(database: str | Path) -> Iterator[None]:
    """Announce what is committed inside the block; the caller holds SQLite's write lock."""
    path = counter_path(database)
    try:
        with locked(path) as descriptor:  # waits only for the last writer's return from its commit
            number = _read(descriptor, path)
            begun = number + 1 + number % 2
            os.pwrite(descriptor, _NUMBER.pack(begun), 0)
            try:
                yield
            finally:
                os.pwrite(descriptor, _NUMBER.pack(begun + 1), 0)
    except OSError as error:
        raise ZooError(
            f"the registry {str(database)!r} cannot be written ({path.name}: {error.strerror}); check that it is "
            "still there and that you may write to it."
        ) from None


def _read(descriptor: int, path: Path) -> int:
    content = os.pread(descriptor, SIZE + 1, 0)
    if not content:
        return 0
    if len(content) != SIZE:
        raise IntegrityError(f"{str(path)!r} is not a change counter; move it away and try again.")
    return int(_NUMBER.unpack(content)[0])


class CounterView:
    """The counter as a reader sees it: mapped, since a system call would double the cost of a query."""

    def __init__(self, database: str | Path) -> None:
        self._path = counter_path(database)
        self._map: mmap.mmap | None = None
        self._identity: tuple[int, int] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Look again whether there is a counter, and whether it is the same file."""
        try:
            info = os.stat(self._path)
            identity = (info.st_dev, info.st_ino) if info.st_size == SIZE else None
        except OSError:
            identity = None
        if identity == self._identity:
            return
        self.close()
        with contextlib.suppress(OSError, ValueError), open(self._path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
            self._identity = identity

    def settled(self) -> bytes | None:
        """The number, or None while a commit is on its way or no counter can be read."""
        if self._map is None:
            return None
        number = self._map[:SIZE]
        if number[0] & 1:
            self._put_right()
            return None
        return number

    def _put_right(self) -> None:
        """Move a counter on whose writer was killed; one that lives holds the lock."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                number = _NUMBER.unpack(os.pread(descriptor, SIZE, 0))[0]
                os.pwrite(descriptor, _NUMBER.pack(number + number % 2), 0)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._map is not None:
            self._map.close()
        self._map, self._identity = None, None
