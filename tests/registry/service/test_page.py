"""The page in a real browser: every view, by mouse and keyboard, in light and dark, with nothing from elsewhere."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from contingencies.points import Axis
from registry.store import deployments
from registry.store.required_times import required_times
from tests.chromium import chromium
from tests.registry.makers import Zoo, condition_head, measured, nine
from tests.registry.service.serving import World, running, world

VIEWS = (
    "/",
    "/?system=wscc9&load=1.1",
    "/grid",
    "/contingencies/fault-a",
    "/contingencies/nine",
    "/heads/1?other=2",
    "/runs",
    "/required",
)
PATIENCE_MS = 60_000  # the machine may be busy, and the first simulation compiles

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, str]]:
    folder = tmp_path_factory.mktemp("page")
    made = world(Zoo(folder / "home", None)).guard()
    row = made.home.register([nine(folder)])[0].row
    made.home.add_head(row, condition_head((Axis("load", 0.7, 1.3),), (1.0,)), measured())
    made.home.deploy("nine", reason="over loads")
    with running(made) as url:
        yield made, url
    for home in made.zoo.opened:
        home.close()


class Desk:
    """A browser window that remembers what it asked for and what went wrong."""

    def __init__(self, browser: Browser, url: str, scheme: str = "light") -> None:
        self.url = url
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda line: self.wrong.append(line.text) if line.type == "error" else None)

    def sign_in(self, secret: str) -> Page:
        self.page.goto(f"{self.url}/login")
        self.page.get_by_label("Token").fill(secret)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.url}/")
        return self.page


@pytest.fixture
def desk(browser: Browser, served: tuple[World, str]) -> Iterator[Desk]:
    opened = Desk(browser, served[1])
    yield opened
    opened.context.close()
    assert [address for address in opened.asked if not address.startswith((served[1], "data:"))] == []
    assert opened.wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(browser: Browser, served: tuple[World, str], scheme: str) -> None:
    made, url = served
    desk = Desk(browser, url, scheme)
    page = desk.sign_in(made.secrets["deploy"])
    for view in VIEWS:
        page.goto(url + view)
        expect(page.locator("h1")).to_be_visible()
        violations = Axe().run(page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:120]) for one in violations if one["impact"] in SERIOUS]
        assert serious == [], view
    desk.context.close()
    assert desk.wrong == []


SERIOUS = ("serious", "critical")


def test_every_view_without_a_token_shows_the_sign_in(desk: Desk) -> None:
    for view in VIEWS:
        desk.page.goto(desk.url + view)
        expect(desk.page.get_by_label("Token")).to_be_focused()
    desk.page.get_by_label("Token").fill("cct_1_guess")
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("alert")).to_contain_text("not valid")
    desk.wrong.clear()  # the browser reports the refusal as an error of its own


def test_the_overview_filters_sorts_and_leads_to_a_contingency(desk: Desk, served: tuple[World, str]) -> None:
    page = desk.sign_in(served[0].secrets["read"])
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Filter").fill("fault-b")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("no head")
    page.get_by_label("Filter").fill("")
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="Contingency", exact=True).click()
    page.get_by_role("link", name="Contingency ▴").click()
    expect(rows.first).to_contain_text("fault-b")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    text = download.value.path().read_text()
    assert text.splitlines()[0].startswith("contingency,system,fault") and "fault-a,ieee30" in text
    page.get_by_role("link", name="fault-a").first.click()
    expect(page.locator("h1")).to_have_text("fault-a")


def test_a_fault_on_the_drawing_opens_its_contingency_by_keyboard(desk: Desk, served: tuple[World, str]) -> None:
    page = desk.sign_in(served[0].secrets["read"])
    page.goto(f"{desk.url}/grid")
    assert page.locator("svg.grid circle.bus").count() == 30
    fault = page.locator("svg a.fault").last
    fault.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("fault-")


def test_moving_a_slider_moves_the_swing_curves(desk: Desk, served: tuple[World, str]) -> None:
    page = desk.sign_in(served[0].secrets["read"])
    page.goto(f"{desk.url}/contingencies/fault-a")
    verdict, swing = page.locator("#verdict"), page.locator("#swing")
    expect(verdict).to_contain_text("stable: ", timeout=PATIENCE_MS)
    expect(page.locator("#boundary canvas")).to_be_visible()
    before, picture = swing.get_attribute("data-drawn"), swing.locator("canvas").screenshot()
    slider = page.get_by_label("Fault lasts")
    slider.focus()
    page.keyboard.press("End")
    expect(verdict).to_contain_text("unstable: cleared", timeout=PATIENCE_MS)
    assert swing.get_attribute("data-drawn") != before
    assert swing.locator("canvas").screenshot() != picture
    expect(page.locator("#t_c-value")).to_have_text("1050 ms")


def test_moving_the_load_moves_boundary_and_swing_curves(desk: Desk, served: tuple[World, str]) -> None:
    page = desk.sign_in(served[0].secrets["read"])
    page.goto(f"{desk.url}/contingencies/nine")
    verdict, swing, boundary = page.locator("#verdict"), page.locator("#swing"), page.locator("#boundary")
    load = page.get_by_label("Load factor")
    shown = load.locator("xpath=../output")
    expect(verdict).to_contain_text("stable: ", timeout=PATIENCE_MS)
    expect(shown).to_have_text("1.000")
    expect(boundary.locator("canvas")).to_be_visible()
    words, picture = page.locator("#verdict-more").text_content(), boundary.locator("canvas").screenshot()
    load.focus()
    page.keyboard.press("Home")
    expect(shown).to_have_text("0.700")
    expect(page.locator("#verdict-more")).not_to_have_text(words, timeout=PATIENCE_MS)
    assert swing.get_attribute("data-drawn").endswith("&load=0.7")
    expect(boundary).to_have_attribute("data-drawn", "&load=0.7")
    assert boundary.locator("canvas").screenshot() != picture
    assert page.url.endswith("/contingencies/nine?load=0.7")
    page.get_by_role("button", name="own operating point").click()
    expect(shown).to_have_text("1.000")
    page.goto(desk.url)
    expect(page.get_by_label("Load factor")).to_have_count(0)  # contingencies of ieee30 have no conditions
    page.get_by_label("System").select_option("wscc9")
    page.get_by_label("Load factor").fill("1.3")
    page.get_by_label("Load factor").press("Enter")
    row = page.get_by_role("row", name="nine")
    expect(row).to_contain_text("258.6")  # CCT 0.7 - 0.1 - 0.2 sqrt(0.5) less t_f = 0.2 s
    row.get_by_role("link", name="nine").click()
    expect(shown).to_have_text("1.300")


def test_a_head_is_deployed_and_rolled_back_with_reasons(desk: Desk, served: tuple[World, str]) -> None:
    made, database = served[0], served[0].home.database
    page = desk.sign_in(made.secrets["deploy"])
    page.goto(f"{desk.url}/heads/2")
    page.get_by_label("Reason").fill("measured better")
    page.get_by_role("button", name="Deploy head 2").click()
    expect(page.get_by_text("answers under production")).to_be_visible()
    active = deployments.active(database, "fault-a")
    assert (active.head_id, active.reason, active.actor) == (2, "measured better", "token deploy-token")
    page.get_by_label("Reason").fill("was not")
    page.get_by_role("button", name="Roll back").click()
    page.wait_for_url(f"{desk.url}/heads/1")
    assert deployments.active(database, "fault-a").reason == "was not"
    reader = Desk(page.context.browser, desk.url)
    reader.sign_in(made.secrets["read"])
    reader.page.goto(f"{desk.url}/heads/2")
    expect(reader.page.get_by_role("button", name="Deploy head 2")).to_have_count(0)
    reader.context.close()


def test_a_decision_made_on_an_old_page_is_refused(desk: Desk, served: tuple[World, str]) -> None:
    made = served[0]
    page = desk.sign_in(made.secrets["deploy"])
    page.goto(f"{desk.url}/heads/2")
    made.home.deploy("fault-a", 2, reason="somebody was quicker")
    made.home.rollback("fault-a", reason="and changed their mind")
    page.get_by_label("Reason").fill("as planned")
    page.get_by_role("button", name="Deploy head 2").click()
    expect(page.locator("h1")).to_have_text("Another deployment is active")
    assert deployments.active(made.home.database, "fault-a").head_id == 1
    desk.wrong.clear()  # the browser reports the refusal as an error of its own


def test_a_required_time_is_set_and_raises_an_alert(desk: Desk, served: tuple[World, str]) -> None:
    made = served[0]
    page = desk.sign_in(made.secrets["deploy"])
    page.goto(f"{desk.url}/required")
    page.get_by_label("Contingency").fill("fault-a")
    page.get_by_label("Required, ms").fill("600")
    page.get_by_label("Reason").fill("old breaker")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_role("region", name="Alerts")).to_contain_text("below required")
    assert required_times(made.home.database)["fault-a"].required_s == pytest.approx(0.6)
