"""Writing files so that nobody ever sees a half-written one."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contingencies.errors import UsageError, ZooError


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file so that a crash, a full disk or a kill leaves either the old or the new one, whole and on disk."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a crash, a full disk or a kill leaves either the old or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content)
    except OSError as error:
        raise ZooError(
            f"{str(path)!r} cannot be written ({error.strerror}); what was saved before is kept: "
            "make room and run the same command again."
        ) from None


@contextmanager
def user_file(path: Path) -> Iterator[Path]:
    """`written_whole` for a file the user asked for: a place that cannot be written is the user's to mend."""
    try:
        with written_whole(path) as temporary:
            yield temporary
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); choose another place.") from None
