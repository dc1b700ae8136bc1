"""Changes over HTTP: with a reason, by name, only in place of what the caller saw, all or nothing."""

import pytest
from starlette.testclient import TestClient

from registry.store import deployments, events
from tests.registry.makers import head, measured
from tests.registry.service.serving import World

Served = tuple[World, TestClient]


def post(served: Served, path: str, body: dict, tag: str | None = '"deployment-1"', role: str = "deploy"):
    made, client = served
    headers = made.headers(role) | ({} if tag is None else {"If-Match": tag})
    return client.post(f"/api/v1/deployments/fault-a{path}", json=body, headers=headers)


def test_a_head_is_deployed_rolled_back_and_retired_on_record(guarded: Served) -> None:
    made, client = guarded
    seen = client.get("/api/v1/deployments/fault-a", headers=made.headers("read"))
    assert seen.headers["etag"] == '"deployment-1"'
    second = post(guarded, "", {"head": 2, "reason": "better"}, seen.headers["etag"])
    assert second.status_code == 200 and second.json()["head"] == 2
    third = post(guarded, "/rollback", {"reason": "worse"}, second.headers["etag"])
    assert third.json()["head"] == 1
    ended = post(guarded, "/retire", {"reason": "gone"}, third.headers["etag"])
    assert ended.headers["etag"] == '"none"'
    assert post(guarded, "", {"head": 2, "reason": "again"}, '"none"').status_code == 200
    log = [event for event in events.events_of(made.home.database, "fault-a") if event.action != "distill"][2:]
    assert [(event.action, event.reason) for event in log] == [
        ("deploy", "better"), ("rollback", "worse"), ("retire", "gone"), ("deploy", "again")
    ]  # fmt: skip
    assert {event.actor for event in log} == {"token deploy-token"}


@pytest.mark.parametrize(
    ("tag", "status"), [(None, 428), ('"deployment-99"', 412), ('"none"', 412), ("*", 422), ("deployment-1", 422)]
)
def test_a_change_of_something_else_than_was_seen_is_refused(guarded: Served, tag: str | None, status: int) -> None:
    for path in ("", "/rollback", "/retire"):
        refused = post(guarded, path, {"reason": "blind"}, tag)
        assert refused.status_code == status, path
        assert refused.headers["content-type"] == "application/problem+json"
    active = deployments.active(guarded[0].home.database, "fault-a")
    assert (active.id, active.head_id) == (1, 1)


def test_the_gate_is_that_of_the_command_line(guarded: Served) -> None:
    made, _ = guarded
    row = deployments.active(made.home.database, "fault-a").head.contingency
    poor = made.home.add_head(row, head(0.5), measured(mae_s=0.5, max_s=0.9))
    refused = post(guarded, "", {"head": poor.id, "reason": "hope"})
    assert refused.status_code == 409 and "mean error 500 ms exceeds" in refused.json()["detail"]
    forced = post(guarded, "", {"head": poor.id, "reason": "known to be poor", "force": True})
    assert forced.json()["forced"] is True


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": " "},
        {"reason": "a\x1bb"},
        {"reason": "x", "who": "me"},
        {"reason": "x", "head": 0},
    ],
)
def test_a_change_without_a_proper_reason_changes_nothing(guarded: Served, body: dict) -> None:
    assert post(guarded, "", {"head": 2} | body).status_code == 422
    assert deployments.active(guarded[0].home.database, "fault-a").head_id == 1


def test_required_times_are_set_and_removed_by_those_who_deploy(guarded: Served) -> None:
    made, client = guarded
    path, headers = "/api/v1/required-times/fault-a", made.headers("deploy")
    assert client.put(path, json={"required_s": 0.12, "reason": "breaker"}, headers=headers).status_code == 200
    (row,) = client.get("/api/v1/required-times", headers=made.headers("read")).json()["items"]
    assert (row["required_s"], row["actor"]) == (0.12, "token deploy-token")
    assert client.delete(path, headers=headers).status_code == 204
    assert client.delete(path, headers=headers).status_code == 404
