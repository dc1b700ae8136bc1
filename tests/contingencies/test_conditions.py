"""Conditions: what a description may vary, identities that older descriptions keep, and points of the ranges."""

import numpy as np
import pytest

from contingencies.errors import SpecError, UsageError
from contingencies.library import Contingency, load_contingencies, load_contingency
from contingencies.points import Axis, parse_at, point_at, sample_points
from contingencies.spec_files import contingency_text
from tests.cases import write_contingency

PLAIN = """\
name: example
system: ieee30
fault: {kind: line, line: [3, 4], position: 0.5}
clearing: {action: restore}
"""
VARIED = PLAIN + "conditions: {load: [0.8, 1.2], generation: {2: [20, 60]}, position: [0.05, 0.95]}\n"
AXES = (Axis("load", 0.8, 1.2), Axis("generation.2", 20.0, 60.0, "MW"))


def loaded(folder, text):
    return load_contingencies(write_contingency(folder, text))[0]


def test_a_description_without_conditions_keeps_the_identity_it_had_before_there_were_any(tmp_path):
    contingency = load_contingency("ieee30-line-3-4-restore")
    assert "conditions" not in contingency.canonical_json
    assert loaded(tmp_path, PLAIN).sha256 == loaded(tmp_path, PLAIN + "conditions:\n").sha256
    assert loaded(tmp_path, PLAIN).sha256 != loaded(tmp_path, VARIED).sha256


def test_conditions_stand_in_one_order_whatever_the_order_of_the_file(tmp_path):
    text = PLAIN + (
        "conditions: {position: [0.1, 0.9], generation: {13: [0, 20], 2: [20, 60]}, "
        "loads: {west: {buses: [7], factor: [0.9, 1.1]}, east: {area: 1, factor: [0.5, 1.5]}}, load: [0.8, 1.2]}\n"
    )
    axes = loaded(tmp_path, text).spec.conditions.axes
    assert [axis.name for axis in axes] == [
        "load", "load.east", "load.west", "generation.2", "generation.13", "position",
    ]  # fmt: skip


def test_a_description_with_conditions_reads_back_from_its_json_and_from_its_file(tmp_path):
    contingency = loaded(tmp_path, VARIED)
    again = Contingency.from_json(contingency.to_json(), contingency.system)
    assert again == contingency and hash(again) == hash(contingency) and again.sha256 == contingency.sha256
    assert loaded(tmp_path, contingency_text(contingency.spec)).sha256 == contingency.sha256


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("{}", "names none"),
        ("{load: [1.2, 0.8]}", "not above its start 1.2"),
        ("{load: [0, 1.2]}", "greater than 0"),
        ("{load: [.nan, 1.2]}", "finite"),
        ("{position: [0.0, 0.9]}", "strictly between 0 and 1"),
        ("{generation: {two: [20, 60]}}", "should match pattern"),
        ("{generation: {2: [60, 20]}}", "the range of bus 2 ends at 20"),
        ("{loads: {a: {factor: [0.9, 1.1]}}}", "either an area or buses"),
        ("{generation: {1: [0, 1], 2: [0, 1], 3: [0, 1], 4: [0, 1], 5: [0, 1], 6: [0, 1], 7: [0, 1]}}", "at most 6"),
        ("{wind: [0, 1]}", "not a known field"),
    ],
)
def test_a_wrong_block_of_conditions_gets_one_sentence_with_its_line(tmp_path, block, words):
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, PLAIN + f"conditions: {block}\n")
    sentence = str(caught.value)
    assert words in sentence and "contingency.yaml:5: conditions" in sentence and "\n" not in sentence


def test_the_position_of_a_fault_that_is_on_no_line_does_not_vary(tmp_path):
    text = PLAIN.replace("kind: line, line: [3, 4], position: 0.5", "kind: bus, bus: 3, shunt_pu: {b: -10}")
    with pytest.raises(SpecError, match="the fault is not on one"):
        loaded(tmp_path, text + "conditions: {position: [0.1, 0.9]}\n")


def test_what_is_not_given_is_the_cases_own_value():
    own = {"load": 1.0, "generation.2": 40.0}
    assert point_at("x", AXES, {"load": 1.1}, own).values == (1.1, 40.0)
    assert str(point_at("x", AXES, {}, own)) == "load=1, generation.2=40"


@pytest.mark.parametrize(
    ("given", "own", "words"),
    [
        ({"load": 1.3}, 40.0, "load = 1.3 is out of its range; it goes from 0.8 to 1.2"),
        ({"laod": 1.0}, 40.0, "no condition 'laod'; it has load, generation.2"),
        ({}, 80.0, "the case's own value 80 is out of its range, 20 to 60 MW; give generation.2"),
    ],
)
def test_a_point_outside_the_ranges_is_refused(given, own, words):
    with pytest.raises(UsageError, match=words):
        point_at("x", AXES, given, {"load": 1.0, "generation.2": own})


@pytest.mark.parametrize("text", ["load", "load=", "load=high", "load=inf"])
def test_a_condition_is_written_as_name_and_number(text):
    with pytest.raises(UsageError, match="NAME=NUMBER"):
        parse_at([text])
    assert parse_at(["load=1.1", "generation.2=35"]) == {"load": 1.1, "generation.2": 35.0}


def test_sampled_points_fill_the_ranges_evenly_and_more_of_them_begin_with_the_same():
    points = sample_points(AXES, 64, seed=3)
    assert np.array_equal(sample_points(AXES, 50, seed=3), points[:50])
    assert not np.array_equal(sample_points(AXES, 64, seed=4), points)
    cells = np.floor((points - [0.8, 20.0]) / [0.05, 5.0]).astype(int)
    assert len({tuple(cell) for cell in cells}) == 64  # one point in each of the 8 x 8 cells
