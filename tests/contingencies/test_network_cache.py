"""Solved networks on disk: the same answers, and never a reason to fail."""

from dataclasses import fields

import numpy as np
import pytest

from contingencies.library import load_system
from contingencies.network import Branches, Network
from contingencies.network_cache import keep_network, load_network
from contingencies.operating_point import solve_afresh


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setenv("CCT_ZOO_CACHE", str(tmp_path))
    return load_system("ieee14")


def test_a_kept_network_is_the_solved_one_to_the_last_bit(system):
    solved = solve_afresh(system)
    keep_network(system, solved)
    kept = load_network(system)
    assert kept is not None
    for record, owner in ((Network, lambda n: n), (Branches, lambda n: n.branches)):
        for field in fields(record):
            if field.name != "branches":
                np.testing.assert_array_equal(getattr(owner(kept), field.name), getattr(owner(solved), field.name))


@pytest.mark.parametrize("damage", [lambda b: b[:100], lambda b: b"", lambda b: b[:400] + b"\x00" * 50 + b[450:]])
def test_a_damaged_file_is_ignored(system, tmp_path, damage):
    keep_network(system, solve_afresh(system))
    (path,) = tmp_path.glob("network-*.npz")
    path.write_bytes(damage(path.read_bytes()))
    kept = load_network(system)
    assert kept is None or np.isfinite(kept.E).all()


def test_another_system_finds_nothing(system):
    keep_network(system, solve_afresh(system))
    assert load_network(load_system("ieee9")) is None


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(system, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CCT_ZOO_CACHE", str(tmp_path / "file" / "below"))
    keep_network(system, solve_afresh(system))
    assert load_network(system) is None


def test_the_cache_can_be_switched_off(system, monkeypatch):
    monkeypatch.setenv("CCT_ZOO_CACHE", "off")
    keep_network(system, solve_afresh(system))
    assert load_network(system) is None
