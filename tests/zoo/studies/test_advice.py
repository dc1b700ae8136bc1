"""Advice: figures with their origins, timed now where nothing is stored, and plain words."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import zoo as command_line
from contingencies.library import load_contingencies, load_contingency
from registry.home import Home
from zoo.heads.distill import HeadSettings, distill
from zoo.studies.advice import DOCUMENTS, NOW, advise

NAME = "ieee9-mech-g2-restore"


@pytest.fixture(scope="module")
def home_with_head(tmp_path_factory):
    path = tmp_path_factory.mktemp("advised")
    with Home.open(path) as home:
        (registered,) = home.register([load_contingency(NAME)])
        distill(home, registered.row, settings=HeadSettings(strict=2))
    return path


def test_without_a_registry_the_ode_is_timed_and_the_rest_is_quoted():
    advice = advise(load_contingency(NAME))
    options = {option.source: option for option in advice.options}
    assert options["compiled ODE"].answer.origin == NOW and options["compiled ODE"].answer.value > 0
    assert NOW in options["reference head"].build.origin and options["reference head"].error.origin == DOCUMENTS
    assert options["moe-chained"].error.origin == DOCUMENTS
    assert (
        options["operating-point head"].error.value is None and "no conditions" in options["operating-point head"].note
    )
    assert advice.registered == 0 and "distill a reference head" in advice.recommendation


def test_a_stored_head_tells_its_own_figures(home_with_head):
    with Home.open(home_with_head) as home:
        advice = advise(load_contingency(NAME), home)
    head = next(option for option in advice.options if option.source == "reference head")
    assert head.build.origin == head.error.origin == "head 1"
    assert head.build.value > 0 and head.error.value < 0.01 and "95 % within" in head.note


def test_the_command_prints_every_option_and_its_origins(home_with_head):
    run = CliRunner().invoke(command_line, ["advise", NAME, "--home", str(home_with_head)], catch_exceptions=False)
    assert run.exit_code == 0 and run.output.count("docs/measured.md") >= 3 and "head 1" in run.output
    run = CliRunner().invoke(command_line, ["advise", NAME, "--home", "nowhere", "--json"], catch_exceptions=False)
    assert [option["source"] for option in json.loads(run.output)["options"]][:2] == ["compiled ODE", "reference head"]


def test_over_conditions_a_head_of_one_point_is_told_apart():
    path = Path(__file__).parents[3] / "docs" / "examples" / "ieee30-operating-points.yaml"
    advice = advise(load_contingencies(path)[0])
    notes = {option.source: option.note for option in advice.options}
    assert "one operating point" in notes["reference head"]
    assert advice.recommendation.startswith("For many answers distill an operating-point head")
