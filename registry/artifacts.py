"""Content-addressed files of a zoo home, written atomically and verified on every load.

A file's name is the SHA-256 of its content, so a reference is a digest and never a path: a
home can be moved or copied. Nothing is ever unpickled. Symbolic links and anything that is
not a plain file are refused.
"""

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from contingencies.errors import IntegrityError, ZooError
from contingencies.files import write_durably
from registry.locking import locked
from registry.steps import step

_DIGEST = re.compile(r"^[0-9a-f]{64}\Z")
FOLDER = "artifacts"
LOCK_FILE = ".lock"


@dataclass(frozen=True)
class StoredFile:
    """A file found in the store, whether or not it belongs there."""

    path: Path
    digest: str | None  # None when its place is not that of an artifact
    size: int
    age_s: float


class Artifacts:
    """The artifact store of one home folder."""

    def __init__(self, home: Path) -> None:
        self.root = home / FOLDER

    def path(self, digest: str) -> Path:
        """Where the content with this digest lies; anything but a digest is refused."""
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            raise IntegrityError(f"artifact {str(digest)[:80]!r} is not a SHA-256 digest; the reference is damaged.")
        return self.root / digest[:2] / digest[2:]

    def put(self, content: bytes) -> str:
        """Store content and return its digest; storing it again changes nothing.

        The content is on disk before the digest is returned, so a row that refers to it can
        be committed afterwards.
        """
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(digest)
        try:
            if self._holds(path, content):
                os.utime(path)  # tells a concurrent clean-up that somebody is about to refer to it
                return digest
            for folder in (self.root, path.parent):  # not the home: one that vanished must not come back empty
                folder.mkdir(exist_ok=True)
            step("write a file")
            write_durably(path, content)
            step("make a file durable")
            _sync_folder(path.parent)
            _sync_folder(self.root)
        except OSError as error:
            raise self._unwritable(error) from None
        return digest

    def get(self, digest: str) -> bytes:
        """The content with this digest, or an IntegrityError."""
        path = self.path(digest)
        short = digest[:12]
        try:
            if path.parent.is_symlink():
                raise IntegrityError(
                    f"artifact {short}: its folder is a symbolic link; restore it from a copy of the home."
                )
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise IntegrityError(
                f"artifact {short} is missing; restore it from a copy of the home, or make it again."
            ) from None
        except OSError as error:
            raise IntegrityError(f"artifact {short} cannot be opened as a plain file ({error.strerror}).") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IntegrityError(f"artifact {short} is not a plain file; restore it from a copy of the home.")
        with open(descriptor, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise IntegrityError(
                f"artifact {short} is damaged: its content does not have its digest; restore it or make it again."
            )
        return content

    def files(self) -> Iterator[StoredFile]:
        """Every file under the store, temporary and foreign ones included."""
        now = time.time()
        for folder, names, files in os.walk(self.root):
            names[:] = [name for name in names if not (Path(folder) / name).is_symlink()]
            for name in files:
                path = Path(folder) / name
                if path == self.root / LOCK_FILE:
                    continue
                digest = path.parent.name + name
                known = bool(_DIGEST.match(digest)) and path == self.path(digest)
                with contextlib.suppress(FileNotFoundError):
                    info = path.lstat()
                    yield StoredFile(path, digest if known else None, info.st_size, now - info.st_mtime)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Between storing a file and committing the row that refers to it, no clean-up may come."""
        with self._locked(shared=True):
            yield

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """While a clean-up decides about a file, nobody is about to refer to one."""
        with self._locked(shared=False):
            yield

    @contextmanager
    def _locked(self, shared: bool) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                self.root.mkdir(exist_ok=True)
                stack.enter_context(locked(self.root / LOCK_FILE, shared=shared))
            except OSError as error:
                raise self._unwritable(error) from None
            yield

    def _unwritable(self, error: OSError) -> ZooError:
        gone = "" if self.root.parent.is_dir() else "the home is gone, "
        return ZooError(
            f"artifact cannot be written to {str(self.root)!r} ({gone}{error.strerror}); check space and rights."
        )

    def age_s(self, file: StoredFile) -> float:
        """The present age of a file found by `files`, s; that of one that is gone is infinite."""
        try:
            return time.time() - file.path.lstat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def remove(self, file: StoredFile) -> None:
        """Delete one file found by `files`."""
        with contextlib.suppress(FileNotFoundError):
            file.path.unlink()

    def _holds(self, path: Path, content: bytes) -> bool:
        """Whether the very content lies there already; a damaged file is written anew."""
        if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
            return False
        return path.read_bytes() == content


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; not every file system lets a folder be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
