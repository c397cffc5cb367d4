"""Settings that stay, and signing in and out."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.browser.conftest import Browse
from tests.browser.harness import Ground
from tests.helpers import wait_until

from lineclear.web.tokens import Tokens

FAKE_NOTIFICATION = """
window.told = [];
window.Notification = class {
    static permission = "default";
    static requestPermission() { this.permission = "granted"; return Promise.resolve("granted"); }
    constructor(title, options) { window.told.push([title, options.body]); }
};
"""
"""What the browser would show; headless it shows none."""


def test_the_theme_stays_and_night_comes_by_the_clock(served: Ground, browse: Browse) -> None:
    visit = browse(served, "settings")
    page = visit.page
    html = page.locator("html")
    page.get_by_role("radio", name="Dark").check()
    expect(html).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(html).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    page.get_by_role("radio", name="Auto").check()
    expect(html).to_have_attribute("data-theme", "light")
    expect(page.get_by_label("from")).to_be_disabled()
    page.get_by_label("Night by the clock").check()
    assert page.evaluate("localStorage.getItem('lineclear.night')") == "22:00-07:00"
    for label, hour in (("from", "00:00"), ("until", "23:59")):
        page.get_by_label(label, exact=True).fill(hour)
    expect(html).to_have_attribute("data-theme", "night")
    page.get_by_label("Night by the clock").uncheck()
    expect(html).to_have_attribute("data-theme", "light")


def test_shortcuts_can_be_turned_off(served: Ground, browse: Browse) -> None:
    page = browse(served, "settings").page
    expect(page.get_by_text("stop: press twice")).to_be_visible()
    page.get_by_label("Use single keys as shortcuts").uncheck()
    page.get_by_role("heading", name="Theme").click()
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("/settings")


def test_a_lanes_delay_and_slots_are_set(served: Ground, browse: Browse) -> None:
    served.queue.submit("slow", {"name": "a"})
    visit = browse(served, "settings")
    page = visit.page
    lane = page.get_by_role("form", name="render")
    lane.get_by_label("Seconds between jobs").fill("90")
    lane.get_by_label("Jobs at once").fill("2")
    lane.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Lane render is set.").first).to_be_visible()
    now = served.queue.lane("render").get()
    assert (now.delay_ms, now.concurrency) == (90_000, 2)
    lane.get_by_label("Jobs at once").fill("3")
    served.queue.lane("render").set(delay_ms=5_000)
    expect(lane.get_by_label("Seconds between jobs")).to_have_value("5")
    expect(lane.get_by_label("Jobs at once")).to_have_value("3")
    lane.get_by_label("Jobs at once").fill("1000000")
    visit.expect("422")
    lane.get_by_role("button", name="Save").click()
    expect(lane.get_by_role("alert")).not_to_be_empty()


def test_one_message_when_idle_and_one_for_each_failure(served: Ground, browse: Browse) -> None:
    visit = browse(served, "settings")
    page = visit.page
    visit.context.add_init_script(FAKE_NOTIFICATION)
    page.reload()
    on = page.get_by_label("Tell me when")
    expect(on).not_to_be_checked()
    on.check()
    expect(on).to_be_checked()
    failing = served.queue.submit("fail", {"name": "Solaris"})
    quick = served.queue.submit("quick", {})
    served.site.worker()
    served.queue.wait(failing.id, quick.id, timeout_s=20)
    told: Any = wait_until(lambda: (t := page.evaluate("window.told")) and len(t) >= 2 and t)
    assert sorted(title for title, _ in told) == ["Solaris failed", "The queue is idle"]
    on.uncheck()
    again = served.queue.submit("fail", {"name": "Dune"})
    served.queue.wait(again.id, timeout_s=20)
    page.goto(f"{served.server.url}")
    expect(page.locator(f"[data-id='{again.id}']")).to_have_attribute("data-look", "failed")
    assert page.evaluate("window.told") == []


def test_signing_in_by_the_address_leaves_no_token_there(served: Ground, browse: Browse) -> None:
    secret = Tokens(served.queue.files).add("phone", "view", now_ms=1)
    Tokens(served.queue.files).add("desk", "control", now_ms=2)
    visit = browse(served, f"login#{secret}")
    visit.expect("401")
    page = visit.page
    expect(page).to_have_url(served.server.url)
    assert secret not in page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, document.cookie])"
    )
    page.go_back()
    assert secret not in page.url
    page.goto(f"{served.server.url}settings")
    expect(page.get_by_text("You act as phone, and may look only.")).to_be_visible()
    tokens = page.locator(".tokens li")
    expect(tokens).to_have_text(["phone view only", "desk control"])
    assert secret not in page.content()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/login$"))


def test_a_token_is_typed_where_it_is_needed(served: Ground, browse: Browse) -> None:
    secret = Tokens(served.queue.files).add("desk", "control", now_ms=2)
    visit = browse(served, "add?task=quick")
    visit.expect("401")
    page = visit.page
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").filter(has_text="not known")).to_be_visible()
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Add a job")).to_be_visible()
    assert page.url.endswith("/add?task=quick")
