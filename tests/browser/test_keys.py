"""Every shortcut on every screen it is for, and that none acts where it should not."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Browse
from tests.browser.harness import Ground
from tests.helpers import wait_until

from lineclear.job import State


def waiting(ground: Ground, *names: str) -> list[int]:
    return [ground.queue.submit("slow", {"name": name}).id for name in names]


def order(ground: Ground) -> list[str]:
    return [job.title for job in ground.queue.waiting("render")]


def focused(page: Page) -> str:
    found: str = page.evaluate("document.activeElement.closest('[data-id]')?.dataset.id ?? ''")
    return found


def pressed(page: Page, key: str) -> str:
    page.keyboard.press(key)
    return focused(page)


def opened(ground: Ground, browse: Browse, **stored: str) -> Page:
    page = browse(ground, stored=stored).page
    expect(page.locator("#main [data-id]").first).to_be_visible()
    if stored.get("lineclear.keys") != "off":
        # Shortcuts come last: they are there when one moves the focus.
        wait_until(lambda: pressed(page, "j"), what="shortcuts")
        page.evaluate("document.activeElement.blur()")
    return page


def test_j_and_k_go_from_row_to_row_and_enter_opens(served: Ground, browse: Browse) -> None:
    ids = waiting(served, "a", "b", "c")
    page = opened(served, browse)
    for key, at in (("j", 0), ("j", 1), ("j", 2), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert focused(page) == str(ids[at]), key
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/jobs/{ids[1]}$"))


def test_keys_move_pause_remove_and_undo_the_row_in_focus(served: Ground, browse: Browse) -> None:
    ids = waiting(served, "a", "b", "c")
    page = opened(served, browse)
    for _ in "abc":
        page.keyboard.press("j")
    for key, wanted in (("[", "acb"), ("{", "cab"), ("]", "acb"), ("}", "abc")):
        page.keyboard.press(key)
        wait_until(lambda: "".join(order(served)) == wanted, what=f"{key}: {wanted}")  # noqa: B023
        place = {0: "1st", 1: "2nd", 2: "3rd"}[wanted.index("c")]
        expect(page.locator(f"#main li[data-id='{ids[2]}']")).to_contain_text(place)
        assert focused(page) == str(ids[2])
    page.keyboard.press("p")
    wait_until(lambda: served.queue.get(ids[2]).held_ms is not None)
    expect(page.locator(f"[data-id='{ids[2]}']")).to_have_attribute("data-look", "held")
    page.keyboard.press("p")
    wait_until(lambda: served.queue.get(ids[2]).held_ms is None)
    expect(page.locator(f"[data-id='{ids[2]}']")).to_have_attribute("data-look", "waiting")
    page.keyboard.press("x")
    wait_until(lambda: served.queue.get(ids[2]).state is State.CANCELLED)
    page.keyboard.press("u")
    wait_until(lambda: served.queue.get(ids[2]).state is State.QUEUED)


def test_s_stops_at_the_second_press_and_never_when_held_down(
    served: Ground, browse: Browse
) -> None:
    (job_id,) = waiting(served, "a")
    served.site.worker()
    served.queue.wait(job_id, until="started", timeout_s=20)
    page = opened(served, browse)
    row = page.locator(f"[data-id='{job_id}']")
    expect(row).to_have_attribute("data-state", "running")
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(row.locator(".said")).to_have_text(re.compile("^Press again to stop"))
    expect(row.locator(".said")).to_be_visible()
    page.keyboard.press("s")  # a double tap
    page.evaluate(
        """() => document.activeElement.dispatchEvent(new KeyboardEvent("keydown",
            {key: "s", repeat: true, bubbles: true, composed: true}))"""
    )
    page.keyboard.press("Escape")
    expect(row.locator(".said")).to_be_hidden()
    assert served.queue.get(job_id).wish is None
    page.keyboard.press("s")
    expect(row.locator(".said")).to_have_text(re.compile("^Press again to stop"))
    expect(row.locator(".said")).to_be_visible()
    armed = page.evaluate("performance.now()")
    wait_until(lambda: page.evaluate("performance.now()") > armed + 650)
    page.keyboard.press("s")
    served.queue.wait(job_id, timeout_s=20)
    assert served.queue.get(job_id).state is State.CANCELLED
    expect(row).to_have_attribute("data-state", "cancelled")
    page.keyboard.press("r")
    wait_until(lambda: served.queue.get(job_id).state is not State.CANCELLED)


def test_keys_of_the_whole_page(served: Ground, browse: Browse) -> None:
    (job_id,) = waiting(served, "a")
    page = opened(served, browse)
    page.keyboard.press("Shift+P")
    wait_until(lambda: served.queue.lane("render").get().pauses)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Paused by you")
    page.keyboard.press("Shift+P")
    wait_until(lambda: not served.queue.lane("render").get().pauses)
    for keys, path in (("a", "add"), ("gh", "history"), ("gm", "metrics"), ("gn", "")):
        page.evaluate("document.activeElement?.blur?.()")
        for key in keys:
            page.keyboard.press(key)
        expect(page).to_have_url(f"{served.server.url}{path}")
    page.keyboard.press("/")
    expect(page).to_have_url(re.compile("/history"))
    expect(page.locator("input[type=search]")).to_be_focused()
    page.goto(f"{served.server.url}jobs/{job_id}")
    expect(page.locator("article.job")).to_be_visible()
    page.keyboard.press("p")
    wait_until(lambda: served.queue.get(job_id).held_ms is not None)
    page.keyboard.press("l")
    expect(page).to_have_url(re.compile(rf"/jobs/{job_id}/log$"))


def test_t_goes_through_the_themes(served: Ground, browse: Browse) -> None:
    waiting(served, "a")
    page = opened(served, browse)
    for name in ("light", "dark", "night"):
        page.keyboard.press("t")
        expect(page.locator("html")).to_have_attribute("data-theme", name)
    page.keyboard.press("t")
    assert page.evaluate("localStorage.getItem('lineclear.theme')") == "auto"


def test_help_lists_them_and_esc_closes_it(served: Ground, browse: Browse) -> None:
    (job_id,) = waiting(served, "a")
    page = opened(served, browse)
    page.keyboard.press("j")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("stop: press twice")
    page.keyboard.press("x")  # not while a dialog is open
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    assert focused(page) == str(job_id)
    assert served.queue.get(job_id).state is State.QUEUED


@pytest.mark.parametrize("how", ["off", "field", "modifier"])
def test_no_key_acts_where_it_is_not_meant(served: Ground, browse: Browse, how: str) -> None:
    (job_id,) = waiting(served, "a")
    stored = {"lineclear.keys": "off"} if how == "off" else {}
    path = "history" if how == "field" else ""
    if how == "field":
        page = browse(served, path, stored=stored).page
        page.locator("input[type=search]").focus()
        page.keyboard.type("xa?t")
        expect(page.locator("input[type=search]")).to_have_value("xa?t")
        assert page.url.startswith(f"{served.server.url}history")
    else:
        page = opened(served, browse, **stored)
        page.locator(f"[data-id='{job_id}'] a").first.focus()
        for key in ("x", "a", "?", "t", "p"):
            page.keyboard.press(f"Control+Alt+{key}" if how == "modifier" else key)
        assert page.url == served.server.url
    expect(page.get_by_role("dialog")).to_have_count(0)
    job = served.queue.get(job_id)
    assert (job.state, job.held_ms) == (State.QUEUED, None)
