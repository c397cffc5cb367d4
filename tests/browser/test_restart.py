"""The page's server is ended, killed and started again while a job runs and a browser looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Browse
from tests.browser.harness import DESK, Ground, Visit
from tests.helpers import wait_until

from lineclear.job import State

LOADED = """() => ["keys.js", "notify.js"].every((name) =>
  performance.getEntriesByType("resource").some((each) => each.name.endsWith(name)))"""
GONE = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET")


def whole(visit: Visit, title: str) -> None:
    """What the page loads after its first paint is there too."""
    expect(visit.page.locator(".pane")).to_contain_text(title)
    wait_until(lambda: visit.page.evaluate(LOADED), what="what the page loads later")


@pytest.mark.parametrize("rudely", ["ended", "killed"])
def test_e23_a_restart_costs_the_job_nothing_and_the_page_comes_back(
    served: Ground, browse: Browse, rudely: str
) -> None:
    served.site.worker()
    job = served.site.running(served.site.submit("slow", name="Dune", pages=980))
    visit = browse(served, size=DESK)
    visit.expect(*GONE)
    row = visit.page.locator(f".column .row[data-id='{job.id}']")
    stop = row.get_by_role("button", name="Stop Dune")
    whole(visit, "Dune")
    served.at("Dune", 100, unit="pages")
    expect(row).to_contain_text("100 of 980 pages")
    if rudely == "killed":
        served.server.kill()
    else:
        served.server.end()
    lost = visit.page.get_by_text("Connection lost at")
    expect(lost.first).to_be_visible()
    expect(stop).to_have_attribute("aria-disabled", "true")
    served.at("Dune", 200)
    wait_until(lambda: served.queue.get(job.id).done == 200, what="the job to go on without a page")
    expect(row).to_contain_text("100 of 980 pages")
    served.server.start()
    expect(row).to_contain_text("200 of 980 pages", timeout=20_000)
    expect(lost).to_have_count(0)
    expect(stop).not_to_have_attribute("aria-disabled", "true")
    now = served.queue.get(job.id)
    assert (now.state, now.attempt, now.child_pid) == (State.RUNNING, 1, job.child_pid)
    served.end("Dune")
    expect(row).to_contain_text("Done")
    assert served.site.ended(job.id)[0].state is State.DONE


def test_e23_a_page_opened_again_shows_what_happened_meanwhile(
    served: Ground, browse: Browse
) -> None:
    done = served.site.submit("quick", text="Emma")
    visit = browse(served, size=DESK)
    visit.expect(*GONE)
    row = visit.page.locator(f".column .row[data-id='{done}']")
    expect(row).to_contain_text("Waiting")
    whole(visit, "Emma")
    served.server.end()
    expect(visit.page.get_by_text("Connection lost at").first).to_be_visible()
    served.site.worker()
    served.site.ended(done)
    served.server.start()
    expect(row).to_contain_text("Done", timeout=20_000)
