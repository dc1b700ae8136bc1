"""Which code decides a result: a digest of its sources, so that results of other code are not taken for its own.

The digest is that of the modules' bytes: a changed comment counts too, because telling what cannot matter costs more
than doing the work again. Sources are read from wherever the packages are installed; nothing heavy is imported.
"""

import hashlib
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

LENGTH = 12  # hexadecimal digits of a digest: two of the versions of anybody's code will not share them

TRAINING = ("contingencies", "espinn_moe", "zoo.surrogates", "zoo.judging", "zoo.training")  # decide a checkpoint
HEADS = (*TRAINING, "zoo.heads")  # decide a head
STUDIES = (*TRAINING, "zoo.studies")  # decide a row of a sweep
PAPER = (*HEADS, "zoo.studies", "zoo.paper")  # decide a number of the paper
MEASURING = (*HEADS, *(f"zoo.paper.{name}" for name in ("andes_rival", "measurements", "members", "roots")))
# With the module of a measurement itself, what decides it: how numbers are presented does not.


@lru_cache(maxsize=32)
def code_digest(packages: tuple[str, ...] = TRAINING) -> str:
    """Digest of all modules of some packages; single modules may be among them."""
    content = hashlib.sha256()
    for package in packages:
        for name, source in _modules(package):
            content.update(f"{package}/{name}\0{len(source)}\0".encode())
            content.update(source)
    return content.hexdigest()[:LENGTH]


def code_version(packages: tuple[str, ...] = TRAINING) -> str:
    """Version of the installed package and digest of the code, as records show them."""
    try:
        released = version("cct-zoo")
    except PackageNotFoundError:
        released = "unknown"
    return f"{released}+{code_digest(packages)}"


def _modules(package: str) -> list[tuple[str, bytes]]:
    """Relative path and content of every module of a package, in order; of a module, its own."""
    spec = find_spec(package)
    assert spec is not None
    if not spec.submodule_search_locations:
        assert spec.origin is not None
        return [(Path(spec.origin).name, Path(spec.origin).read_bytes())]
    root = Path(next(iter(spec.submodule_search_locations)))
    paths = sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix())
    return [(path.relative_to(root).as_posix(), path.read_bytes()) for path in paths]
