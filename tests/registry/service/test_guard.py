"""Who may do what: every route with every kind of token, and nothing to be had by tricks."""

import re
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from contingencies.errors import UsageError
from registry.service.app import create_app
from registry.service.guard import COOKIE
from registry.service.pages import acting, looking, overview
from registry.store import deployments, events, tokens
from tests.registry.service.serving import World, in_process, world

Served = tuple[World, TestClient]

DEPLOYING = {  # routes that need more than read, with a request that would succeed
    ("POST", "/api/v1/deployments/{name}"): {"json": {"head": 2, "reason": "better"}},
    ("POST", "/api/v1/deployments/{name}/rollback"): {"json": {"reason": "worse"}},
    ("POST", "/api/v1/deployments/{name}/retire"): {"json": {"reason": "gone"}},
    ("PUT", "/api/v1/required-times/{name}"): {"json": {"required_s": 0.1, "reason": "breaker"}},
    ("DELETE", "/api/v1/required-times/{name}"): {},
}
PUBLIC = {("GET", "/healthz"), ("GET", "/readyz")}
PAGES = ("/", "/grid", "/ranking.csv", "/contingencies/fault-a", "/heads/1", "/runs", "/required")


def routes(client: TestClient, headers: dict[str, str]) -> list[tuple[str, str]]:
    """Every operation of the OpenAPI document."""
    document = client.get("/api/v1/openapi.json", headers=headers).json()
    return [(method.upper(), path) for path, item in document["paths"].items() for method in item]


def call(client: TestClient, method: str, path: str, headers: dict[str, str]):
    filled = path.replace("{name}", "fault-a").replace("{number}", "1")
    extra = DEPLOYING.get((method, path), {})
    query = {"alpha": 0.9, "t_c": 0.4} if "{name}/simulate" in path else {"alpha": 0.9} if "alpha" in path else {}
    if path.endswith(("/cct/{name}", "/reference")):
        query = {"alpha": 0.9}
    if (method, path) == ("POST", "/api/v1/cct"):
        extra = {"json": {"contingency": ["fault-a"], "alpha": [0.9]}}
    return client.request(method, filled, params=query, headers={"If-Match": '"deployment-1"'} | headers, **extra)


@pytest.mark.parametrize("kind", [None, "read", "deploy", "admin", "revoked", "expired", "forged"])
def test_every_route_lets_through_exactly_those_it_should(guarded: Served, kind: str | None) -> None:
    made, client = guarded
    secret = made.secrets["admin"]
    made.secrets["forged"] = secret[:-4] + ("AAAA" if secret[-4:] != "AAAA" else "BBBB")
    operations = routes(client, made.headers("admin"))
    assert len(operations) > 20 and set(DEPLOYING) <= set(operations)
    database = made.home.database
    for method, path in operations:
        status = call(client, method, path, made.headers(kind)).status_code
        if (method, path) in PUBLIC:
            assert status == 200, (method, path)
        elif kind not in ("read", "deploy", "admin"):
            assert status in (401, 429), (method, path)  # 429: too many wrong tokens in a row
        elif (method, path) in DEPLOYING and kind == "read":
            assert status == 403, (method, path)
        else:
            assert status not in (401, 403), (method, path)
    if kind not in ("deploy", "admin"):
        assert [row.id for row in deployments.history(database, "fault-a")] == [1]


@pytest.mark.parametrize("kind", [None, "read", "deploy", "admin", "revoked", "expired"])
def test_every_route_of_the_page_lets_through_exactly_those_it_should(guarded: Served, kind: str | None) -> None:
    made, client = guarded
    pages = [
        (method, one) for view in (overview, looking, acting) for one in view.router.routes for method in one.methods
    ]
    assert len(pages) > 10
    form = {
        "head": "2",
        "reason": "better",
        "replaces": '"deployment-1"',
        "contingency": "fault-a",
        "required_ms": "90",
    }
    for method, route in pages:
        path = route.path.replace("{name}", "fault-a").replace("{number}", "1").replace("{action}", "deploy")
        if path in ("/login", "/logout", "/runs/1"):  # open to all; ends a session; there is no run to look at
            continue
        status = client.request(method, path, headers=made.headers(kind), data=form if method == "POST" else None)
        if kind not in ("read", "deploy", "admin"):
            assert status.status_code in (303 if method == "GET" else 401, 429), (method, path)
            assert method != "GET" or status.headers["location"].startswith("/login?next="), path
        elif method == "POST" and kind == "read":
            assert status.status_code == 403, path
        else:
            assert status.status_code in (200, 303), (method, path)
    changed = [row.head_id for row in deployments.history(made.home.database, "fault-a")] != [1]
    assert changed == (kind in ("deploy", "admin"))


@pytest.mark.parametrize("page", PAGES)
def test_every_view_without_a_token_leads_to_the_sign_in(guarded: Served, page: str) -> None:
    _, client = guarded
    away = client.get(page)
    assert (away.status_code, away.headers["location"]) == (303, f"/login?next={quote(page)}")


def test_without_tokens_loopback_is_open_to_look_and_closed_to_change(opened: Served) -> None:
    made, client = opened
    for method, path in routes(client, {}):
        status = call(client, method, path, {}).status_code
        assert (status == 401) == ((method, path) in DEPLOYING), (method, path)
    for page in PAGES:
        assert client.get(page).status_code == 200, page
    tokens.create(made.home.database, "first", "read")
    made_now = client.get("/api/v1/heads")
    assert made_now.status_code in (200, 401)  # within a second


def test_other_interfaces_refuse_to_start_without_a_token(opened: Served) -> None:
    made, _ = opened
    with pytest.raises(UsageError, match="cct-zoo token create"):
        create_app(made.settings(host="0.0.0.0"))
    tokens.create(made.home.database, "first", "read")
    tokens.revoke(made.home.database, "first")
    with in_process(made, host="0.0.0.0") as client:
        assert client.get("/api/v1/heads").status_code == 401  # a revoked token does not open the door


def test_a_browser_signs_in_and_out(guarded: Served) -> None:
    made, client = guarded
    origin = {"Origin": "http://127.0.0.1:8420"}
    wrong = client.post("/login", data={"token": "cct_1_wrong", "next": "/"}, headers=origin)
    assert wrong.status_code == 401 and "not valid" in wrong.text
    signed = client.post("/login", data={"token": made.secrets["deploy"], "next": "//evil.example/"}, headers=origin)
    assert (signed.status_code, signed.headers["location"]) == (303, "/")
    cookie = signed.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and made.secrets["deploy"] not in cookie
    assert "deploy-token" in client.get("/").text
    out = client.post("/logout", headers=origin)
    assert out.status_code == 303
    client.cookies.set(COOKIE, re.search(rf"{COOKIE}=([^;]+)", cookie)[1])
    assert client.get("/").status_code == 303  # the old cookie opens nothing


def test_another_site_cannot_act_through_a_browsers_session(guarded: Served) -> None:
    made, client = guarded
    token = tokens.find(made.home.database, made.secrets["deploy"])
    client.cookies.set(COOKIE, tokens.begin_session(made.home.database, token)[0])
    form = {"head": "2", "reason": "hostile", "replaces": '"deployment-1"'}
    for headers in ({}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        assert client.post("/contingencies/fault-a/deploy", data=form, headers=headers).status_code == 403
        assert client.post("/login", data={"token": "x"}, headers=headers).status_code == 403
    assert deployments.active(made.home.database, "fault-a").head_id == 1
    same = client.post("/contingencies/fault-a/deploy", data=form, headers={"Sec-Fetch-Site": "same-origin"})
    assert same.status_code == 303
    assert deployments.active(made.home.database, "fault-a").actor == "token deploy-token"


def test_requests_of_one_token_are_limited_and_those_of_another_are_not(sqlite_zoo) -> None:
    made = world(sqlite_zoo).guard()
    with in_process(made, rate=5.0) as client:
        statuses = [client.get("/api/v1/systems", headers=made.headers("read")).status_code for _ in range(40)]
        refused = client.get("/api/v1/systems", headers=made.headers("read"))
        assert statuses[:5] == [200] * 5 and 429 in statuses
        if refused.status_code == 429:
            assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/api/v1/systems", headers=made.headers("admin")).status_code == 200


def test_no_secret_reaches_the_log_or_an_error(sqlite_zoo, capsys) -> None:
    made = world(sqlite_zoo).guard()
    with in_process(made, access_log=True) as client:
        for kind in ("read", "deploy", "revoked"):
            client.get("/api/v1/heads/99", headers=made.headers(kind))
        shown = client.get(f"/api/v1/{made.secrets['revoked']}").text
        client.post("/login", data={"token": made.secrets["read"]}, headers={"Origin": "http://127.0.0.1:8420"})
    log = capsys.readouterr().err
    assert '"status":404' in log and '"caller":"token read-token"' in log and '"request":' in log
    for name, secret in made.secrets.items():
        assert secret not in shown
        if name != "revoked":  # which a client put into a path of its own accord
            assert secret not in log
    assert not any(
        secret in str(event)
        for event in events.events_of(made.home.database, "read-token")
        for secret in made.secrets.values()
    )


def test_every_answer_carries_the_security_headers_and_its_request_id(guarded: Served) -> None:
    made, client = guarded
    for path in ("/", "/api/v1/heads", "/login", "/static/style.css", "/nowhere"):
        answer = client.get(path, headers=made.headers("read") | {"X-Request-Id": "my-request.1"})
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"] == "my-request.1"
    hostile = client.get("/healthz", headers={"X-Request-Id": "a b\tc" * 40})
    assert re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", hostile.headers["x-request-id"])
