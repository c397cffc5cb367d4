"""The live connection: lost, returned, refused, stalled, held back, hidden, shared by many tabs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.browser.conftest import Browse
from tests.browser.harness import Ground, Visit
from tests.helpers import wait_until

from lineclear.web.tokens import Tokens

NO_SERVER = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE", "ERR_NETWORK", "503", "401")


def banner(page: Page) -> Locator:
    return page.locator(".notice.connection")


def live(page: Page, status: str = "live") -> None:
    expect(page.locator("body")).to_have_attribute("data-live", status, timeout=10_000)


def ended(visit: Visit, *paths: str) -> bool:
    """Whether every request of these paths is over."""
    asked = [one for one in visit.requests if any(path in one.url for path in paths)]
    return all(one.failure or one.timing["responseEnd"] >= 0 for one in asked)


@pytest.fixture
def waiting(served: Ground) -> Ground:
    served.site.submit("slow", name="Dune")
    return served


def test_lost_and_returned(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting)
    visit.expect(*NO_SERVER)
    page = visit.page
    live(page)
    expect(page.locator(".pane-job")).to_be_visible()  # all that the screen is made of is there
    waiting.server.kill()
    expect(banner(page)).to_contain_text("Connection lost at")
    expect(banner(page)).to_contain_text("What you see is from then. Trying again in")
    expect(page.get_by_role("alert")).to_contain_text("Connection lost at")
    expect(page.locator("h1")).to_contain_text("as of")
    remove = page.locator("#main .row [data-kind=remove]")
    expect(remove).to_have_attribute("aria-disabled", "true")
    expect(remove).to_have_attribute("title", "Not while the connection is lost.")
    remove.click(force=True)
    assert [one for one in visit.requests if one.method != "GET"] == []
    page.get_by_role("button", name="Try now").click()
    expect(banner(page)).to_contain_text("Connection lost at")
    waiting.server.start()
    live(page)
    expect(banner(page)).to_be_hidden()
    expect(page.get_by_role("status")).to_have_text("Connected again")
    expect(remove).not_to_have_attribute("aria-disabled", "true")


def test_a_server_that_stalls_is_noticed(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting, "login")
    visit.expect(*NO_SERVER)
    page = visit.page
    page.clock.install()
    page.goto(waiting.server.url)
    live(page)
    waiting.server.stall()
    page.clock.run_for(26_000)
    expect(banner(page)).to_contain_text("Connection lost at")
    waiting.server.go_on()
    page.clock.run_for(3_000)
    live(page)


def test_a_token_that_is_gone_signs_out(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting)
    visit.expect(*NO_SERVER)
    page = visit.page
    live(page)
    Tokens(waiting.queue.files).add("desk", "control", now_ms=waiting.queue.now_ms())
    visit.visible("hidden")
    visit.visible("visible")
    live(page, "signed-out")
    expect(banner(page)).to_contain_text("Signed out.")
    expect(banner(page).get_by_role("link", name="Sign in")).to_be_visible()


def test_a_server_that_is_starting_is_said_to(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting)
    visit.expect(*NO_SERVER)
    page = visit.page
    live(page)

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"title": "Starting", "status": 503})

    page.route("**/api/v1/**", refuse)
    visit.visible("hidden")
    visit.visible("visible")
    live(page, "starting")
    expect(banner(page)).to_contain_text("The queue server is starting.")
    page.unroute("**/api/v1/**")
    live(page)


def test_a_stream_that_is_held_back_is_replaced_by_asking(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting, "login")
    page = visit.page
    held: list[Route] = []
    page.route("**/api/v1/stream*", lambda route: held.append(route))  # noqa: PLW0108  as it asks
    page.clock.install()
    page.goto(waiting.server.url)
    wait_until(lambda: page.evaluate("1") and held)
    page.clock.run_for(5_100)
    live(page, "polling")
    expect(banner(page)).to_contain_text("Live updates off, refreshing every 5 s.")
    expect(page.locator("#main .row")).to_have_count(1)
    waiting.site.submit("slow", name="Emma")
    page.clock.run_for(5_100)
    expect(page.locator("#main .row")).to_have_count(2)


def test_a_hidden_page_holds_no_connection(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting, "login")
    page = visit.page
    page.clock.install()
    page.goto(waiting.server.url)
    live(page)
    expect(page.locator(".pane-job")).to_be_visible()
    wait_until(lambda: page.evaluate("1") and ended(visit, "/static/", "/api/v1/jobs/"))
    visit.visible("hidden")
    wait_until(lambda: page.evaluate("1") and ended(visit, "/stream?"))
    before = len(visit.requests)
    page.clock.run_for(60_000)
    page.evaluate("1")
    assert [one.url for one in visit.requests[before:]] == []
    waiting.site.submit("slow", name="Emma")
    visit.visible("visible")
    expect(banner(page)).to_be_hidden()  # no banner for every unlocking of a phone
    live(page)
    expect(page.locator("#main .row")).to_have_count(2)


def test_a_page_that_is_kept_for_back_lets_go(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting)
    page = visit.page
    live(page)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    waiting.site.submit("slow", name="Emma")
    expect(page.locator("#main .row")).to_have_count(1)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator("#main .row")).to_have_count(2)
    live(page)


def test_case_d5_eight_tabs_and_stop_in_the_eighth(served: Ground, browse: Browse) -> None:
    served.queue.lane("render").set_concurrency(20)
    jobs = [served.site.submit("slow", name=f"Book {n}") for n in range(20)]
    served.site.worker()
    first = browse(served)
    tabs = [first, *(browse(served, context=first.context) for _ in range(7))]
    eighth = tabs[-1].page
    served.site.running(jobs[19])
    live(eighth)
    live(first.page, "elsewhere")
    expect(banner(first.page)).to_contain_text("Not live")
    stop = eighth.locator("#main .row", has_text="Book 19").locator("[data-kind=stop]")
    stop.click()
    eighth.wait_for_timeout(650)
    stop.click()
    assert served.site.ended(jobs[19])[0].state == "cancelled"
    first.page.get_by_role("button", name="Use it here").click()
    live(first.page)


def test_the_night_asks_for_fewer_words(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting, theme="night")
    live(visit.page)
    asked = [one.url for one in visit.requests if "/stream?" in one.url]
    assert ["slow=1" in url for url in asked] == [True]


def test_the_page_never_asks_anybody_else(waiting: Ground, browse: Browse) -> None:
    visit = browse(waiting)
    live(visit.page)
    assert {one.url.split("/")[2] for one in visit.requests if one.url.startswith("http")} == {
        visit.origin.split("/")[2]
    }
