"""Locks on files of ours between processes; the system lets go of them when a process dies.

They belong to the open file (`flock`), which a forked child shares, so the child closes those that a thread of its
parent held.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_held: set[int] = set()


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[int]:
    """Hold the lock of a file, which is made when it is missing; gives its descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    _held.add(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield descriptor
    finally:
        _held.discard(descriptor)
        os.close(descriptor)


def _after_fork() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
