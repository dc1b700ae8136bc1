"""Finding and loading systems and contingencies: shipped ones by name, the user's own by path.

The values here carry all that the compiler needs: a `Contingency` holds its `System`, and a
system read from a network file holds the file's bytes, so that nothing is looked up again later.
"""

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from pathlib import Path

from contingencies.documents import Document, FieldPath, dotted, read_documents, validate
from contingencies.errors import NotFoundError, Problems, SpecError, UsageError, ZooError, did_you_mean
from contingencies.files import read_regular
from contingencies.records import Record
from contingencies.spec import ContingencySpec, canonical_json, sha256
from contingencies.system_specs import MachineFile, NetworkFile, SystemDocument, SystemSpec

MAX_NETWORK_BYTES = 500_000_000  # the largest public cases have some 100 MB
NETWORK_SUFFIXES = (".json", ".m", ".mat", ".raw")
SPEC_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class System:
    """A system description and, for a network from a file, the bytes of that file."""

    spec: SystemSpec
    network_file: bytes | None = None
    origin: Document | None = field(default=None, compare=False, repr=False)  # the file it was read from

    def where(self, *path: str | int) -> str:
        """How a complaint about a field begins: file and line where they are known, else the name."""
        return _where(self.origin, f"system {self.name}", path)

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def canonical_json(self) -> str:
        """Physics only; a network file is named by its content."""
        if self.network_file is None:
            return canonical_json(self.spec)
        return self._named_by_content("; read directly" if self.misread_before else "")

    @cached_property
    def sha256(self) -> str:
        return sha256(self.canonical_json)

    @cached_property
    def earlier_sha256(self) -> str:
        """The identity that releases up to 0.1 gave the system; another one where they read its file wrongly."""
        return sha256(self._named_by_content("")) if self.misread_before else self.sha256

    @cached_property
    def misread_before(self) -> tuple[str, ...]:
        """What releases up to 0.1 read wrongly in the MATPOWER file of the system; mostly nothing."""
        if self.network_file is None or self.network_suffix not in (".m", ".mat"):
            return ()
        from contingencies.formats.matpower import read_matpower
        from contingencies.formats.misread import misread_features

        try:
            return misread_features(read_matpower(self.network_file, self.network_suffix, self.name))
        except SpecError:  # told when the network is solved
            return ()

    def _named_by_content(self, reading: str) -> str:
        assert self.network_file is not None
        return canonical_json(self.spec, network=f"sha256:{sha256(self.network_file)}{self.network_suffix}{reading}")

    @property
    def network_suffix(self) -> str:
        """`.json`, `.m`, `.mat` or `.raw` for a network from a file, else empty."""
        network = self.spec.network
        return Path(network.file).suffix.lower() if isinstance(network, NetworkFile) else ""

    def to_json(self) -> str:
        """The whole description, prose included; `System.from_json` reads it back."""
        return self.spec.model_dump_json()

    @staticmethod
    def from_json(text: str, network_file: bytes | None = None) -> "System":
        """A system from `to_json` and the bytes of its network file, if it has one."""
        return System(SystemSpec.model_validate_json(text), network_file)


@dataclass(frozen=True)
class Contingency:
    """A contingency description together with its system."""

    spec: ContingencySpec
    system: System
    origin: Document | None = field(default=None, compare=False, repr=False)  # the file it was read from

    def where(self, *path: str | int) -> str:
        """How a complaint about a field begins: file and line where they are known, else the name."""
        return _where(self.origin, self.name, path)

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def canonical_json(self) -> str:
        """Physics only; the system is named by its SHA-256, so other machine data is another contingency."""
        return canonical_json(self.spec, system=f"sha256:{self.system.sha256}")

    @cached_property
    def sha256(self) -> str:
        return sha256(self.canonical_json)

    @property
    def earlier_sha256(self) -> str:
        """The identity under which releases up to 0.1 registered it, see `System.earlier_sha256`."""
        return sha256(canonical_json(self.spec, system=f"sha256:{self.system.earlier_sha256}"))

    def to_json(self) -> str:
        """The whole description, prose included; `Contingency.from_json` reads it back."""
        return self.spec.model_dump_json()

    @staticmethod
    def from_json(text: str, system: System) -> "Contingency":
        """A contingency from `to_json` and its system."""
        return Contingency(ContingencySpec.model_validate_json(text), system)


def _where(origin: Document | None, name: str, path: FieldPath) -> str:
    return f"{name}: {dotted(path)}" if origin is None else origin.where(path)


def json_schema(record: type[Record]) -> str:
    """JSON Schema of a system or contingency file, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **record.model_json_schema()}
    return json.dumps(schema, indent=2, sort_keys=False)


# --- shipped ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _shipped(folder: str) -> dict[str, Path]:
    root = Path(str(files("contingencies"))) / folder
    return {path.stem: path for path in sorted(root.glob("*.yaml"))}


def shipped_systems() -> list[str]:
    """Names of the shipped systems."""
    return list(_shipped("systems"))


def shipped_contingencies() -> list[str]:
    """Names of the shipped contingencies."""
    return list(_shipped("catalogue"))


def shipped_file(contingency: str) -> Path:
    """The file of a shipped contingency."""
    return _shipped("catalogue")[contingency]


# --- loading ----------------------------------------------------------------------------------


class SystemReader:
    """Reads systems and keeps them, so that each is read once for all contingencies that name it."""

    def __init__(self) -> None:
        self._read: dict[Path, System | ZooError] = {}

    def load(self, reference: str, relative_to: Path | None = None) -> System:
        """A shipped system by name, or a system file by path (relative to `relative_to`)."""
        shipped = _shipped("systems")
        if reference not in shipped and not reference.endswith(SPEC_SUFFIXES):
            if ((relative_to or Path()) / reference).is_file():
                raise UsageError(
                    f"{reference[:100]}: not a system file (.yaml). 'cct-zoo import' makes one from a PSS/E file; "
                    "for MATPOWER and pandapower write one that names the file under network (docs/own-network.md)."
                )
            raise NotFoundError(
                f"system {reference[:100]!r} is not shipped; use one of {', '.join(shipped)}, "
                f"or the path of a system file (.yaml).{did_you_mean(reference, shipped)}"
            )
        path = shipped.get(reference) or (relative_to or Path()) / reference
        if path not in self._read:
            try:
                self._read[path] = _system_file(path)
            except ZooError as error:  # a mistake is not read again either
                self._read[path] = error
        system = self._read[path]
        if isinstance(system, ZooError):
            raise system
        return system


def load_system(reference: str, relative_to: Path | None = None) -> System:
    """A shipped system by name, or a system file by path (relative to `relative_to`)."""
    return SystemReader().load(reference, relative_to)


def _system_file(path: Path) -> System:
    documents = read_documents(path)
    if len(documents) != 1:
        raise SpecError(f"{path}: holds {len(documents)} documents; a system file describes one system.")
    document = documents[0]
    if _describes(document, "fault", "machines"):
        raise SpecError(f"{path}: describes a contingency, not a system; give the file that its field system names.")
    spec = validate(SystemDocument, document)
    content = None
    if isinstance(spec.network, NetworkFile):
        if Path(spec.network.file).suffix.lower() not in NETWORK_SUFFIXES:
            raise SpecError(
                f"{document.where(('network', 'file'))}: {spec.network.file!r} is no known network format; "
                "use PSS/E (.raw), MATPOWER (.m, .mat) or pandapower JSON (.json)."
            )
        content = _file_beside(path, spec.network.file, document, ("network", "file"))
    if isinstance(spec.network, NetworkFile) and content and Path(spec.network.file).suffix.lower() == ".raw":
        from contingencies.psse_systems import psse_system

        beside = partial(_file_beside, path, document=document, field=("machines", "file"))
        return System(psse_system(spec, document, content, beside), content, document)
    if isinstance(spec.machines, MachineFile):
        raise SpecError(
            f"{document.where(('machines', 'file'))}: a DYR file names the units of a RAW file, which this network is "
            "not; use network: {file: CASE.raw}, or write base and units."
        )
    return System(SystemSpec.model_validate(spec.model_dump()), content, document)


def _describes(document: Document, field: str, other: str) -> bool:
    """Whether a document has a field that only one kind of file has, and not the one of the other kind."""
    return isinstance(document.content, dict) and field in document.content and other not in document.content


def _file_beside(path: Path, name: str, document: Document, field: FieldPath) -> bytes:
    """The bytes of a file that a system file names."""
    try:
        return read_regular(path.parent / name, MAX_NETWORK_BYTES)
    except ZooError as error:
        raise SpecError(
            f"{document.where(field)}: {name!r} cannot be read ({error}) The path is relative to the system file."
        ) from None


def load_contingencies(path: Path, systems: SystemReader | None = None) -> list[Contingency]:
    """All contingencies of a YAML file; every document must be valid, or none is accepted.

    The mistakes of all documents are told together. With one `systems` for several files, each system is read once.
    """
    systems = systems or SystemReader()
    documents = read_documents(path)
    if not documents:
        raise SpecError(f"{path}: holds no contingency; write at least one document.")
    problems = Problems()
    contingencies: list[Contingency] = []
    first_line: dict[str, int] = {}
    for document in documents:
        with problems.gather():
            contingency = _contingency(document, path, systems)
            first = first_line.setdefault(contingency.name, document.line_of(("name",)))
            if first != document.line_of(("name",)):
                raise SpecError(
                    f"{document.where(('name',))}: {contingency.name!r} stands already in line {first}; "
                    "give each contingency its own name."
                )
            contingencies.append(contingency)
    problems.raise_any()
    return contingencies


def _contingency(document: Document, path: Path, systems: SystemReader) -> Contingency:
    if _describes(document, "machines", "fault"):
        raise SpecError(
            f"{path}: describes a system, not a contingency; write a contingency that names it (system: {path.name}), "
            "or make a family of them with 'cct-zoo generate-contingencies'."
        )
    spec = validate(ContingencySpec, document)
    try:
        return Contingency(spec, systems.load(spec.system, path.parent), document)
    except NotFoundError as error:
        raise SpecError(f"{document.where(('system',))}: {error}") from None


def load_contingency(reference: str) -> Contingency:
    """A shipped contingency by name, or the only one of a YAML file."""
    shipped = _shipped("catalogue")
    if reference in shipped:
        return load_contingencies(shipped[reference])[0]
    if not reference.endswith(SPEC_SUFFIXES):
        raise NotFoundError(
            f"contingency {reference[:100]!r} is not known; 'cct-zoo contingencies' lists those there are, "
            f"or give the path of a YAML file.{did_you_mean(reference, shipped)}"
        )
    found = load_contingencies(Path(reference))
    if len(found) != 1:
        names = ", ".join(contingency.name for contingency in found[:5])
        raise SpecError(
            f"{reference}: holds {len(found)} contingencies ({names}, ...); register the file, then name one of them."
        )
    return found[0]
