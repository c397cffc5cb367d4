"""The page without JavaScript in a browser that runs none: acts by forms, stopping in two steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.harness import PHONE, Ground, Visit, open_visit

from lineclear.job import State


@pytest.fixture
def page(chromium: Browser, served: Ground) -> Iterator[Page]:
    context = chromium.new_context(java_script_enabled=False, viewport=PHONE)
    visit: Visit = open_visit(chromium, served.server, "plain", context=context)
    yield visit.page
    visit.check()
    context.close()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def test_a_job_is_added_moved_paused_removed_and_brought_back(page: Page, served: Ground) -> None:
    queue = served.queue
    page.get_by_role("link", name="Add").click()
    page.get_by_label("Task").select_option("slow")
    page.get_by_label("Arguments").fill('{"name": "Dune"}')
    press(page, "Add")
    expect(page.get_by_role("heading", name="Dune")).to_be_visible()
    emma = queue.submit("slow", {"name": "Emma"})
    page.get_by_role("link", name="Now", exact=True).click()
    press(page, "Move top Emma")
    expect(page.locator("ol li a").first).to_have_text("Emma")
    press(page, "Pause Emma")
    expect(page.get_by_text("1st when resumed")).to_be_visible()
    page.get_by_role("link", name="Now", exact=True).click()
    press(page, "Remove Emma")
    assert queue.get(emma.id).state is State.CANCELLED
    press(page, "Undo the last remove, clear or move")
    assert queue.get(emma.id).state is State.QUEUED
    press(page, "Pause all")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Paused by")
    press(page, "Resume all")
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("Paused by")


def test_stop_is_asked_for_twice_and_what_it_loses_is_said(page: Page, served: Ground) -> None:
    job = served.queue.submit("slow", {"name": "Dune", "pages": 10})
    served.site.worker()
    served.queue.wait(job.id, until="started", timeout_s=20)
    page.get_by_role("link", name="Refresh").click()
    press(page, "Stop… Dune")
    expect(page.get_by_text("It ends at its next safe point.")).to_be_visible()
    assert served.queue.get(job.id).wish is None
    press(page, "Stop")
    served.queue.wait(job.id, timeout_s=20)
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_text("Stopped · by")).to_be_visible()
    press(page, "Retry Dune")
    served.queue.wait(job.id, until="started", timeout_s=20)
    page.get_by_role("link", name="Now", exact=True).click()
    press(page, "Stop now… lane render")
    press(page, "Stop now")
    served.site.until(lambda: served.queue.get(job.id).state is State.QUEUED)
    assert served.queue.lane("render").get().pauses


def test_a_phone_shows_it_without_scrolling_sideways(page: Page, served: Ground) -> None:
    served.queue.submit("slow", {"name": "W" * 200})
    page.goto(f"{served.server.url}plain")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    box = page.get_by_role("button", name="Pause all").bounding_box()
    assert box is not None
    assert box["height"] >= 44
