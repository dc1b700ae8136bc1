"""Experts that join and leave a trained family: the other members must not notice."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from cli import zoo
from contingencies.errors import ConflictError, NotFoundError, UsageError, ZooError
from contingencies.library import load_contingency
from contingencies.operators import compile_members
from contingencies.spec import Window
from contingencies.stability import Boundary
from espinn_moe.expert_slices import answers_equal, copy_members, member_slices, new_slices
from registry.home import Home
from registry.schema import CheckpointRow
from registry.store import runs
from zoo.surrogates import checkpoints
from zoo.surrogates.catalogue import create_model
from zoo.training.experts import add_expert, load_family, remove_expert
from zoo.training.request import TrainingRequest
from zoo.training.session import Session

NAMES = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove", "ieee30-line-3-4-restore")


@pytest.fixture(scope="module")
def contingencies():
    return [load_contingency(name) for name in NAMES]


@pytest.fixture(autouse=True)
def few_severities(monkeypatch):
    """Errors of untrained models are beside the point here, and cost a minute."""
    censored = Boundary(np.array([0.5]), np.array([np.nan]), ("right-censored",), np.array([False]), "learned-hard")
    monkeypatch.setattr("zoo.judging.measuring.unseen_boundaries", lambda surrogate, member: (censored, censored))


@pytest.fixture
def home(tmp_path):
    with Home.open(tmp_path / "home") as opened:
        yield opened


def family(home, contingencies, model="moe-chained", **settings):
    """A stored family with random weights: what is promised does not depend on training."""
    rows = [result.row for result in home.register(contingencies)]
    surrogate = create_model(model, compile_members(contingencies), seed=3, **settings)
    surrogate.calibrated.fill_(True)
    content = checkpoints.to_bytes(model, surrogate, contingencies)
    checkpoint = home.add_checkpoint(
        content, surrogate.n_parameters, checkpoints.KIND, {row.id: k for k, row in enumerate(rows)}
    )
    return checkpoint, surrogate


def add(home, checkpoint_id, row, **options):
    stored = load_family(home, checkpoint_id)
    return add_expert(Session(home), stored, row, TrainingRequest(stored.model, **options))


def states(surrogate, member):
    generator = torch.Generator().manual_seed(1)
    t, alpha, t_c = torch.rand(3, 40, generator=generator, dtype=torch.float64).to(surrogate.dtype)
    with torch.no_grad():
        return surrogate.states(2.0 * t, alpha, 0.25 + t_c, member)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("moe-chained", {}),
        ("moe-chained", {"share_topology": True}),
        ("moe-chained", {"components": 8, "modes": 6, "expert_width": 8}),
        ("moe", {}),
    ],
)
def test_a_new_expert_leaves_every_other_answer_bit_for_bit_as_it_was(home, contingencies, model, settings):
    checkpoint, surrogate = family(home, contingencies[:2], model, **settings)
    row = home.register(contingencies[2:])[0].row
    made = add(home, checkpoint.id, row, fraction=0.01, steps=3)
    stored = load_family(home, made.checkpoint.id)
    assert [member.name for member in stored.members] == list(NAMES)
    assert stored.row.parent_id == checkpoint.id
    assert runs.get_run(home.database, made.run_id).status == "finished"
    for member in range(2):
        assert torch.equal(states(stored.surrogate, member), states(surrogate, member))
    untrained = create_model(model, compile_members(contingencies), seed=0, **settings)
    assert not torch.equal(states(stored.surrogate, 2), states(untrained, 2))


def test_a_removed_expert_leaves_every_other_answer_bit_for_bit_as_it_was(home, contingencies):
    checkpoint, surrogate = family(home, contingencies)
    made, names = remove_expert(home, checkpoint.id, NAMES[0])
    stored = load_family(home, made.id)
    assert names == NAMES[1:]
    assert stored.row.parent_id == checkpoint.id
    assert stored.surrogate.n_parameters < surrogate.n_parameters
    for after, before in enumerate((1, 2)):
        assert torch.equal(states(stored.surrogate, after), states(surrogate, before))


def test_members_with_one_topology_share_an_expert_that_joins_and_leaves_with_the_last_of_them(contingencies):
    from dataclasses import replace

    spec = contingencies[1].spec.model_copy(update={"name": "ieee30-line-3-4-remove-again"})
    twin = replace(contingencies[1], spec=spec)
    three = create_model(
        "moe-chained", compile_members([contingencies[1], contingencies[0], twin]), share_topology=True
    )
    slices = member_slices(three)
    assert slices["fault_scale"] == (0, 1, 2)
    assert slices["post_scale"] == (0, 1, 0)
    assert "post_scale" not in new_slices(three, 2)
    assert "fault_scale" in new_slices(three, 2)
    two = create_model("moe-chained", compile_members([contingencies[0], twin]), seed=5, share_topology=True)
    copy_members(three, two, {1: 0, 2: 1})
    assert answers_equal(three, two, {1: 0, 2: 1})
    assert not answers_equal(three, two, {0: 0})


def test_what_cannot_join_or_leave_is_one_sentence_and_nothing_is_stored(home, contingencies):
    checkpoint, _ = family(home, contingencies[:2])
    rows = [result.row for result in home.register(contingencies)]
    with pytest.raises(ConflictError, match="already"):
        add(home, checkpoint.id, rows[0], steps=1)
    other = home.register([load_contingency("ieee9-mech-g2-restore")])[0].row
    with pytest.raises(UsageError, match="one system"):
        add(home, checkpoint.id, other, steps=1)
    with pytest.raises(NotFoundError, match="no expert for"):
        remove_expert(home, checkpoint.id, NAMES[2])
    single, _ = family(home, contingencies[:1])
    with pytest.raises(UsageError, match="only member"):
        remove_expert(home, single.id, NAMES[0])
    later = contingencies[2].spec.model_copy(
        update={"name": "ieee30-later", "window": Window(t_f=0.2, T=2.5, t_c=(0.25, 1.25))}
    )
    row = home.register([type(contingencies[2])(later, contingencies[2].system)])[0].row
    with pytest.raises(UsageError, match="windows"):
        add(home, checkpoint.id, row, steps=1)
    with pytest.raises(UsageError, match="fraction"):
        add(home, checkpoint.id, rows[2], fraction=0.0, steps=1)
    assert runs.runs(home.database) == []


def test_severities_that_would_rescale_the_inputs_of_others_are_refused(home, contingencies):
    checkpoint, _ = family(home, contingencies[:2], "moe")
    wider = contingencies[2].spec.model_copy(update={"name": "ieee30-severe", "severity": (0.0, 2.0)})
    row = home.register([type(contingencies[2])(wider, contingencies[2].system)])[0].row
    with pytest.raises(ConflictError, match="severities"):
        add(home, checkpoint.id, row, fraction=0.01, steps=1)
    assert [run.status for run in runs.runs(home.database)] == ["failed"]


def test_a_model_of_one_contingency_takes_no_experts(home, contingencies):
    checkpoint, _ = family(home, contingencies[:1], "es-pinn-chained")
    with pytest.raises(UsageError, match="train-moe"):
        load_family(home, checkpoint.id)


def test_certificates_of_the_others_travel_with_the_family(home, contingencies):
    rows = [result.row for result in home.register(contingencies)]
    parent, _ = family(home, contingencies[:2])
    with home.database.write() as session:
        session.get_one(CheckpointRow, parent.id).metrics_json = json.dumps(
            {"loss": 1.0, "expert_0_estimated_mae_s": 1e-5, "expert_1_estimated_mae_s": 2e-5}
        )
    grown = add(home, parent.id, rows[2], fraction=0.01, steps=1)
    metrics = runs.get_checkpoint(home.database, grown.checkpoint.id).metrics
    inherited = {name: value for name, value in metrics.items() if name.startswith("expert_")}
    assert inherited == {"expert_0_estimated_mae_s": 1e-5, "expert_1_estimated_mae_s": 2e-5}
    assert (metrics["measured_member"], metrics["steps"]) == (2.0, 1.0)
    left, _ = remove_expert(home, grown.checkpoint.id, NAMES[0])
    assert left.metrics == {"expert_0_estimated_mae_s": 2e-5}


def test_commands_add_and_remove_an_expert(home, contingencies):
    checkpoint, _ = family(home, contingencies[:2])
    added = run("add-expert", str(checkpoint.id), NAMES[2], "--fraction", "0.01", "--steps", "2", "--json", home=home)
    made = json.loads(added.stdout)
    assert (made["parent"], made["members"], made["steps"]) == (checkpoint.id, list(NAMES), 2)
    removed = run("remove-expert", str(made["checkpoint"]), NAMES[0], home=home)
    assert f"parent {made['checkpoint']}" in removed.stdout
    assert "2 members left" in removed.stdout
    for arguments, error in (
        (("add-expert", "99", NAMES[2]), NotFoundError),
        (("add-expert", str(checkpoint.id), "nowhere"), NotFoundError),
        (("remove-expert", str(checkpoint.id), NAMES[2]), ZooError),
    ):
        assert isinstance(run(*arguments, home=home).exception, error)


def run(*arguments, home):
    return CliRunner().invoke(zoo, [*arguments, "--home", str(home.path)], standalone_mode=False)
