"""kill -9 between any two steps: a small part of `benchmarks/campaigns/kills.py`."""

from pathlib import Path

import pytest

from benchmarks.campaigns.kills import kill_every_step


@pytest.mark.parametrize("operation", ["register", "add-head", "deploy", "rollback", "gc"])
def test_a_writer_killed_between_two_steps_leaves_a_home_that_verifies(tmp_path: Path, operation: str) -> None:
    kills, failures = kill_every_step(operation, None, tmp_path, every=4)
    assert kills > 0 and failures == []
