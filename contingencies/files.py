"""Reading files that users name, which may be anything; writing files so that nobody ever sees a half-written one."""

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contingencies.errors import NotFoundError, SpecError, UsageError, ZooError


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a plain file of at most `limit` bytes; a pipe or a device, which may never end, is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file; check the path.") from None
    except (OSError, ValueError) as error:  # a NUL byte in a path is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise NotFoundError(f"{str(path)!r}: cannot be read ({reason}); check the path.") from None
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise NotFoundError(f"{path}: not a plain file; give the path of one.")
        content = b"" if info.st_size > limit else file.read(limit + 1)
    if info.st_size > limit or len(content) > limit:
        raise SpecError(f"{path}: larger than {limit} bytes; split it, or check that it is the right file.")
    return content


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


def _is_stream(path: Path) -> bool:
    """Whether a path leads to something that is written to rather than replaced: a pipe, a device, /dev/stdout."""
    if path.absolute().parts[:2] == ("/", "dev"):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
    except OSError:  # nothing there yet, or a link that leads nowhere yet
        return False


@contextmanager
def user_file(path: Path) -> Iterator[Path]:
    """`written_whole` for a file the user asked for: a place that cannot be written is the user's to mend.

    A symbolic link stays one, and the file it leads to is replaced; a pipe or a device is written to.
    """
    try:
        if _is_stream(path):
            with tempfile.TemporaryDirectory() as folder:
                temporary = Path(folder) / f"content{path.suffix}"
                yield temporary
                with open(path, "wb") as stream:
                    stream.write(temporary.read_bytes())
        else:
            with written_whole(path.resolve()) as temporary:
                yield temporary
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); choose another place.") from None
