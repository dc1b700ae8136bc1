"""A home that version 0.1.0 wrote opens, verifies and answers as it did."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli import zoo
from registry import Registry
from registry.home import Home
from registry.store import contingencies as store
from zoo.lookup import find_checkpoint
from zoo.surrogates import checkpoints

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "home-0.1.0.json").read_text())


@pytest.fixture
def home(tmp_path):
    with tarfile.open(FIXTURES / "home-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_deployed_heads_of_an_old_home_answer_the_same(home):
    with Registry.open(home) as registry:
        for expected in EXPECTED["answers"]:
            answer = registry.cct(expected["contingency"], expected["alpha"])
            assert answer.status == expected["status"]
            assert answer.cct == expected["cct_s"]
            assert answer.error_bound == expected["error_bound_s"]
            assert (answer.head, answer.checkpoint) == (expected["head"], expected["checkpoint"])


def test_contingencies_of_an_old_home_keep_their_identity(home):
    with Home.open(home) as opened:
        rows = store.latest(opened.database)
        assert len(rows) == 4
        for row in rows:
            assert opened.contingency(row).sha256 == row.sha256


@pytest.mark.parametrize("expected", EXPECTED["learned"], ids=lambda e: f"{e['contingency']}-{e['alpha']}")
def test_checkpoints_of_an_old_home_have_the_same_boundary(home, expected):

    from contingencies.references import reference_cct
    from espinn_moe.boundary import learned_boundary
    from espinn_moe.margins import HARD

    with Home.open(home) as opened:
        row = store.find(opened.database, expected["contingency"])
        checkpoint = find_checkpoint(opened, row, str(expected["checkpoint"]))
        loaded = checkpoints.from_bytes(opened.load_checkpoint(checkpoint), opened.contingency(row))
    boundary = learned_boundary(loaded.surrogate, np.array([expected["alpha"]]), loaded.member, HARD)
    truth = reference_cct(loaded.surrogate.members[loaded.member], expected["alpha"], "fast")
    assert boundary.cct[0] == pytest.approx(expected["cct_s"], abs=2e-6)
    assert truth.cct == pytest.approx(expected["true_cct_s"], abs=2e-6)


def test_an_old_home_verifies(home):
    outcome = CliRunner().invoke(zoo, ["verify", "--home", str(home)], standalone_mode=False)
    assert outcome.exception is None, outcome.exception
