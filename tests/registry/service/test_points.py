"""Operating points over HTTP: the registry's answers at every point, and its sentences where there is none."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from starlette.testclient import TestClient

from contingencies.errors import UsageError
from contingencies.operators import compile_contingency
from contingencies.point_networks import point_of
from contingencies.references import reference_cct
from registry import Client, Registry
from tests.registry.makers import Zoo, condition_head, measured, nine, over_conditions
from tests.registry.service.serving import World, in_process, running, world

Opened = tuple[World, TestClient]


def with_points(zoo: Zoo) -> World:
    """As `world`, and fault-p, whose head knows load and generation."""
    made = world(zoo)
    row = made.home.register([over_conditions()])[0].row
    made.home.add_head(row, condition_head(), measured())
    made.home.deploy("fault-p", reason="over conditions")
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    made = with_points(Zoo(tmp_path_factory.mktemp("points") / "home", None))
    with in_process(made) as client:
        yield made, client
    for home in made.zoo.opened:
        home.close()


POINTS = ({}, {"load": 1.1}, {"load": 0.8, "generation.2": 35.0}, {"generation.2": 70.0}, {"load": 1.3})


@pytest.mark.parametrize("at", POINTS)
def test_an_answer_at_an_operating_point_is_the_registrys(served: Opened, at: dict[str, float]) -> None:
    made, client = served
    alphas = [0.1, 0.55, 0.9]
    found = client.get("/api/v1/cct/fault-p", params={"alpha": alphas} | at).json()
    assert found["conditions"] == {"load": 1.0, "generation.2": 40.0} | at
    with Registry.open(made.path) as registry:
        for k, alpha in enumerate(alphas):
            one = registry.cct("fault-p", alpha, **at)
            told = tuple(found[column][k] for column in ("cct_s", "duration_s", "status", "error_bound_s"))
            assert told == one[:4]
            assert (found["reason"][k] is None) == (one.status == "finite")
            if one.status == "out-of-domain":
                domain = "outside the head's domain: alpha 0 to 1, load 0.8 to 1.2, generation.2 10 to 70 MW"
                assert found["reason"][k] == domain


def test_rows_at_many_operating_points_are_answered_as_each_alone(served: Opened) -> None:
    made, client = served
    rng = np.random.default_rng(2)
    alphas, loads = rng.uniform(0, 1.1, 60).tolist(), rng.uniform(0.75, 1.25, 60).tolist()
    powers = [None if k % 3 == 0 else float(power) for k, power in enumerate(rng.uniform(0, 80, 60))]
    names = ["fault-p"] * 50 + ["fault-a"] * 10
    body = {"contingency": names, "alpha": alphas, "load": [*loads[:50], *[None] * 10], "generation.2": powers}
    body["generation.2"] = [*powers[:50], *[None] * 10]
    found = client.post("/api/v1/cct", json=body).json()
    assert found["answered_by"]["fault-p"]["conditions"] == ["load", "generation.2"]
    assert found["answered_by"]["fault-a"]["conditions"] == []
    with Registry.open(made.path) as registry:
        for k, name in enumerate(names):
            at = {key: body[key][k] for key in ("load", "generation.2") if body[key][k] is not None}
            one = registry.cct(name, alphas[k], **at)
            assert found["status"][k] == one.status
            assert found["cct_s"][k] == (None if one.cct is None else pytest.approx(one.cct, abs=1e-12))
            assert found["error_bound_s"][k] == one.error_bound
            if one.status == "out-of-domain":
                assert found["reason"][k].startswith("outside the head's domain: alpha 0 to 1")
                assert ("load" in found["reason"][k]) == (name == "fault-p")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("cct/fault-a?alpha=0.9&load=1.1", "fault-a has no condition 'load'; it has none"),
        ("cct/fault-p?alpha=0.9&wind=3", "fault-p has no condition 'wind'; it has load, generation.2."),
        ("cct/fault-p?alpha=0.9&load=much", "load = 'much' is not a finite number."),
        ("cct/fault-p?alpha=0.9&load=nan", "load = 'nan' is not a finite number."),
        ("cct/fault-p?alpha=0.9&load=1&load=1.1", "load is given twice"),
        ("ranking?wind=3", "parameter 'wind' is not known"),
        ("ranking?load.north=1.1", "no contingency of any system has a condition 'load.north'; they have load, gen"),
        ("contingencies/fault-a/boundary?load=1.1", "fault-a has no condition 'load'"),
        ("contingencies/fault-a/reference?alpha=0.9&load=1.1", "fault-a has no condition 'load'"),
        ("contingencies?load=1.1", "parameter 'load' is not known"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_in_a_sentence(served: Opened, path: str, sentence: str) -> None:
    refused = served[1].get(f"/api/v1/{path}")
    assert refused.status_code == 422 and refused.headers["content-type"] == "application/problem+json"
    assert sentence in refused.json()["detail"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"contingency": ["fault-p", "fault-a"], "load": 1.1}, "fault-a has no condition 'load'"),
        ({"contingency": ["fault-p", "fault-p"], "generation.3": [1, 2]}, "fault-p has no condition 'generation.3'"),
        ({"contingency": ["fault-p", "fault-p"], "load": [1.1]}, "differ in length"),
        ({"contingency": "fault-p", "load": "1.1"}, "'load' must be a list of numbers"),
        ({"contingency": "fault-p", "wind": [1.1]}, "column 'wind' is not known"),
    ],
)
def test_columns_of_conditions_that_make_no_sense_are_refused(served: Opened, columns: dict, sentence: str) -> None:
    refused = served[1].post("/api/v1/cct", json={"alpha": 0.9} | columns)
    assert refused.status_code == 422 and sentence in refused.json()["detail"]


def test_the_client_answers_at_every_operating_point_as_the_registry_does(tmp_path) -> None:
    made = with_points(Zoo(tmp_path / "home", None))
    grid = np.linspace(0.4, 1.0, 6).reshape(2, 3)
    questions = [
        (grid, {}), (grid, {"load": 1.1}), (0.9, {"load": np.array([0.9, 1.1, 1.3])}),
        (grid, {"load": np.array([0.8, 1.0, 1.2]), "generation.2": 20}),
    ]  # fmt: skip
    with running(made) as url, Client(url) as client, Registry.open(made.path) as registry:
        for at in POINTS:
            assert client.cct("fault-p", 0.9, **at) == registry.cct("fault-p", 0.9, **at)
        for alpha, at in questions:
            mine, theirs = client.cct("fault-p", alpha, **at), registry.cct("fault-p", alpha, **at)
            for part in dataclasses.fields(theirs):
                np.testing.assert_array_equal(getattr(mine, part.name), getattr(theirs, part.name), part.name)
        for name, at in (("fault-a", {"load": 1.1}), ("fault-p", {"position": 0.5}), ("fault-p", {"load": "much"})):
            for alpha in (0.9, [0.9]):
                with pytest.raises(UsageError) as here:
                    client.cct(name, alpha, **at)
                with pytest.raises(UsageError) as there:
                    registry.cct(name, alpha, **at)
                if at != {"load": "much"}:
                    assert str(here.value) == str(there.value)
    for home in made.zoo.opened:
        home.close()


def test_a_ranking_at_a_point_has_no_number_from_heads_that_do_not_know_it(served: Opened) -> None:
    _, client = served

    def ranked(**at: float) -> dict[str, dict]:
        items = client.get("/api/v1/ranking", params={"system": "ieee30"} | at).json()["items"]
        return {one["contingency"]: one for one in items}

    own, heavy = ranked(), ranked(load=1.1)
    assert own["fault-a"]["status"] == own["fault-p"]["status"] == "finite"
    assert heavy["fault-p"]["duration_s"] == pytest.approx(own["fault-p"]["duration_s"] - 0.05)
    assert (heavy["fault-a"]["status"], heavy["fault-a"]["duration_s"]) == ("out-of-domain", None)
    assert ranked(load=2.0)["fault-p"]["status"] == "out-of-domain"


def test_a_table_to_take_away_names_its_operating_point(served: Opened) -> None:
    lines = served[1].get("/ranking.csv", params={"system": "ieee30", "load": 1.1}).text.splitlines()
    assert lines[0].endswith(",alerts,at") and all(line.endswith(",load=1.1") for line in lines[1:])


def test_the_boundary_follows_the_operating_point(served: Opened) -> None:
    _, client = served
    address = "/api/v1/contingencies/fault-p/boundary"
    first, second = client.get(address), client.get(address, params={"load": 1.2, "generation.2": 10})
    assert first.headers["etag"] != second.headers["etag"]
    own, moved = first.json(), second.json()
    assert own["conditions"] == {"load": 1.0, "generation.2": 40.0} and own["strict"] == []
    expected = [0.5 - 0.1 + 0.05 - 0.2 * max(alpha - 0.5, 0.0) ** 0.5 for alpha in moved["alpha"]]
    assert moved["duration_s"] == pytest.approx(expected, abs=1e-9)
    assert set(moved["bound_s"]) == {2e-4, 1e-5}
    same = client.get(
        address, params={"generation.2": 10, "load": 1.2}, headers={"If-None-Match": second.headers["etag"]}
    )
    assert same.status_code == 304
    outside = client.get(address, params={"load": 1.5}).json()
    assert outside["alpha"] == [] and outside["censored"][0]["status"] == "out-of-domain"


def test_a_simulation_on_request_is_at_the_operating_point_asked_for(tmp_path) -> None:
    described = nine(tmp_path)
    made = world(Zoo(tmp_path / "home", None))
    made.home.register([described])
    with in_process(made) as client:
        base = "/api/v1/contingencies/nine"
        light, own = (client.get(f"{base}/reference", params={"alpha": 1} | at).json() for at in ({"load": 0.8}, {}))
        assert (own["conditions"], light["conditions"]) == ({"load": 1.0}, {"load": 0.8})
        for found, at in ((light, {"load": 0.8}), (own, {})):
            truth = reference_cct(compile_contingency(described, point_of(described, at)), 1.0, "fast")
            assert found["cct_s"] == [truth.cct]
        assert light["cct_s"] < own["cct_s"]  # units 2 and 3 go on feeding what the loads no longer take
        question = {"alpha": 1.0, "t_c": (own["cct_s"][0] + light["cct_s"][0]) / 2}
        stable, lost = (client.get(f"{base}/simulate", params=question | at).json() for at in ({}, {"load": 0.8}))
        assert stable["stable"] and not lost["stable"] and lost["conditions"] == {"load": 0.8}
        refused = client.get(f"{base}/reference", params={"alpha": 1.0, "load": 1.5})
        assert refused.status_code == 422 and "it goes from 0.7 to 1.3" in refused.json()["detail"]
    for home in made.zoo.opened:
        home.close()
