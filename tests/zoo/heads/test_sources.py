"""What heads are distilled from: the operators are those that the surrogate holds, and a family is loaded once."""

import numpy as np
import pytest

from contingencies.library import load_contingency
from contingencies.operators import compile_members
from registry.home import Home
from zoo.heads import sources
from zoo.heads.sources import checkpoint_source, reference_source
from zoo.surrogates import checkpoints
from zoo.surrogates.catalogue import create_model

NAMES = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove")


@pytest.fixture
def home(tmp_path):
    sources._last_loaded.clear()
    with Home.open(tmp_path / "home") as opened:
        yield opened


def stored_family(home, seed):
    """A family with random weights, and the records of its members."""
    contingencies = [load_contingency(name) for name in NAMES]
    rows = [registered.row for registered in home.register(contingencies)]
    surrogate = create_model("moe-chained", compile_members(contingencies), seed=seed)
    surrogate.calibrated.fill_(True)
    content = checkpoints.to_bytes("moe-chained", surrogate, contingencies)
    members = {row.id: k for k, row in enumerate(rows)}
    return rows, home.add_checkpoint(content, surrogate.n_parameters, checkpoints.KIND, members)


def test_the_members_of_a_family_share_one_loaded_surrogate_and_its_operators(home, monkeypatch):
    rows, checkpoint = stored_family(home, seed=1)
    loads = []
    original = checkpoints.from_bytes
    monkeypatch.setattr(checkpoints, "from_bytes", lambda *given: loads.append(given) or original(*given))
    monkeypatch.setattr(sources, "compile_members", lambda members: pytest.fail("compiled again"))
    members = [checkpoint_source(home, row, checkpoint).operators for row in rows]
    assert [operators.name for operators in members] == list(NAMES)
    assert members[0].network is members[1].network
    assert len(loads) == 1


def test_another_checkpoint_replaces_the_one_that_was_loaded_last(home):
    rows, first = stored_family(home, seed=1)
    _, second = stored_family(home, seed=2)
    checkpoint_source(home, rows[0], first)
    checkpoint_source(home, rows[0], second)
    assert list(sources._last_loaded) == [second.digest]


def test_the_reference_source_is_the_fast_ode_of_its_operators(home):
    source = reference_source(load_contingency(NAMES[1]))
    boundary = source.boundary(np.array([0.9]))
    assert boundary.reference == "fast" and boundary.status == ("finite",)
    assert source.operators.name == NAMES[1]
