"""What the registry and the diary hear of a training: its run, heartbeat, curves, and how it ended."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from contingencies.errors import ConflictError, IntegrityError, NotFoundError, ZooError
from contingencies.files import write_atomically
from espinn_moe.plan import Progress
from registry.home import Home
from registry.records import ContingencyRecord, RunRecord
from registry.spool import RunSpool
from registry.store import runs
from registry.synchronising import SILENT_FOR
from zoo.plots import FOLDER as FIGURES
from zoo.surrogates.catalogue import entry_of
from zoo.training.figures import save_training_figures
from zoo.training.lock import Lock
from zoo.training.outcome import Trained
from zoo.training.request import Prepared
from zoo.work.code import code_version

HEARTBEAT_S = 15.0
RECORD_S = 5.0  # between points of the curves in the run's diary


class Record:
    """The run of a training in the registry and in the diary.

    A run that a killed process left open is taken up again when its state is there to be continued, and closed when
    its training starts anew. Whoever holds the lock of the training knows that no other process works for that run.

    Parameters
    ----------
    home : Home
    rows : sequence of ContingencyRecord
        The members that are trained.
    prepared : Prepared
    lock : Lock
        Of this training.
    resumed : bool
        Whether an unfinished state is continued.
    """

    def __init__(
        self, home: Home, rows: Sequence[ContingencyRecord], prepared: Prepared, lock: Lock, resumed: bool
    ) -> None:
        self.home, self.lock = home, lock
        self.note = lock.path.with_suffix(".json")  # which run an unfinished state belongs to
        request = prepared.request
        earlier = self._open_run()
        self.row = earlier if earlier is not None and resumed else self._start(rows, prepared)
        if earlier is not None and earlier.id != self.row.id:
            with suppress(ConflictError):
                runs.fail_run(home.database, earlier.id, f"its process was killed; run {self.row.id} trained anew")
        runs.mark_stale(home.database, SILENT_FOR)  # those of processes killed elsewhere
        self.spool = RunSpool(home.path, f"{request.model} {rows[0].name}", uid=self.row.uid)
        self.spool.params(_flat({**prepared.config, "code_version": code_version(), **prepared.balance}))
        self.spool.tags({"contingencies": ",".join(row.name for row in rows), "model": request.model})
        self.last_beat = self.last_point = 0.0

    def _open_run(self) -> RunRecord | None:
        """The run that a killed process left open, if there is one."""
        try:
            row = runs.get_run(self.home.database, json.loads(self.note.read_text())["run"])
        except (OSError, ValueError, KeyError, TypeError, NotFoundError):
            return None
        return row if runs.heartbeat(self.home.database, row.id) else None

    def _start(self, rows: Sequence[ContingencyRecord], prepared: Prepared) -> RunRecord:
        database, request = self.home.database, prepared.request
        members = [
            (row.id, runs.add_dataset(database, row.id, s.digest, s.description, s.fraction, s.seed).id)
            for row, s in zip(rows, prepared.scenarios, strict=True)
        ]
        entry = entry_of(request.model)
        row = runs.start_run(
            database, "moe" if entry.family else entry.mode, request.model, members, config=prepared.config,
            seed=request.seed, fraction=request.fraction, code_version=code_version(),
        )  # fmt: skip
        write_atomically(self.note, json.dumps({"run": row.id}).encode())
        return row

    def beat(self, progress: Progress) -> None:
        """Say that the run lives and note its curves; a registry or disk in trouble does not stop the training."""
        self.say_alive()
        now = time.monotonic()
        if now - self.last_point >= RECORD_S or progress.done >= 1.0:
            self.last_point = now
            values = {"done": progress.done, "loss": progress.loss, "learning_rate": progress.learning_rate}
            values |= progress.terms
            if progress.validation is not None:
                values["validation_cct_ms"] = 1e3 * progress.validation
            with suppress(OSError):
                self.spool.metrics(values, progress.step)

    def say_alive(self) -> None:
        """Beat, unless that was done a moment ago; raises when the run has been given up or the home is gone."""
        now, alive = time.monotonic(), True
        if now - self.last_beat >= HEARTBEAT_S:
            self.last_beat = now
            self.lock.check()
            try:
                alive = runs.heartbeat(self.home.database, self.row.id)
            except IntegrityError:
                raise  # removed, replaced or altered: what is trained could not be stored
            except ZooError:
                pass  # busy or out of reach for a moment; a training of hours does not end for that
        if not alive:
            raise ConflictError(
                f"run {self.row.id} was given up as stale while it trained; start it again, its state is kept."
            )

    def finish(self, trained: Trained) -> None:
        """The training is finished and its checkpoint kept."""
        runs.finish_run(self.home.database, self.row.id, trained.metrics)  # first: a failing figure must not undo it
        self.note.unlink(missing_ok=True)
        figures = save_training_figures(self.home.path / FIGURES / self.row.uid, trained.surrogate, trained.boundaries)
        self.spool.metrics(trained.metrics, trained.result.steps)
        self.spool.tags({"checkpoint": trained.checkpoint.id})
        self.spool.files(figures)
        self.spool.finish()

    def fail(self, error: BaseException) -> None:
        """The training has ended without a checkpoint to use."""
        interrupted = isinstance(error, KeyboardInterrupt)
        text = "interrupted; the same command resumes it" if interrupted else str(error) or type(error).__name__
        with suppress(OSError):
            self.spool.finish("KILLED" if interrupted else "FAILED")
        with suppress(ZooError):  # what went wrong first is what must be told
            runs.fail_run(self.home.database, self.row.id, text)


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with dotted names, for the diary."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": v for inner, v in _flat(value).items()})
        else:
            flat[key] = value
    return flat
