"""A zoo home: one folder with its registry and its artifacts, opened together.

Files go to disk before the row that refers to them is committed, so a process killed at any
moment leaves at worst a file that nothing refers to, never a row without its file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from contingencies.errors import ConflictError, IntegrityError
from espinn_moe.condition_head import AnyHead, read_head
from registry.artifacts import Artifacts
from registry.engine import Database, open_database
from registry.records import CheckpointRecord, ContingencyRecord, DeploymentRecord, HeadRecord, SystemRecord
from registry.store import contingencies as contingency_store
from registry.store import deployments, heads, runs
from registry.store.contingencies import Registered
from registry.store.deployments import PRODUCTION, Gate, Replaces
from registry.store.heads import Measured
from registry.upgrading import make_home

if TYPE_CHECKING:  # a query must not pay for reading YAML
    from contingencies.library import Contingency, System

DEFAULT_HOME = ".cct-zoo"
MAX_SYSTEMS = 8  # that a process keeps; the network file of one may have megabytes

_systems: "dict[tuple[str, str], System]" = {}  # by SHA-256 and description


class Home:
    """Everything that writes to a registry together with its files; close it, or use it with `with`."""

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self.database = database
        self.artifacts = Artifacts(path)

    @staticmethod
    def open(home: str | Path = DEFAULT_HOME, url: str | None = None, create: bool = True) -> "Home":
        """The home folder `home`, with the registry at `url` instead of its own SQLite file if given."""
        path = Path(home)
        if create:
            make_home(path)
        return Home(path, open_database(path, url, create))

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> "Home":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- contingencies ------------------------------------------------------------------------

    def register(self, contingencies: "Sequence[Contingency]") -> list[Registered]:
        """Register contingencies, all or none, with the network files of users' own systems.

        Their physics must have been checked before (`contingencies.reading` compiles them).
        """
        networks = {c.system.sha256: c.system.network_file for c in contingencies}.values()
        with self.artifacts.in_use():
            for content in networks:
                if content is not None:
                    self.artifacts.put(content)
            return contingency_store.register(self.database, contingencies)

    def contingency(self, row: ContingencyRecord) -> "Contingency":
        """The contingency of a row, complete with its network; it must still be what was registered."""
        return self.contingencies([row])[0]

    def contingencies(self, rows: Sequence[ContingencyRecord]) -> "list[Contingency]":
        """The contingencies of rows; those of one system share it, so that it is read and solved once."""
        from contingencies.library import Contingency

        found = []
        for row in rows:
            try:
                contingency = Contingency.from_json(row.spec_json, self._system(row.system))
            except ValueError as error:
                raise IntegrityError(f"contingency {row.name!r} cannot be read ({type(error).__name__}).") from None
            if contingency.sha256 != row.sha256 and contingency.earlier_sha256 == row.sha256:
                raise ConflictError(
                    f"contingency {row.name!r} version {row.version} was registered when its network file was read "
                    f"wrongly ({', '.join(contingency.system.misread_before)}), so its heads are of another network; "
                    "register it again, which makes a new version."
                )
            if contingency.sha256 != row.sha256:
                raise IntegrityError(
                    f"contingency {row.name!r} version {row.version} does not have its SHA-256; it was altered."
                )
            found.append(contingency)
        return found

    def _system(self, row: SystemRecord) -> "System":
        """The system of a row, read once per process: many tasks ask for the members of one family one by one."""
        from contingencies.library import System

        key = (row.sha256, row.spec_json)
        if key not in _systems:
            network = None if row.network_digest is None else self.artifacts.get(row.network_digest)
            if len(_systems) >= MAX_SYSTEMS:
                _systems.clear()
            _systems[key] = System.from_json(row.spec_json, network)
        return _systems[key]

    # --- heads --------------------------------------------------------------------------------

    def add_head(
        self,
        contingency: ContingencyRecord,
        head: AnyHead,
        measured: Measured,
        checkpoint_id: int | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> HeadRecord:
        """Store a head; without `checkpoint_id` its source is the reference."""
        content = replace(head, contingency_sha256=contingency.sha256).to_bytes()
        with self.artifacts.in_use():
            digest = self.artifacts.put(content)
            return heads.add(self.database, contingency.id, head, digest, len(content), measured, checkpoint_id, detail)

    def load_head(self, row: HeadRecord) -> AnyHead:
        """The head of a row, verified.

        It must say that it answers for the row's contingency. Heads of versions before 0.2 say nothing: for them the
        row's own digest vouches, which covers both the contingency and the file.
        """
        head = read_head(self.artifacts.get(row.digest))
        if head.kind != row.kind or head.severity != (row.severity_low, row.severity_high):
            raise IntegrityError(f"head {row.id} is not what its row says; distill it again.")
        if head.contingency_sha256 not in (None, row.contingency.sha256):
            raise IntegrityError(
                f"head {row.id} is stored as one of {row.contingency.name!r}, but was made for another contingency or "
                "another version of it; distill it again."
            )
        return head

    # --- deployments --------------------------------------------------------------------------

    def deploy(
        self,
        name: str,
        head_id: int | None = None,
        *,
        alias: str = PRODUCTION,
        reason: str,
        force: bool = False,
        accept_worse: bool = False,
        gate: Gate | None = None,
        replaces: Replaces = "anything",
    ) -> DeploymentRecord:
        """Deploy a head that can be loaded; see `registry.store.deployments.deploy`."""
        chosen = deployments.choose_head(self.database, name, head_id)
        self.load_head(chosen)  # a head that cannot be loaded must not replace one that answers
        return deployments.deploy(
            self.database,
            name,
            chosen.id,
            alias=alias,
            reason=reason,
            force=force,
            accept_worse=accept_worse,
            gate=gate,
            replaces=replaces,
        )

    def rollback(
        self, name: str, *, alias: str = PRODUCTION, reason: str = "", replaces: Replaces = "anything"
    ) -> DeploymentRecord:
        """Restore the previous deployment; refused inside the transaction when its head cannot be loaded."""
        return deployments.rollback(
            self.database, name, alias=alias, reason=reason, check=self.load_head, replaces=replaces
        )

    def retire(
        self, name: str, *, alias: str = PRODUCTION, reason: str = "", replaces: Replaces = "anything"
    ) -> DeploymentRecord:
        """End the active deployment."""
        return deployments.retire(self.database, name, alias=alias, reason=reason, replaces=replaces)

    # --- checkpoints --------------------------------------------------------------------------

    def add_checkpoint(
        self,
        content: bytes,
        parameters: int,
        kind: str,
        members: Mapping[int, int],
        *,
        run_id: int | None = None,
        parent_id: int | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> CheckpointRecord:
        """Store a checkpoint's bytes and its row; see `registry.store.runs.add_checkpoint`."""
        with self.artifacts.in_use():
            digest = self.artifacts.put(content)
            return runs.add_checkpoint(
                self.database,
                digest,
                len(content),
                parameters,
                kind,
                members,
                run_id=run_id,
                parent_id=parent_id,
                metrics=metrics,
            )

    def load_checkpoint(self, row: CheckpointRecord) -> bytes:
        """The bytes of a checkpoint, verified."""
        return self.artifacts.get(row.digest)
