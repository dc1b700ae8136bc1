"""Lists, rankings and boundaries over HTTP: complete, in order, and unchanged by what is added meanwhile."""

import pytest
from starlette.testclient import TestClient

from registry.query import Registry
from registry.service.ranking import Asked, rank
from registry.store.contingencies import find
from registry.store.required_times import set_required
from tests.registry.makers import contingency, head, measured
from tests.registry.service.serving import World

Opened = tuple[World, TestClient]


def everything(client: TestClient, path: str, **query: object) -> list[dict]:
    """All items of a list, page by page."""
    items, cursor = [], None
    while True:
        page = client.get(path, params=query | ({} if cursor is None else {"cursor": cursor})).json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            return items


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_any_size_hold_every_record_once(opened: Opened, limit: int) -> None:
    made, client = opened
    made.home.register([contingency(f"more-{k}", 0.1 + 0.1 * k) for k in range(4)])
    names = [one["name"] for one in everything(client, "/api/v1/contingencies", limit=limit)]
    assert names == sorted(names) and len(set(names)) == len(names) == 6
    assert [one["id"] for one in everything(client, "/api/v1/heads", limit=limit)] == [2, 1]
    events = everything(client, "/api/v1/history/fault-a", limit=limit)
    assert [one["action"] for one in events] == ["deploy", "distill", "distill", "register"]


def test_a_cursor_stays_valid_while_records_are_added(opened: Opened) -> None:
    made, client = opened
    page = client.get("/api/v1/heads", params={"limit": 1}).json()
    made.home.add_head(find(made.home.database, "fault-a"), head(0.5), measured())
    rest = client.get("/api/v1/heads", params={"limit": 5, "cursor": page["next"]}).json()
    assert [page["items"][0]["id"], *(one["id"] for one in rest["items"])] == [2, 1]


def test_lists_are_filtered(opened: Opened) -> None:
    _, client = opened
    assert everything(client, "/api/v1/heads", contingency="fault-b") == []
    assert len(everything(client, "/api/v1/heads", source="reference")) == 2
    assert everything(client, "/api/v1/deployments", active=False) == []
    assert [one["head"] for one in everything(client, "/api/v1/deployments", active=True)] == [1]
    assert len(everything(client, "/api/v1/contingencies", system="ieee30")) == 2


@pytest.mark.parametrize("path", ["contingencies", "heads", "runs", "checkpoints", "deployments", "benchmarks"])
def test_a_cursor_of_nowhere_and_an_unknown_parameter_are_refused(opened: Opened, path: str) -> None:
    _, client = opened
    for wrong in ("nonsense", "bm9uc2Vuc2U", "bjk5OTk5OTk5OTk5OTk5", "é"):
        assert client.get(f"/api/v1/{path}", params={"cursor": wrong}).status_code == 422, wrong
    refused = client.get(f"/api/v1/{path}", params={"colour": "blue"})
    assert refused.status_code == 422 and "limit, cursor" in refused.json()["detail"]


def test_single_records_are_found_and_missing_ones_are_said_to_be(opened: Opened) -> None:
    _, client = opened
    assert client.get("/api/v1/contingencies/fault-a").json()["system"] == "ieee30"
    assert client.get("/api/v1/heads/1").json()["objections"] == []
    assert [one["name"] for one in client.get("/api/v1/systems").json()["items"]] == ["ieee30"]
    for path in ("contingencies/none", "heads/99", "runs/9", "checkpoints/9", "deployments/fault-b", "history/none"):
        missing = client.get(f"/api/v1/{path}")
        assert missing.status_code == 404 and missing.json()["detail"].endswith("."), path


def test_the_ranking_puts_the_shortest_first_and_what_nothing_answers_for_last(opened: Opened) -> None:
    made, client = opened
    third = made.home.register([contingency("fault-c", 0.3)])[0].row
    made.home.add_head(third, head(0.35), measured())
    made.home.deploy("fault-c", reason="third")
    ranked = client.get("/api/v1/ranking", params={"system": "ieee30"}).json()["items"]
    assert [one["contingency"] for one in ranked] == ["fault-c", "fault-a", "fault-b"]
    assert [one["alerts"] for one in ranked] == [[], [], ["missing"]]
    censored = client.get("/api/v1/ranking", params={"alpha": 0.2}).json()["items"]
    assert [one["status"] for one in censored] == ["right-censored", "right-censored", "no-head"]


@pytest.mark.parametrize("path", ["/api/v1/ranking", "/api/v1/contingencies", "/", "/grid", "/ranking.csv"])
def test_a_system_that_is_not_registered_is_said_to_be_missing(opened: Opened, path: str) -> None:
    missing = opened[1].get(path, params={"system": "ieee3O"})
    assert missing.status_code == 404 and missing.headers["content-type"] == "application/problem+json"
    assert missing.json()["detail"] == "system 'ieee3O' is not in the registry; it has ieee30."


def test_a_margin_is_what_remains_after_bound_and_required_time(opened: Opened) -> None:
    made, _ = opened
    set_required(made.home.database, "fault-a", 0.499, "slow breaker")
    with Registry.open(made.path) as registry:
        full = next(one for one in rank(registry) if one.contingency == "fault-a")
        assert full.margin_s == pytest.approx(0.7 - 0.2 - 1e-5 - 0.499, abs=1e-12)
        assert full.alerts == () and full.margin_is == "exact"
        low = next(one for one in rank(registry, Asked(alpha=0.1)) if one.contingency == "fault-a")
        assert (low.margin_is, low.alerts) == ("at-least", ())
        assert low.margin_s == pytest.approx(1.25 - 0.2 - 0.499)
        set_required(made.home.database, "fault-a", 0.5, "slower breaker")  # the bound now decides
        assert next(one for one in rank(registry) if one.contingency == "fault-a").alerts == ("below-required",)


def test_a_head_of_an_older_version_is_stale(opened: Opened) -> None:
    made, client = opened
    made.home.register([contingency("fault-a", 0.45)])
    ranked = client.get("/api/v1/ranking").json()["items"]
    assert next(one for one in ranked if one["contingency"] == "fault-a")["alerts"] == ["stale"]


def test_a_boundary_is_sent_once_and_then_only_confirmed(opened: Opened) -> None:
    _, client = opened
    first = client.get("/api/v1/contingencies/fault-a/boundary", params={"other": 2})
    found = first.json()
    assert set(found["duration_s"]) == {0.7 - 0.2}
    assert found["other_duration_s"] == pytest.approx([0.4] * len(found["alpha"]))
    assert found["censored"] == [{"low": 0.0, "high": 0.5, "status": "right-censored"}]
    assert max(map(abs, found["slope_s"])) < 1e-9
    again = client.get(
        "/api/v1/contingencies/fault-a/boundary", params={"other": 2}, headers={"If-None-Match": first.headers["etag"]}
    )
    assert again.status_code == 304 and again.content == b""
    assert client.get("/api/v1/contingencies/fault-b/boundary", params={"head": 1}).status_code == 422
