"""The query over HTTP says what the registry says, and says why where it has no number."""

from dataclasses import replace

import numpy as np
import orjson
import pytest
from starlette.testclient import TestClient

from espinn_moe.head import STATUSES
from registry.query import Registry
from registry.service.answers import NO_HEAD, REASONS
from registry.service.columns import MAX_ROWS
from registry.service.drawing import LEVELS, level_of
from registry.service.ranking import rank, urgency
from tests.registry.makers import EDGE
from tests.registry.service.serving import World

Opened = tuple[World, TestClient]


def test_an_answer_over_http_is_the_registrys(opened: Opened) -> None:
    made, client = opened
    alphas = [0.1, EDGE, 0.9, 1.0, 1.5]
    with Registry.open(made.path) as registry:
        expected = [registry.cct("fault-a", alpha) for alpha in alphas]
    found = client.get("/api/v1/cct/fault-a", params={"alpha": alphas}).json()
    assert found["alpha"] == alphas
    assert list(zip(found["cct_s"], found["duration_s"], found["status"], found["error_bound_s"], strict=True)) == [
        (one.cct, one.duration, one.status, one.error_bound) for one in expected
    ]
    assert (found["head"], found["checkpoint"], found["version"]) == expected[0][4:7]
    for number, reason in zip(found["cct_s"], found["reason"], strict=True):
        assert (number is None) == (reason is not None)


def test_every_status_that_a_head_can_have_is_explained_and_ranked(opened: Opened) -> None:
    made, _ = opened
    with Registry.open(made.path) as registry:
        one = rank(registry)[0]
    assert set(REASONS) == set(STATUSES)
    order = [urgency(replace(one, status=status))[0] for status in (*STATUSES, NO_HEAD)]
    assert len(set(order)) == len(order)
    assert all(level_of(replace(one, status=status)) in LEVELS for status in (*STATUSES, NO_HEAD))


def test_many_rows_are_answered_as_each_alone(opened: Opened) -> None:
    made, client = opened
    rng = np.random.default_rng(1)
    names = [("fault-a", "fault-b", "unknown")[k] for k in rng.integers(0, 3, 500)]
    alphas = rng.uniform(-0.2, 1.2, 500).tolist()
    found = client.post("/api/v1/cct", json={"contingency": names, "alpha": alphas}).json()
    assert found["rows"] == 500
    with Registry.open(made.path) as registry:
        for k, (name, alpha) in enumerate(zip(names, alphas, strict=True)):
            row = {column: found[column][k] for column in ("status", "cct_s", "duration_s", "error_bound_s", "head")}
            if name != "fault-a":
                assert row == {"status": "no-head"} | dict.fromkeys(list(row)[1:])
                assert name in found["reason"][k]
                continue
            one = registry.cct(name, alpha)
            assert row == dict(zip(row, (one.status, one.cct, one.duration, one.error_bound, one.head), strict=True))
    assert set(found["missing"]) == {"fault-b", "unknown"}
    assert "not registered" in found["missing"]["unknown"]


def test_one_name_or_one_severity_stands_for_a_column(opened: Opened) -> None:
    _, client = opened
    one = client.post("/api/v1/cct", json={"contingency": "fault-a", "alpha": [0.9, 0.1]}).json()
    other = client.post("/api/v1/cct", json={"contingency": ["fault-a", "fault-a"], "alpha": 0.9}).json()
    assert one["status"] == ["finite", "right-censored"]
    assert other["status"] == ["finite", "finite"]
    none = client.post("/api/v1/cct", json={"contingency": [], "alpha": []}).json()
    assert (none["rows"], none["status"], none["answered_by"]) == (0, [], {})


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("", "at least one severity"),
        ("?alpha=nine", "'nine' is not a number"),
        ("?alpha=nan", "not a severity"),
        ("?alpha=inf", "not a severity"),
        ("?alpha=0.9&colour=blue", "fault-a has no condition 'colour'"),
        ("?alpha=0.9&alias=NOT OK", "is not valid"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_a_sentence(opened: Opened, query: str, sentence: str) -> None:
    _, client = opened
    refused = client.get(f"/api/v1/cct/fault-a{query}")
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert sentence in refused.json()["detail"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not JSON"),
        (b"[1, 2]", "object with columns"),
        (b'{"contingency": ["fault-a"], "alpha": ["0.9"]}', "list of numbers"),
        (b'{"contingency": ["fault-a"], "alpha": [true]}', "list of numbers"),
        (b'{"contingency": ["fault-a"], "alpha": [null]}', "list of numbers"),
        (b'{"contingency": [1], "alpha": [0.9]}', "list of names"),
        (b'{"contingency": ["fault-a"], "alpha": [0.9, 1.0]}', "differ in length"),
        (b'{"contingency": ["fault-a"], "alpha": [1e999]}', "not JSON"),
        (b'{"contingency": ["fault-a"], "alpha": [0.9], "colour": [1]}', "known: contingency, alpha, alias"),
        (b'{"alpha": [0.9]}', "list of names"),
    ],
)
def test_columns_that_make_no_sense_are_refused_in_a_sentence(opened: Opened, body: bytes, sentence: str) -> None:
    _, client = opened
    refused = client.post("/api/v1/cct", content=body)
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]


def test_the_number_of_rows_is_limited(opened: Opened) -> None:
    _, client = opened
    most = client.post("/api/v1/cct", content=orjson.dumps({"contingency": "fault-a", "alpha": [0.9] * MAX_ROWS}))
    assert most.status_code == 200 and most.json()["rows"] == MAX_ROWS
    more = client.post("/api/v1/cct", content=orjson.dumps({"contingency": "fault-a", "alpha": [0.9] * (MAX_ROWS + 1)}))
    assert more.status_code == 422 and "too many" in more.json()["detail"]


def test_a_new_deployment_answers_the_next_question(opened: Opened) -> None:
    made, client = opened
    ask = "/api/v1/cct/fault-a?alpha=0.9"
    assert client.get(ask).json()["cct_s"] == [0.7]
    made.home.deploy("fault-a", 2, reason="better")
    assert client.get(ask).json()["cct_s"] == [0.6]
    made.home.rollback("fault-a", reason="not better")
    assert client.get(ask).json()["head"] == 1
    made.home.retire("fault-a", reason="gone")
    gone = client.get(ask)
    assert gone.status_code == 404 and "no head deployed" in gone.json()["detail"]
