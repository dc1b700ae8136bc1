"""The one training loop: (model, objective, plan) -> result.

Knows neither contingencies nor models: it draws batches, weighs the named loss terms, steps the
optimiser, and keeps a state from which a killed run continues bit for bit. It says what happens
through the callables it is given.
"""

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from contingencies.errors import ConflictError, UsageError, ZooError
from contingencies.files import write_atomically
from espinn_moe.plan import Clock, Progress, TrainingPlan
from espinn_moe.soap import BatchedSOAP
from espinn_moe.state_file import tree_from_bytes, tree_to_bytes

SAVE_INTERVAL_S = 45.0  # a killed run loses at most one minute
REPORT_INTERVAL_S = 1.0
CURVE_POINTS = 200  # points of the recorded loss curves, however long the run
STATE_VERSION = 4

CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.monotonic, "processor": time.process_time}


class TrainingError(ZooError):
    """A training that cannot go on; the last good state is kept."""


class Objective(Protocol):
    """What is minimised: `losses`, `window_losses` and `shooting` hold the ones for surrogates."""

    weights: dict[str, float]

    def advance(self, done: float, stage: int = 0) -> None:
        """Hear, before each step, which stage is running (0 or 1) and which fraction of it is done."""

    def batch(self, generator: torch.Generator) -> Any:
        """Training rows, drawn with this generator only."""

    def terms(self, model: Any, batch: Any) -> dict[str, Tensor]:
        """Named loss terms (scalars) before weighting."""

    def state(self) -> dict[str, Any]:
        """What `batch` remembers from one call to the next, as a tree for the state file."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a remembered state again."""


@dataclass
class TrainingResult:
    """A finished training; the model holds the kept state."""

    steps: int
    elapsed_s: float  # on the wall
    used_s: float  # on the clock of the budget
    loss: float
    terms: dict[str, float]
    validation: float | None  # of the kept state
    curves: list[dict[str, float]] = field(default_factory=list)  # loss, terms, validation over steps


def make_optimizer(name: str, model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """SOAP (second-order by Kronecker factors) or Adam, without weight decay."""
    trainable = [(label, p) for label, p in model.named_parameters() if p.requires_grad]
    if name == "soap":
        biases = [p for label, p in trainable if "bias" in label]
        others = [p for label, p in trainable if "bias" not in label]
        groups = [{"params": others}] if others else []
        return BatchedSOAP([*groups, {"params": biases, "elementwise": True}] if biases else groups, lr=learning_rate)
    if name == "adam":
        return torch.optim.Adam([p for _, p in trainable], lr=learning_rate)
    raise UsageError(f"optimizer {name!r} is not known; use soap or adam.")


def train(
    model: nn.Module,
    objective: Objective,
    plan: TrainingPlan,
    *,
    state_path: Path | None = None,
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    validate: Callable[[], float] | None = None,
    identity: str = "",
) -> TrainingResult:
    """Train a model in place.

    Parameters
    ----------
    model : nn.Module
        Its trainable parameters are those with requires_grad.
    objective, plan
        What is minimised, and how.
    state_path : Path, optional
        Where the state is kept; without it nothing survives an interruption.
    resume : bool
        Continue from `state_path` when it holds a state of this `identity` and plan.
    report : callable, optional
        Told the progress about once a second and after each validation.
    validate : callable, optional
        The validated error of the model as it stands; must not touch the training's randomness.
    identity : str
        What the state belongs to (model, data, settings); another one's state is refused.

    Raises
    ------
    TrainingError
        On a loss or gradient that is not finite, with step and term; the last good state is kept.
    KeyboardInterrupt
        After Ctrl-C, once the state is saved.
    """
    run = _Run(model, objective, plan, state_path, report, validate, identity)
    if resume and state_path is not None and state_path.is_file():
        run.load(state_path)
    else:
        run.save()  # a place that cannot be written is known before anything is spent
    with _interrupts() as interrupted:
        return run.go(interrupted)


class _Run:
    """The state of one training: what `save` writes is what `load` continues from."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        plan: TrainingPlan,
        state_path: Path | None,
        report: Callable[[Progress], None] | None,
        validate: Callable[[], float] | None,
        identity: str,
    ) -> None:
        self.model, self.objective, self.plan = model, objective, plan
        self.state_path, self.report, self.validate, self.identity = state_path, report, validate, identity
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.stage = 0
        self.optimizer = self.new_optimizer()
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.step = 0
        self.elapsed_before = self.used_before = 0.0  # s on the wall, and of the clock that counts
        self.loss, self.terms = math.nan, dict[str, float]()
        self.validation: float | None = None
        self.validations_done = 0
        self.best: dict[str, Tensor] | None = None
        self.best_validation = math.inf
        self.curves: list[dict[str, float]] = []
        self.curve_point = 0
        self.good = copy.deepcopy(model.state_dict())
        self.started = self.last_save = self.last_report = time.monotonic()
        self.now = CLOCKS[plan.clock]
        self.began = self.now()

    # --- budget -------------------------------------------------------------------------------

    @property
    def elapsed(self) -> float:
        return self.elapsed_before + time.monotonic() - self.started

    @property
    def used(self) -> float:
        """Seconds of the budget that are used, on its own clock."""
        return self.used_before + self.now() - self.began

    @property
    def done(self) -> float:
        """Fraction of the budget that is used."""
        if self.plan.steps is not None:
            return min(1.0, self.step / self.plan.steps)
        assert self.plan.minutes is not None
        return min(1.0, self.used / (60.0 * self.plan.minutes))

    def new_optimizer(self) -> torch.optim.Optimizer:
        """The optimiser of a stage at its beginning."""
        return make_optimizer(self.plan.optimizer, self.model, self.plan.learning_rate)

    # --- loop ---------------------------------------------------------------------------------

    def go(self, interrupted: threading.Event) -> TrainingResult:
        while (done := self.done) < 1.0:
            stage, along = self.plan.stage_at(done)
            if stage != self.stage:
                self.stage = stage
                self.optimizer = self.new_optimizer()
            self.objective.advance(along, stage)
            if done < 1.0 - self.plan.polish_share:
                self.descend(done)
            else:
                self.polish()
            self.look_around()
            if interrupted.is_set():
                self.save()
                raise KeyboardInterrupt
        if self.validate is not None:
            self.run_validation()
        self.say()
        self.save()
        if self.plan.keep == "best" and self.best is not None:
            self.model.load_state_dict(self.best)
        kept = self.best_validation if self.plan.keep == "best" and self.best is not None else self.validation
        return TrainingResult(self.step, self.elapsed, self.used, self.loss, self.terms, kept, self.curves)

    def descend(self, done: float) -> None:
        """One step of the optimiser."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.rate_at(done)
        self.optimizer.zero_grad(set_to_none=True)
        batch = self.objective.batch(self.generator)
        loss, terms = self.evaluate(batch)
        self.check(loss, terms, batch)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.plan.clip_norm)
        if not torch.isfinite(norm):
            self.fail(self.term_with_bad_gradient(batch), "its gradient")
        self.optimizer.step()
        self.step += 1
        self.loss, self.terms = float(loss.detach()), {name: float(value.detach()) for name, value in terms.items()}

    def polish(self) -> None:
        """One round of L-BFGS on a fresh sample; undone when it does not help."""
        plan = self.plan
        batches = [self.objective.batch(self.generator) for _ in range(plan.polish_batches)]
        before = copy.deepcopy(self.model.state_dict())
        lbfgs = torch.optim.LBFGS(
            self.parameters, max_iter=plan.polish_iterations, history_size=plan.polish_iterations,
            line_search_fn="strong_wolfe", tolerance_grad=0.0, tolerance_change=0.0,
        )  # fmt: skip
        first: list[float] = []

        def closure() -> float:
            lbfgs.zero_grad(set_to_none=True)
            total = 0.0
            for batch in batches:
                loss = self.evaluate(batch)[0] / len(batches)
                loss.backward()
                total += float(loss.detach())
            first.append(total)
            return total

        lbfgs.step(closure)
        with torch.no_grad():
            values = [self.evaluate(batch) for batch in batches]
        after = sum(float(loss) for loss, _ in values) / len(values)
        if not after < first[0]:
            self.model.load_state_dict(before)
        else:
            self.loss = after
            self.terms = {n: sum(float(terms[n]) for _, terms in values) / len(values) for n in values[0][1]}
        self.step += plan.polish_iterations

    def evaluate(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted loss and its terms."""
        terms = self.objective.terms(self.model, batch)
        weights = self.objective.weights
        loss = torch.stack([weights.get(name, 1.0) * value for name, value in terms.items()]).sum()
        return loss, terms

    # --- failures -----------------------------------------------------------------------------

    def check(self, loss: Tensor, terms: dict[str, Tensor], batch: Any) -> None:
        if not torch.isfinite(loss):
            bad = [name for name, value in terms.items() if not torch.isfinite(value)]
            self.fail(" and ".join(bad) or "the sum of all terms", "it")

    def term_with_bad_gradient(self, batch: Any) -> str:
        for name, value in self.objective.terms(self.model, batch).items():
            if value.requires_grad:
                gradients = torch.autograd.grad(value, self.parameters, retain_graph=True, allow_unused=True)
                if any(g is not None and not torch.isfinite(g).all() for g in gradients):
                    return name
        return "the sum of all terms"

    def fail(self, term: str, what: str) -> None:
        self.model.load_state_dict(self.good)
        kept = f"; the state of the last save is kept in {str(self.state_path)!r}" if self.state_path else ""
        raise TrainingError(
            f"training stopped at step {self.step + 1}: loss term {term!r} failed because {what} is not a finite "
            f"number{kept}; lower the learning rate or use float64."
        )

    # --- what is seen and kept ----------------------------------------------------------------

    def look_around(self) -> None:
        """Validate, record, report and save when each is due."""
        now, done = time.monotonic(), self.done
        point = int(done * CURVE_POINTS)
        if point > self.curve_point:
            self.curve_point = point
            self.curves.append({"step": self.step, "loss": self.loss, **self.terms})
        if self.validate is not None and done < 1.0 and done * self.plan.validations >= self.validations_done + 1:
            self.validations_done = int(done * self.plan.validations)
            self.run_validation()
            self.say()
        elif now - self.last_report >= REPORT_INTERVAL_S:
            self.say()
        if now - self.last_save >= SAVE_INTERVAL_S:
            self.save()

    def run_validation(self) -> None:
        assert self.validate is not None
        self.model.eval()
        self.validation = float(self.validate())
        self.model.train()
        if self.curves:
            self.curves[-1]["validation"] = self.validation
        if self.validation < self.best_validation:
            self.best_validation = self.validation
            self.best = copy.deepcopy(self.model.state_dict())

    def say(self) -> None:
        self.last_report = time.monotonic()
        if self.report is None:
            return
        done, elapsed = self.done, self.elapsed
        left = elapsed * (1.0 - done) / done if done > 0 else math.inf
        rate = float(self.optimizer.param_groups[0]["lr"])
        self.report(Progress(self.step, done, self.loss, self.terms, self.validation, elapsed, left, rate))

    def save(self) -> None:
        """Remember the state, and write it when it has a place."""
        self.last_save = time.monotonic()
        self.good = copy.deepcopy(self.model.state_dict())
        if self.state_path is None:
            return
        tree = {
            "version": STATE_VERSION,
            "identity": self.identity,
            "plan": asdict(self.plan),
            "model": dict(self.good),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "global_generator": torch.get_rng_state(),
            "weights": dict(self.objective.weights),
            "objective": self.objective.state(),
            "stage": self.stage,
            "step": self.step,
            "elapsed": self.elapsed,
            "used": self.used,
            "loss": self.loss,
            "terms": self.terms,
            "validation": self.validation,
            "validations_done": self.validations_done,
            "best": self.best,
            "best_validation": self.best_validation,
            "curves": self.curves,
            "curve_point": self.curve_point,
        }
        write_atomically(self.state_path, tree_to_bytes(tree))

    def load(self, path: Path) -> None:
        """Continue where `save` left off."""
        tree = tree_from_bytes(path.read_bytes(), f"training state {str(path)!r}")
        found = (tree.get("version"), tree.get("identity"), tree.get("plan"))
        if found != (STATE_VERSION, self.identity, asdict(self.plan)):
            raise ConflictError(
                f"{str(path)!r} holds an unfinished training with other data or settings; "
                "use --fresh to start anew, or the settings it was started with."
            )
        self.model.load_state_dict(tree["model"])
        self.good = copy.deepcopy(self.model.state_dict())
        self.stage = tree["stage"]
        self.optimizer = self.new_optimizer()
        self.optimizer.load_state_dict(tree["optimizer"])
        self.objective.restore(tree["objective"])
        self.generator.set_state(tree["generator"])
        torch.set_rng_state(tree["global_generator"])
        self.objective.weights.update(tree["weights"])
        self.step, self.elapsed_before, self.used_before = tree["step"], tree["elapsed"], tree["used"]
        self.loss, self.terms = tree["loss"], tree["terms"]
        self.validation, self.validations_done = tree["validation"], tree["validations_done"]
        self.best, self.best_validation = tree["best"], tree["best_validation"]
        self.curves, self.curve_point = tree["curves"], tree["curve_point"]


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Ctrl-C as an event that is looked at between steps; a second one interrupts at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may set signal handlers
        return

    def remember(number: int, frame: Any) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, previous)
