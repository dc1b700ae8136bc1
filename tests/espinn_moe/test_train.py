"""The training loop: resuming bit for bit, stopping on bad numbers, on Ctrl-C and on a full disk."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from contingencies.errors import ConflictError, IntegrityError, UsageError, ZooError
from espinn_moe import state_file
from espinn_moe import train as loop
from espinn_moe.plan import Restart, TrainingPlan
from espinn_moe.train import TrainingError, train

torch.set_num_threads(1)


class SineFit:
    """Learn sin(3 x) from random points; `poison` makes a term infinite from a given batch on."""

    def __init__(self, poison: int | None = None) -> None:
        self.weights = {"data": 1.0, "slope": 0.1}
        self.poison, self.batches = poison, 0
        self.told: list[float] = []
        self.stages: list[int] = []

    def state(self) -> dict[str, int]:
        return {}

    def restore(self, state: dict[str, int]) -> None:
        assert state == {}

    def advance(self, done: float, stage: int = 0) -> None:
        self.told.append(done)
        self.stages.append(stage)

    def batch(self, generator: torch.Generator) -> Tensor:
        self.batches += 1
        return 2 * torch.rand(64, 1, generator=generator, dtype=torch.float64) - 1

    def terms(self, model: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        value = model(batch)
        slope = (model(batch + 1e-3) - value) / 1e-3
        terms = {
            "data": (value - torch.sin(3 * batch)).square().mean(),
            "slope": (slope - 3 * torch.cos(3 * batch)).square().mean(),
        }
        if self.poison is not None and self.batches >= self.poison:
            terms["slope"] = terms["slope"] * float("inf")
        return terms


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class Clock:
    """A clock that moves only when it is told to, s."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Timed(SineFit):
    """A training whose every batch takes 10 ms on its clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def batch(self, generator: torch.Generator) -> Tensor:
        self.clock.now += 0.01
        return super().batch(generator)


class Killed(BaseException):
    """Stands for the end of the process."""


def killed_and_resumed(plan: TrainingPlan, path: Path, kill_at: int, monkeypatch) -> nn.Sequential:
    monkeypatch.setattr(loop, "SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr(loop, "REPORT_INTERVAL_S", 0.0)

    def die(progress: loop.Progress) -> None:
        if progress.step >= kill_at:
            raise Killed

    with pytest.raises(Killed):
        train(network(), SineFit(), plan, state_path=path, report=die)
    resumed = network(seed=99)  # whatever the new process starts with must not matter
    train(resumed, SineFit(), plan, state_path=path)
    return resumed


@pytest.mark.parametrize("optimizer", ["soap", "adam"])
@pytest.mark.parametrize("kill_at", [1, 23, 59])
def test_killed_and_resumed_training_ends_with_the_very_same_parameters(optimizer, kill_at, tmp_path, monkeypatch):
    plan = TrainingPlan(steps=60, optimizer=optimizer)
    uninterrupted = network()
    train(uninterrupted, SineFit(), plan)
    resumed = killed_and_resumed(plan, tmp_path / "state", kill_at, monkeypatch)
    assert torch.equal(parameters(resumed), parameters(uninterrupted))


def test_resuming_amid_the_polish_is_exact_too(tmp_path, monkeypatch):
    plan = TrainingPlan(steps=80, polish_share=0.5, polish_iterations=10, polish_batches=2)
    uninterrupted = network()
    train(uninterrupted, SineFit(), plan)
    resumed = killed_and_resumed(plan, tmp_path / "state", 60, monkeypatch)
    assert torch.equal(parameters(resumed), parameters(uninterrupted))


def test_best_validated_state_survives_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_INTERVAL_S", 0.0)
    plan = TrainingPlan(steps=40, validations=4, keep="best")
    errors = iter([3.0, 1.0, 2.0, 2.0, 5.0])  # the third is looked at again after the kill
    seen: list[Tensor] = []

    def run(model: nn.Module, die_at: int | None) -> float | None:
        def validate() -> float:
            seen.append(parameters(model))
            return next(errors)

        def report(progress: loop.Progress) -> None:
            if die_at is not None and progress.step >= die_at:
                raise Killed

        return train(model, SineFit(), plan, state_path=tmp_path / "s", validate=validate, report=report).validation

    with pytest.raises(Killed):
        run(network(), 30)
    resumed = network(seed=5)
    assert run(resumed, None) == 1.0
    assert torch.equal(parameters(resumed), seen[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_soap_learns_in_both_precisions(dtype):
    model = network().to(dtype)

    class Typed(SineFit):
        def batch(self, generator: torch.Generator) -> Tensor:
            return super().batch(generator).to(dtype)

    result = train(model, Typed(), TrainingPlan(steps=400, learning_rate=2e-2))
    assert result.terms["data"] < 1e-3


def test_an_objective_hears_how_far_the_training_is():
    whole = SineFit()
    train(network(), whole, TrainingPlan(steps=8))
    assert whole.told == [step / 8 for step in range(8)]


def test_a_second_stage_begins_with_a_new_optimiser_and_its_own_rate():
    fit = SineFit()
    plan = TrainingPlan(steps=10, restart=Restart(at=0.4, learning_rate=7e-4, warmup=0.0), final_rate=0.0)
    run = loop._Run(network(), fit, plan, None, None, None, "")
    before = run.optimizer
    run.go(threading.Event())
    assert fit.told == pytest.approx([0, 0.25, 0.5, 0.75, *(k / 6 for k in range(6))])
    assert fit.stages == [0] * 4 + [1] * 6
    assert run.optimizer is not before
    assert run.optimizer.param_groups[0]["step"] == 6
    assert plan.rate_at(0.4) == 7e-4


@pytest.mark.parametrize("kill_at", [10, 24, 25, 40])
def test_killed_in_either_stage_a_training_resumes_exactly(kill_at, tmp_path, monkeypatch):
    plan = TrainingPlan(steps=60, restart=Restart(at=0.4, learning_rate=1e-3))
    uninterrupted = network()
    train(uninterrupted, SineFit(), plan)
    resumed = killed_and_resumed(plan, tmp_path / "state", kill_at, monkeypatch)
    assert torch.equal(parameters(resumed), parameters(uninterrupted))


def test_stages_that_leave_each_other_no_time_are_refused():
    with pytest.raises(UsageError, match="not within the training"):
        Restart(at=1.0, learning_rate=1e-3)
    with pytest.raises(UsageError, match="no time"):
        TrainingPlan(steps=10, polish_share=0.7, restart=Restart(at=0.4, learning_rate=1e-3))


def test_polish_lowers_the_loss_further():
    rough, polished = network(), network()
    without = train(rough, SineFit(), TrainingPlan(steps=300))
    with_polish = train(polished, SineFit(), TrainingPlan(steps=300, polish_share=0.5, polish_iterations=25))
    assert with_polish.loss < 0.5 * without.loss


def test_loss_that_is_not_finite_stops_with_step_and_term_and_keeps_the_last_good_state(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_INTERVAL_S", 0.0)
    path, model = tmp_path / "state", network()
    with pytest.raises(TrainingError, match=r"step 8: .*'slope'"):
        train(model, SineFit(poison=8), TrainingPlan(steps=20), state_path=path)
    until_then = network()
    train(until_then, SineFit(), TrainingPlan(steps=20), state_path=path)  # continues after step 7
    whole = network()
    train(whole, SineFit(), TrainingPlan(steps=20))
    assert torch.isfinite(parameters(model)).all()
    assert torch.equal(parameters(until_then), parameters(whole))


def test_gradient_that_is_not_finite_names_its_term():
    class BadRoot(SineFit):
        def terms(self, model: nn.Module, batch: Tensor) -> dict[str, Tensor]:
            terms = super().terms(model, batch)
            return {**terms, "root": (0.0 * terms["data"]).sqrt()}

    with pytest.raises(TrainingError, match=r"step 1: .*'root'.*gradient"):
        train(network(), BadRoot(), TrainingPlan(steps=5))


def test_state_of_another_training_is_refused(tmp_path):
    train(network(), SineFit(), TrainingPlan(steps=3), state_path=tmp_path / "s", identity="a")
    with pytest.raises(ConflictError, match="other data or settings"):
        train(network(), SineFit(), TrainingPlan(steps=3), state_path=tmp_path / "s", identity="b")
    train(network(), SineFit(), TrainingPlan(steps=3), state_path=tmp_path / "s", identity="b", resume=False)


def test_damaged_state_is_reported_as_damaged(tmp_path):
    path = tmp_path / "s"
    train(network(), SineFit(), TrainingPlan(steps=3), state_path=path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(IntegrityError, match="damaged"):
        train(network(), SineFit(), TrainingPlan(steps=3), state_path=path)


def test_full_disk_is_one_sentence_and_keeps_the_state_saved_before(tmp_path, monkeypatch):
    path = tmp_path / "s"
    train(network(), SineFit(), TrainingPlan(steps=3), state_path=path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("contingencies.files.os.fsync", full)
    with pytest.raises(ZooError, match="No space left"):
        train(network(), SineFit(), TrainingPlan(steps=3), state_path=path, resume=False)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("budget", [{}, {"steps": 0}, {"steps": 5, "minutes": 1.0}, {"minutes": -1.0}])
def test_plan_without_one_sound_budget_is_refused(budget):
    with pytest.raises(UsageError):
        TrainingPlan(**budget)


def test_time_budget_counts_what_was_spent_before_the_kill(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setitem(loop.CLOCKS, "wall", clock)
    monkeypatch.setattr(loop, "SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr(loop, "REPORT_INTERVAL_S", 0.0)
    plan = TrainingPlan(minutes=1.0 / 60)  # a hundred steps of 10 ms

    def die(progress: loop.Progress) -> None:
        if progress.step == 60:
            raise Killed

    with pytest.raises(Killed):
        train(network(), Timed(clock), plan, state_path=tmp_path / "s", report=die)
    clock.now += 1e6  # nobody counts the time between kill and resumption
    result = train(network(), Timed(clock), plan, state_path=tmp_path / "s")
    assert result.steps == pytest.approx(100, abs=2)
    assert result.used_s == pytest.approx(1.0, abs=0.02)


def test_minutes_of_the_processor_do_not_pass_while_the_process_waits(tmp_path):
    plan = TrainingPlan(minutes=0.3 / 60, clock="processor")

    class Slow(SineFit):
        def batch(self, generator: torch.Generator) -> Tensor:
            if self.batches % 50 == 0:
                time.sleep(0.02)
            return super().batch(generator)

    objective = Slow()
    started = time.process_time()
    result = train(network(), objective, plan, state_path=tmp_path / "s")
    slept = 0.02 * -(-objective.batches // 50)
    assert time.process_time() - started >= 0.3
    assert slept > 0
    assert result.elapsed_s >= 0.3 + 0.9 * slept


def test_ctrl_c_saves_and_the_run_goes_on_from_there(tmp_path):
    script = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from test_train import SineFit, network, TrainingPlan, train\n"
        "train(network(), SineFit(), TrainingPlan(minutes=5.0), state_path=Path(sys.argv[3]),\n"
        "      report=lambda p: print(p.step, flush=True))\n"
    )
    path = tmp_path / "state"
    here = Path(__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", script, str(here), str(here.parents[1]), str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first_report = int(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    state = state_file.tree_from_bytes(path.read_bytes())
    assert state["step"] >= first_report
