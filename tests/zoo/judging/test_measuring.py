"""A trained family beside the reference: the same figures wherever its members are measured."""

import torch

from contingencies.library import load_contingency
from contingencies.operators import compile_members
from zoo.judging import measuring
from zoo.judging.measuring import measure_members
from zoo.surrogates.catalogue import create_model
from zoo.work.executor import LocalProcesses

NAMES = ["ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"]


def test_members_are_measured_alike_here_and_in_worker_processes(monkeypatch):
    monkeypatch.setattr(measuring, "FEW", 2)
    torch.set_num_threads(1)
    members = compile_members([load_contingency(name) for name in NAMES])
    surrogate = create_model("moe-chained", members, width=8, expert_width=6).eval()
    here = {each.member: each for each in measure_members(surrogate, [0, 1])}
    there = {each.member: each for each in measure_members(surrogate, [0, 1], LocalProcesses(2))}
    assert here.keys() == there.keys() == {0, 1}
    for member, measured in here.items():
        assert measured.learned.status == there[member].learned.status
        assert measured.truth.status == there[member].truth.status
        assert measured.certificate.keys() == there[member].certificate.keys()
