"""Training a surrogate from Python, and the boundary that a trained one implies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import ArrayLike

from contingencies.errors import UsageError
from contingencies.network import Float
from contingencies.operators import compile_contingency
from contingencies.point_networks import point_of
from contingencies.references import Reference
from espinn_moe.boundary import checked_severities
from espinn_moe.chained import Chained
from registry.query import Registry
from registry.records import ContingencyRecord
from registry.store import contingencies as store
from zoo.facade.frames import to_frame
from zoo.facade.registries import opened
from zoo.judging.assessment import Assessment, assess_boundary, margin_picture
from zoo.judging.figures import plot_learned_boundary, plot_trained
from zoo.judging.metrics import CCTErrors
from zoo.lookup import find_checkpoint, find_registered
from zoo.surrogates import checkpoints
from zoo.surrogates.catalogue import entry_of
from zoo.surrogates.checkpoints import Loaded
from zoo.surrogates.datasets import evaluation_grid
from zoo.training.outcome import Trained
from zoo.training.request import TrainingRequest
from zoo.training.session import Session
from zoo.work.reporting import Report, Say, quiet, silent


@dataclass(frozen=True, eq=False)
class Training:
    """A finished training: the checkpoint, and how far it is from the reference at severities it has not seen."""

    request: TrainingRequest
    members: tuple[ContingencyRecord, ...]
    trained: Trained

    @property
    def checkpoint(self) -> int:
        """Number of the checkpoint, as `distill(name, source=...)` takes it."""
        return self.trained.checkpoint.id

    @property
    def errors(self) -> dict[str, CCTErrors]:
        """CCT errors on unseen severities, by contingency."""
        return {row.name: error for row, error in zip(self.members, self.trained.errors, strict=True)}

    def to_frame(self) -> Any:
        """A pandas table with one row per contingency and unseen severity: learned and reference CCT, error."""
        rows = []
        for row, (learned, truth) in zip(self.members, self.trained.boundaries.values(), strict=True):
            columns = (learned.alpha, learned.status, learned.cct, truth.status, truth.cct)
            rows += [
                {"contingency": row.name, "alpha": alpha, "status": status, "cct_s": cct, "true_status": true_status,
                 "true_cct_s": true_cct, "error_ms": 1e3 * (cct - true_cct)}
                for alpha, status, cct, true_status, true_cct in zip(*columns, strict=True)
            ]  # fmt: skip
        return to_frame(rows)

    def plot(self) -> Any:
        """A matplotlib figure: learned and reference boundary of each contingency, and the error below."""
        names = [row.name for row in self.members]
        return plot_trained(dict(zip(names, self.trained.boundaries.values(), strict=True)))


def train(
    model: str | TrainingRequest,
    names: str | Sequence[str],
    *,
    registry: Registry | None = None,
    resume: bool = True,
    report: Report = silent,
    say: Say = quiet,
    **options: Any,
) -> Training:
    """Train a surrogate on one contingency, or on a family of them, and keep its checkpoint.

    Parameters
    ----------
    model : str or TrainingRequest
        A name that `cct-zoo models` lists, or the whole request.
    names : str or several
        Registered contingencies; shipped ones are registered on the way. Several need a model for families.
    registry : Registry, optional
        Where it is kept; default: the home of `CCT_ZOO_HOME`, else `.cct-zoo`, made when there is none.
    resume : bool
        Continue an interrupted training of the same request.
    report : callable
        Called with stage, how much is done and of how much.
    say : callable
        Hears that a training resumes.
    options
        Of `TrainingRequest`, where `model` is a name: `fraction`, `seed`, `budget`, `minutes`, `steps` and so on.
    """
    torch.set_num_threads(1)  # two threads on shared cores are slower, and one makes runs reproducible
    request = model if isinstance(model, TrainingRequest) else TrainingRequest(model=model, **options)
    entry_of(request.model)
    with opened(registry, create=True) as place:
        rows = [find_registered(place.home, name) for name in ([names] if isinstance(names, str) else names)]
        trained = Session(place.home, resume, report, say).train(rows, request)
    return Training(request, tuple(rows), trained)


@dataclass(frozen=True, eq=False)
class LearnedBoundary:
    """The boundary that a checkpoint implies, beside the reduced ODE."""

    loaded: Loaded
    checkpoint: int
    assessment: Assessment

    @property
    def alpha(self) -> Float:
        """Severities (m,)."""
        return self.assessment.learned.alpha

    @property
    def cct(self) -> Float:
        """Learned critical clearing instants (m,), s; NaN unless finite."""
        return self.assessment.learned.cct

    @property
    def errors(self) -> CCTErrors:
        """CCT errors against the reduced ODE."""
        return self.assessment.errors

    def to_frame(self) -> Any:
        """A pandas table with one row per severity."""
        return to_frame(self.assessment.rows())

    def plot(self, required_ms: float | None = None) -> Any:
        """A matplotlib figure: margin map, boundaries, error and sensitivities; `required_ms` as protection needs."""
        picture = margin_picture(self.loaded.surrogate, self.loaded.member, self.assessment.rule)
        required = None if required_ms is None else 1e-3 * required_ms
        return plot_learned_boundary(self.assessment, picture, required)


def load_checkpoint(
    name: str,
    checkpoint: int | None = None,
    registry: Registry | None = None,
    at: Mapping[str, float] | None = None,
) -> tuple[Loaded, int]:
    """The surrogate of a checkpoint (default: the newest of `name`), at an operating point, and its number."""
    torch.set_num_threads(1)
    with opened(registry) as place:
        row = store.find(place.home.database, name)  # asking registers nothing
        stored = find_checkpoint(place.home, row, "latest" if checkpoint is None else str(checkpoint))
        contingency = place.home.contingency(row)
        point = point_of(contingency, at or {})
        loaded = checkpoints.from_bytes(place.home.load_checkpoint(stored), contingency)
    if at:
        if not isinstance(loaded.surrogate, Chained) or not loaded.surrogate.axes:
            raise UsageError(f"checkpoint {stored.id} knows no conditions; train one for {name} as it is now.")
        loaded.surrogate.settle_at(compile_contingency(contingency, point), point.values, loaded.member)
    return loaded, stored.id


def severities_of(loaded: Loaded, alpha: ArrayLike | None = None) -> Float:
    """The severities asked for, by default those between the points of the training grid."""
    operators = loaded.surrogate.members[loaded.member]
    if alpha is None:
        unseen: Float = evaluation_grid(operators).unseen_alpha
        return unseen
    import numpy as np

    return checked_severities(operators, np.unique(np.asarray(alpha, dtype=float)))


def learned_boundary(
    name: str,
    alpha: ArrayLike | None = None,
    checkpoint: int | None = None,
    reference: Reference = "strict",
    registry: Registry | None = None,
    report: Report = silent,
    at: Mapping[str, float] | None = None,
) -> LearnedBoundary:
    """The boundary that a trained surrogate implies, compared with the reduced ODE.

    Parameters
    ----------
    name : str
        A registered contingency.
    alpha : array, optional
        Severities; default: the 50 between those of the training grid.
    checkpoint : int, optional
        Default: the newest of `name`.
    reference : {"strict", "fast"}
        Which reduced ODE is the truth; strict takes seconds per severity.
    registry : Registry, optional
        Default: the home of `CCT_ZOO_HOME`, else `.cct-zoo`.
    report : callable
        Called with stage, severities done, severities in all.
    at : mapping, optional
        Conditions by name, of a surrogate that was trained over them; default: the case's own values.
    """
    loaded, number = load_checkpoint(name, checkpoint, registry, at)
    assessment = assess_boundary(
        loaded.surrogate, severities_of(loaded, alpha), loaded.member, None, reference, report=report
    )
    return LearnedBoundary(loaded, number, assessment)
