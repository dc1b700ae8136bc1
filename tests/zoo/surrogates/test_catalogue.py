"""One suite over every surrogate of the catalogue."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from contingencies.errors import ConflictError, IntegrityError, NotFoundError, UsageError
from contingencies.library import Contingency, load_contingency
from contingencies.operators import PhaseOperators, compile_members
from espinn_moe.plan import TrainingPlan
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import train
from zoo.surrogates import checkpoints
from zoo.surrogates.budgets import plan_for
from zoo.surrogates.catalogue import CATALOGUE, create_model, list_models, make_objective, residual_of
from zoo.surrogates.datasets import ScenarioSet, training_set

torch.set_num_threads(1)

PARAMETERS = {  # the paper's counts on six machines
    "es-pinn": 118_744,
    "xpinn": 118_744,
    "es-pinn-state-only": 118_744,
    "es-pinn-soft-chain": 118_744,
    "es-pinn-no-residual": 118_744,
    "vanilla-pinn": 136_494,
    "pi-deeponet": 136_365,
}
EXACT_BEFORE_FAULT = [name for name in list_models() if name not in ("vanilla-pinn", "pi-deeponet")]
FAMILIES = [name for name, entry in CATALOGUE.items() if entry.family]
every_model = pytest.mark.parametrize("name", list_models())


@pytest.fixture(scope="module")
def contingency() -> Contingency:
    return load_contingency("ieee30-line-3-4-restore")


@pytest.fixture(scope="module")
def operators(contingency) -> PhaseOperators:
    return compile_members([contingency])[0]


@pytest.fixture(scope="module")
def scenarios(operators) -> ScenarioSet:
    return training_set(operators, fraction=0.2, points=11)


def calibrated(name: str, operators: PhaseOperators, scenarios: ScenarioSet, seed: int = 0, **settings) -> Surrogate:
    model = create_model(name, [operators], seed, **settings)
    model.calibrate([scenarios])
    return model


def queries(operators: PhaseOperators, dtype: torch.dtype, count: int = 24, seed: int = 1) -> tuple[Tensor, ...]:
    """Random instants, severities and clearing instants over the whole study."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.rand(3, count, generator=generator, dtype=dtype)
    low, high = operators.window.t_c
    return operators.window.T * u[0], u[1], low + (high - low) * u[2]


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_parameter_counts_are_the_papers(name, count, operators):
    assert create_model(name, [operators]).n_parameters == count


@every_model
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_have_the_shape_of_the_query_and_the_type_of_the_model(name, dtype, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype=dtype)
    kind = getattr(torch, dtype)
    t, alpha, t_c = queries(operators, kind, 12)
    states = model.states(t[:, None, None], alpha[:4, None], t_c[:3])
    assert states.shape == (12, 4, 3, 12)
    assert states.dtype == kind
    assert torch.isfinite(states).all()
    grid = model.trajectories(t.sort().values, alpha[:4], t_c[:3])
    assert grid.shape == (4, 3, 12, 12)
    expected = model.states(t.sort().values, alpha[:4, None, None], t_c[:3, None])
    torch.testing.assert_close(grid, expected, rtol=0.0, atol=1e-9 if dtype == "float64" else 1e-3)


@every_model
def test_states_are_differentiable_in_time_severity_and_clearing_instant(name, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype="float64")
    t, alpha, t_c = (x.requires_grad_() for x in queries(operators, torch.float64))
    with torch.no_grad():
        t.copy_(t_c + 0.8 * (operators.window.T - t_c))  # after clearing, where all three matter
    gradients = torch.autograd.grad(model.states(t, alpha, t_c).sum(), (t, alpha, t_c))
    assert all(torch.isfinite(g).all() and (g != 0).any() for g in gradients)
    h = 1e-6
    with torch.no_grad():
        for k, (value, gradient) in enumerate(zip((t, alpha, t_c), gradients, strict=True)):
            up, down = [t, alpha, t_c], [t, alpha, t_c]
            up[k], down[k] = value + h, value - h
            slope = (model.states(*up) - model.states(*down)).sum(-1) / (2 * h)
            torch.testing.assert_close(gradient, slope, rtol=1e-4, atol=1e-4)


@every_model
def test_rates_that_are_carried_forward_are_the_time_derivative(name, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype="float64")
    t, alpha, t_c = queries(operators, torch.float64, 60)
    states, rates = model.states_and_rates(t, alpha, t_c)
    torch.testing.assert_close(states, model.states(t, alpha, t_c), rtol=0.0, atol=1e-10)
    h = 1e-6
    slope = (model.states(t + h, alpha, t_c) - model.states(t - h, alpha, t_c)) / (2 * h)
    smooth = ((t - t_c).abs() > 2 * h) & ((t - operators.window.t_f).abs() > 2 * h)
    torch.testing.assert_close(rates[smooth], slope[smooth], rtol=1e-5, atol=1e-5)


@every_model
@pytest.mark.parametrize("learning", [False, True])
def test_tables_of_instants_get_the_answers_of_their_rows(name, learning, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype="float64")
    rows = queries(operators, torch.float64, 60)
    with torch.set_grad_enabled(learning):
        flat = (model.states(*rows), *model.states_and_rates(*rows))
        tables = [row.reshape(3, 4, 5) for row in rows]
        shaped = (model.states(*tables), *model.states_and_rates(*tables))
    for mine, theirs in zip(shaped, flat, strict=True):
        assert mine.shape[:-1] == (3, 4, 5)
        torch.testing.assert_close(mine.reshape(60, -1), theirs, rtol=1e-9, atol=1e-9)


@every_model
@pytest.mark.parametrize("rated", [0, 7, 60])
def test_rows_of_which_only_the_first_have_rates_get_the_same_answers(name, rated, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype="float64")
    t, alpha, t_c = queries(operators, torch.float64, 60)
    t = t.clamp(min=operators.window.t_f)
    states, rates = model.states_and_rates(t, alpha, t_c)
    for answer in ("states_and_first_rates", "states_and_first_rates_forward_only"):
        if not hasattr(model, answer):
            continue
        ours, first = getattr(model, answer)(t, alpha, t_c, 0, rated)
        torch.testing.assert_close(ours, states, rtol=0.0, atol=1e-10)
        torch.testing.assert_close(first, rates[:rated], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EXACT_BEFORE_FAULT)
def test_nothing_moves_before_the_fault(name, operators, scenarios):
    model = calibrated(name, operators, scenarios, dtype="float64")
    _, alpha, t_c = queries(operators, torch.float64)
    states, rates = model.states_and_rates(torch.full_like(alpha, 0.1), alpha, t_c)
    equilibrium = torch.tensor(np.concatenate([operators.delta_0, np.ones(operators.n_machines)]))
    assert torch.equal(states, equilibrium.expand_as(states))
    assert not rates.any()


@every_model
def test_saved_model_loads_back_equal(name, contingency, operators, scenarios):
    model = calibrated(name, operators, scenarios, seed=3)
    content = checkpoints.to_bytes(name, model, [contingency], {"note": "test"})
    loaded = checkpoints.from_bytes(content, contingency)
    t, alpha, t_c = queries(operators, model.dtype)
    assert torch.equal(loaded.surrogate.states(t, alpha, t_c), model.states(t, alpha, t_c))
    assert (loaded.model, loaded.member) == (name, 0)
    assert checkpoints.to_bytes(name, loaded.surrogate, [contingency], {"note": "test"}) == content


@every_model
def test_a_few_steps_lower_the_loss(name, operators, scenarios):
    model = calibrated(name, operators, scenarios)
    objective = make_objective(name, model, [scenarios])
    generator = torch.Generator().manual_seed(9)
    batch = objective.batch(generator)

    def loss() -> float:
        objective.advance(0.0)  # weights move while a model trains; compare by the same ones
        terms = objective.terms(model, batch)
        return float(sum(objective.weights[name] * value.detach() for name, value in terms.items()))

    before = loss()
    train(model, objective, TrainingPlan(steps=15))
    assert loss() < before


@every_model
def test_the_shooting_residual_trains_a_model_in_two_stages_or_is_refused_with_a_reason(name, operators, scenarios):
    model = calibrated(name, operators, scenarios)
    if CATALOGUE[name].no_shooting:
        with pytest.raises(UsageError, match=f"does not apply to {name}: .*use --residual pointwise"):
            residual_of(name, "shooting")
        return
    plan = plan_for("one-shot", steps=6, residual=residual_of(name, "shooting"))
    assert plan.restart is not None
    objective = make_objective(name, model, [scenarios], residual="shooting", rows=32, rollouts=16, segments=8)
    result = train(model, objective, plan)
    assert {"data", "shooting"} <= set(result.terms)
    assert not any(term.startswith("residual") for term in result.terms)


def test_the_papers_models_are_trained_by_shooting_unless_told_otherwise():
    assert {name for name in list_models() if residual_of(name) == "shooting"} == {"es-pinn", "moe"}
    assert residual_of("es-pinn", "pointwise") == "pointwise"
    assert plan_for("one-shot", steps=6).restart is None
    with pytest.raises(UsageError, match="'guess' is not known"):
        residual_of("es-pinn", "guess")  # type: ignore[arg-type]


@every_model
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(name, operators):
    def weights(seed: int) -> Tensor:
        return torch.cat([p.detach().flatten() for p in create_model(name, [operators], seed).parameters()])

    state = torch.get_rng_state()
    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", [name for name in list_models() if name not in FAMILIES])
def test_model_for_one_contingency_refuses_a_family(name, contingency):
    members = compile_members([contingency, load_contingency("ieee30-line-3-4-remove")])
    with pytest.raises(UsageError, match="one contingency"):
        create_model(name, members)


def test_checkpoint_of_another_contingency_or_system_is_refused(contingency, operators):
    content = checkpoints.to_bytes("vanilla-pinn", create_model("vanilla-pinn", [operators]), [contingency])
    with pytest.raises(ConflictError, match="not for it"):
        checkpoints.from_bytes(content, load_contingency("ieee30-line-3-4-remove"))
    with pytest.raises(ConflictError, match="system 'ieee30'"):
        checkpoints.from_bytes(content, load_contingency("ieee9-mech-g2-restore"))
    changed = replace(contingency, spec=contingency.spec.model_copy(update={"severity": (0.0, 0.9)}))
    with pytest.raises(ConflictError, match="another version"):
        checkpoints.from_bytes(content, changed)


def test_damaged_checkpoint_is_refused(contingency, operators):
    content = checkpoints.to_bytes("vanilla-pinn", create_model("vanilla-pinn", [operators]), [contingency])
    with pytest.raises(IntegrityError):
        checkpoints.from_bytes(content[: len(content) // 2], contingency)
    with pytest.raises(IntegrityError):
        checkpoints.from_bytes(b"not a checkpoint", contingency)


def test_unknown_model_is_a_sentence_with_the_names_there_are(operators):
    with pytest.raises(NotFoundError, match="vanilla-pinn"):
        create_model("es-pin", [operators])
