"""The History screen: filters and pages live in the address, and acts on many say how many."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Browse
from tests.browser.harness import PHONE, Ground

from lineclear.job import State


def titles(page: Page) -> list[str]:
    return page.locator(".history .title").all_inner_texts()


@pytest.fixture
def ended(served: Ground) -> Ground:
    """Two done, two failed, one removed, one waiting."""
    queue, site = served.queue, served.site
    jobs = [
        *(site.submit("quick", text=text) for text in ("Dune", "Emma")),
        *(site.submit("fail", name=name) for name in ("Solaris", "Ulysses")),
    ]
    site.worker()
    site.ended(*jobs)
    gone = site.submit("slow", name="Gone")
    queue.lane("render").pause()
    queue.remove(gone) if queue.get(gone).state is State.QUEUED else queue.cancel(gone)
    site.ended(gone)
    site.submit("slow", name="Waits")
    return served


def test_it_shows_what_ended_newest_first_in_a_table(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history").page
    expect(page.get_by_role("table")).to_be_visible()
    assert titles(page) == ["Gone", "Ulysses", "Solaris", "Emma", "Dune"]
    row = page.get_by_role("row", name="Solaris")
    expect(row).to_contain_text("Failed")
    expect(row).to_contain_text("voice file missing")
    expect(row.get_by_role("button", name="Retry Solaris")).to_be_visible()


def test_on_a_phone_it_is_a_list(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history", size=PHONE).page
    expect(page.locator(".history ol .row")).to_have_count(5)
    expect(page.get_by_role("table")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_filters_stand_in_the_address_and_come_back(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history").page
    expect(page.locator(".history .title")).to_have_count(5)
    page.get_by_label("State").select_option("failed")
    expect(page.locator(".history .title")).to_have_count(2)
    assert page.url.endswith("history?state=failed")
    search = page.get_by_role("searchbox", name="Title has")
    search.fill("sol")
    expect(page.locator(".history .title")).to_have_count(1)
    expect(search).to_be_focused()
    assert page.url.endswith("history?state=failed&q=sol")
    page.go_back()
    expect(page.locator(".history .title")).to_have_count(5)
    expect(page.get_by_label("State")).to_have_value("")
    page.go_forward()
    expect(page.locator(".history .title")).to_have_count(1)
    expect(page.get_by_role("searchbox", name="Title has")).to_have_value("sol")
    deep = browse(ended, "history?state=done&kind=quick&lane=other&since=7d&q=emma").page
    expect(deep.locator(".history .title")).to_have_text(["Emma"])
    expect(deep.get_by_label("Task")).to_have_value("quick")
    expect(deep.get_by_label("Since")).to_have_value("7d")


def test_nothing_matches_and_the_filters_can_be_cleared(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history?state=failed&kind=quick&since=7d").page
    expect(page.get_by_text("No job matches failed or lost, quick, last 7 days.")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator(".history .title")).to_have_count(5)
    assert page.url.endswith("/history")


def test_nothing_has_ended_yet(served: Ground, browse: Browse) -> None:
    served.site.submit("slow", name="Waits")
    page = browse(served, "history").page
    expect(page.get_by_text("No job has ended yet.")).to_be_visible()


def test_pages_by_cursor_and_back_restores_the_place(served: Ground, browse: Browse) -> None:
    queue = served.queue
    jobs = [queue.submit("quick", {"text": f"Book {n:03}"}).id for n in range(120)]
    queue.remove(*jobs)
    page = browse(served, "history").page
    expect(page.locator(".history .title")).to_have_count(50)
    assert titles(page)[0] == "Book 119"
    page.get_by_role("link", name="Earlier jobs").click()
    expect(page.locator(".history .title").first).to_have_text("Book 069")
    expect(page.locator(".pager [aria-current=page]")).to_have_text("Earlier ones")
    page.get_by_role("link", name="Earlier jobs").click()
    expect(page.locator(".history .title")).to_have_count(20)
    assert titles(page)[-1] == "Book 000"
    expect(page.get_by_role("link", name="Earlier jobs")).to_have_count(0)
    page.go_back()
    expect(page.locator(".history .title").first).to_have_text("Book 069")
    link = page.get_by_role("link", name="Book 030")
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 0
    link.click()
    expect(page.get_by_role("heading", name="Book 030")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="Book 030")).to_be_in_viewport()
    assert abs(page.evaluate("scrollY") - before) < 5


def test_retry_all_failed_names_the_number_and_can_be_undone(ended: Ground, browse: Browse) -> None:
    queue = ended.queue
    queue.lane("other").pause()
    failed = [job.id for job in queue.jobs(state=State.FAILED)]
    page = browse(ended, "history").page
    page.get_by_role("button", name="Retry all failed (2)").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Added 2 jobs again.")
    assert {queue.get(job).state for job in failed} == {State.QUEUED}
    expect(page.get_by_role("button", name=re.compile("Retry all failed"))).to_have_count(0)
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).not_to_contain_text("Added 2")
    assert {queue.get(job).state for job in failed} == {State.FAILED}


def test_clear_ended_asks_which_and_hides_them(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history").page
    page.get_by_role("button", name="Clear ended…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Hides 2 jobs from the lists. Their logs stay.")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_label("All but failed").check()
    expect(dialog).to_contain_text("Hides 3 jobs")
    dialog.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator(".history .title")).to_have_text(["Ulysses", "Solaris"])
    page.get_by_label("Cleared ones too").check()
    expect(page.locator(".history .title")).to_have_count(5)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    page.get_by_label("Cleared ones too").uncheck()
    expect(page.locator(".history .title")).to_have_count(5)


def test_a_job_that_ends_meanwhile_is_offered_not_pushed_in(ended: Ground, browse: Browse) -> None:
    page = browse(ended, "history").page
    expect(page.locator(".history .title")).to_have_count(5)
    job = ended.site.submit("quick", text="New")
    ended.site.ended(job)
    show = page.get_by_role("button", name="More jobs have ended · Show")
    expect(show).to_be_visible()
    assert len(titles(page)) == 5
    show.click()
    expect(page.locator(".history .title").first).to_have_text("New")
