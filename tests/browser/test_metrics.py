"""What was done and how long it takes, in sentences, charts and tables; nothing of too few jobs."""

from __future__ import annotations

import re
from datetime import timedelta

from playwright.sync_api import expect
from tests.browser.conftest import Browse
from tests.browser.harness import PHONE, Ground


def test_without_jobs_it_says_so(served: Ground, browse: Browse) -> None:
    page = browse(served, "metrics").page
    expect(page.get_by_text("Nothing waits.", exact=True)).to_be_visible()
    expect(page.get_by_text("No job has ended in this time.")).to_be_visible()
    page.get_by_role("link", name="30 days").click()
    expect(page).to_have_url(re.compile(r"since=30d$"))
    expect(page.get_by_text("No job has ended yet.")).to_be_visible()
    expect(page.locator("svg.chart-svg")).to_have_count(0)


def test_charts_have_a_sentence_and_a_table_and_few_jobs_none(
    served: Ground, browse: Browse
) -> None:
    queue = served.queue
    ended = [queue.submit("quick", {}).id, queue.submit("quick", {"text": "b"}).id]
    ended.append(queue.submit("fail", {}).id)
    served.site.worker()
    queue.wait(*ended, timeout_s=30)
    one = queue.submit("swallow", {})
    queue.wait(one.id, timeout_s=30)
    slow = [queue.submit("slow", {"name": name, "pages": 10}) for name in ("a", "waits")]
    queue.wait(slow[0].id, until="started", timeout_s=30)
    visit = browse(served, "metrics")
    page = visit.page
    expect(page.get_by_text("3 jobs done and 1 failed, in stretches of")).to_be_visible()
    expect(page.get_by_text(re.compile("Half of the 2 jobs of quick took"))).to_be_visible()
    expect(
        page.get_by_text(re.compile("Half of the 2 jobs of quick started within"))
    ).to_be_visible()
    expect(page.get_by_text("The aim is that 80 % hold the real end.")).to_be_visible()
    oldest = page.get_by_text("Waiting longest: ")
    expect(oldest.get_by_role("link", name="waits")).to_have_attribute(
        "href", re.compile(f"/jobs/{slow[1].id}$")
    )
    rows = page.locator("table.by-task tbody tr")
    expect(rows.filter(has_text="swallow")).to_contain_text("Needs two ended jobs of this kind.")
    expect(rows.filter(has_text="quick")).not_to_contain_text("Needs two")
    for figure in page.locator("figure:has(svg)").all():
        expect(figure.locator(".chart-sentence")).not_to_be_empty()
        figure.get_by_text("Show as a table").click()
        expect(figure.locator("tbody tr").first).to_be_visible()
    assert [request.url for request in visit.requests if "/-/metrics" in request.url] == []


def test_it_is_drawn_anew_when_a_job_ends_unless_somebody_reads_a_table(
    served: Ground, browse: Browse
) -> None:
    queue = served.queue
    page = browse(served, "metrics", size=PHONE).page
    expect(page.get_by_text("No job has ended in this time.")).to_be_visible()
    served.site.worker()
    queue.wait(queue.submit("quick", {}).id, timeout_s=30)
    expect(page.get_by_text("1 job done and 0 failed")).to_be_visible(
        timeout=timedelta(seconds=10) / timedelta(milliseconds=1)
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
