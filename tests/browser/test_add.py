"""The Add screen: forms from schemas; what was typed is never lost, one form adds one job."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Browse
from tests.browser.harness import PHONE, Ground
from tests.helpers import wait_until

from lineclear import Job

EVERYTHING = """
from datetime import date, datetime, time as clock
from typing import Annotated, Literal
from pydantic import BaseModel, Field

class Cover(BaseModel):
    title: str
    width: int = 600

@queue.task(lane="render")
def every(
    ctx: Context,
    text: Annotated[str, Field(description="What it says.", max_length=20, pattern="^[a-z ]+$")],
    amount: Annotated[int, Field(ge=1, le=9)],
    ratio: float = 0.5,
    sure: bool = True,
    maybe: bool | None = None,
    voice: Literal["joe", "amy"] = "joe",
    level: Literal[1, 2, 3] = 2,
    name: str | None = None,
    numbers: list[int] = [1, 2],
    voices: list[Literal["joe", "amy"]] = [],
    day: date | None = None,
    hour: clock | None = None,
    moment: datetime | None = None,
    cover: Cover = Cover(title="none"),
    tags: dict[str, int] | None = None,
    either: int | str = 3,
):
    "Everything a form can ask."

@queue.task(lane="render", key="{text}")
def keyed(ctx: Context, text: str = "same"):
    "One at a time."
"""


def field(page: Page, name: str) -> Any:
    return page.locator(f"[data-field={name}]")


def add(page: Page) -> None:
    page.get_by_role("button", name="Add", exact=True).click()


def job_of(ground: Ground) -> Job:
    return wait_until(lambda: next(iter(ground.queue.jobs()), None), what="a job")


def args_of(job: Job) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(job.args)
    return found


def test_the_form_has_a_labelled_field_for_every_kind_of_argument(
    serving: Any, browse: Browse
) -> None:
    ground = serving(source=EVERYTHING)
    page = browse(ground, "add?task=every").page
    field(page, "text").get_by_role("textbox", name="text").fill("hello there")
    expect(field(page, "text")).to_contain_text("What it says.")
    field(page, "amount").get_by_role("spinbutton", name="amount").fill("7")
    field(page, "ratio").get_by_role("spinbutton", name="ratio").fill("0.25")
    field(page, "sure").get_by_role("checkbox", name="sure").uncheck()
    field(page, "maybe").get_by_role("combobox", name="maybe").select_option("yes")
    field(page, "voice").get_by_role("combobox", name="voice").select_option("amy")
    field(page, "level").get_by_role("combobox", name="level").select_option("3")
    numbers = field(page, "numbers")
    expect(numbers.get_by_role("spinbutton")).to_have_count(2)
    numbers.get_by_role("button", name="Add a value").click()
    numbers.get_by_role("spinbutton").last.fill("30")
    numbers.get_by_role("button", name="Remove this numbers").first.click()
    field(page, "voices").get_by_role("button", name="Add a value").click()
    field(page, "voices").get_by_role("combobox").select_option("joe")
    field(page, "day").get_by_label("day").fill("2026-12-24")
    field(page, "hour").get_by_label("hour").fill("07:30:00")
    field(page, "moment").get_by_label("moment").fill("2026-12-24T20:15")
    field(page, "cover").get_by_role("textbox").fill('{"title": "A door"}')
    field(page, "tags").get_by_role("textbox").fill('{"a": 1}')
    add(page)
    expect(page.get_by_text("Added as 1st").first).to_be_visible()
    assert args_of(job_of(ground)) == {
        "text": "hello there", "amount": 7, "ratio": 0.25, "sure": False, "maybe": True,
        "voice": "amy", "level": 3, "name": None, "numbers": [2, 30], "voices": ["joe"],
        "day": "2026-12-24", "hour": "07:30:00", "moment": "2026-12-24T20:15:00+01:00",
        "cover": {"title": "A door", "width": 600}, "tags": {"a": 1}, "either": 3,
    }  # fmt: skip


def test_what_does_not_fit_is_said_at_its_field(serving: Any, browse: Browse) -> None:
    ground = serving(source=EVERYTHING)
    visit = browse(ground, "add?task=every")
    page = visit.page
    text = field(page, "text").get_by_role("textbox")
    amount = field(page, "amount").get_by_role("spinbutton")
    add(page)
    assert text.evaluate("node => node === document.activeElement && node.validity.valueMissing")
    for wrong in ("A b", "a" * 21):
        text.fill(wrong)
        assert not text.evaluate("node => node.validity.valid"), wrong
    text.fill("fits")
    amount.fill("10")
    assert amount.evaluate("node => node.validity.rangeOverflow")
    amount.fill("3")
    field(page, "tags").get_by_role("textbox").fill("{no")
    assert "JSON" in field(page, "tags").get_by_role("textbox").evaluate("n => n.validationMessage")
    field(page, "tags").get_by_role("textbox").fill('{"a": "b"}')
    visit.expect("422")
    add(page)
    wrong_said = field(page, "tags").locator(".wrong")
    expect(wrong_said).to_contain_text("integer")
    tags = field(page, "tags").get_by_role("textbox")
    expect(tags).to_have_attribute("aria-invalid", "true")
    expect(tags).to_be_focused()
    assert tags.evaluate(
        "n => n.getAttribute('aria-describedby').split(' ').some("
        "id => document.getElementById(id).classList.contains('wrong'))"
    )
    page.locator("#lane").fill("no such lane")
    tags.fill("")
    add(page)
    expect(page.locator("#lane-wrong")).to_contain_text("lane")
    assert ground.queue.jobs() == []


def test_case_h6_a_double_click_adds_one_job(served: Ground, browse: Browse) -> None:
    page = browse(served, "add?task=quick").page
    expect(page.locator(".estimate")).to_contain_text("Would be 1st")
    page.get_by_role("button", name="Add", exact=True).dblclick()
    expect(page.get_by_text("Added as 1st").first).to_be_visible()
    page.get_by_role("button", name="Open").click()
    expect(page).to_have_url(re.compile(r"/jobs/1$"))
    assert len(served.queue.jobs()) == 1


def test_one_that_is_there_already_is_said_and_opened(serving: Any, browse: Browse) -> None:
    ground = serving(source=EVERYTHING)
    job = ground.queue.submit("keyed", {"text": "same"})
    page = browse(ground, "add?task=keyed").page
    add(page)
    expect(page.get_by_text("It is there already: keyed, 1st").first).to_be_visible()
    expect(page.locator(".result a").first).to_have_attribute("href", re.compile(f"jobs/{job.id}$"))
    assert len(ground.queue.jobs()) == 1


def test_where_and_when_are_asked_and_told_before(served: Ground, browse: Browse) -> None:
    for name in ("a", "b"):
        served.queue.submit("slow", {"name": name})
    page = browse(served, "add?task=slow").page
    expect(page.locator(".estimate")).to_contain_text("once nothing is missing")
    page.get_by_label("name", exact=True).fill("Dune")
    expect(page.locator(".estimate")).to_contain_text("Would be 3rd")
    page.locator("#position-first").check()
    expect(page.locator(".estimate")).to_contain_text("Would be 1st")
    page.locator("#not_before").fill("2099-01-02T03:04")
    page.locator("#paused").check()
    page.locator("#title").fill("My Dune")
    page.locator("#lane").fill("other")
    add(page)
    expect(page.locator(".result")).to_contain_text("Added")
    job = job_of(served)
    at = datetime(2099, 1, 2, 2, 4, tzinfo=UTC)  # the browser's zone is an hour ahead in winter
    assert job.run_at_ms == at.timestamp() * 1000
    assert (job.title, job.lane, job.held_by is not None) == ("My Dune", "other", True)


def test_what_was_typed_outlives_theme_reload_and_lost_connection(
    served: Ground, browse: Browse
) -> None:
    visit = browse(served, "add?task=slow")
    page = visit.page
    page.get_by_label("name", exact=True).fill("Half written")
    page.locator("#position-first").check()
    page.evaluate("localStorage.setItem('lineclear.theme', 'night'); lineclearTheme()")
    expect(page.get_by_label("name", exact=True)).to_have_value("Half written")
    visit.expect("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_NETWORK", "ERR_")
    served.server.kill()
    expect(page.get_by_role("button", name="Add", exact=True)).to_have_attribute(
        "aria-disabled", "true"
    )
    page.get_by_role("button", name="Add", exact=True).dispatch_event("click")
    expect(page.locator(".adding > .wrong")).to_contain_text("What you typed is kept.")
    page.get_by_label("name", exact=True).fill("Wholly written")
    served.server.start()
    expect(page.get_by_role("button", name="Add", exact=True)).not_to_have_attribute(
        "aria-disabled", "true", timeout=20_000
    )
    page.reload()
    expect(page.get_by_label("name", exact=True)).to_have_value("Wholly written")
    expect(page.locator("#position-first")).to_be_checked()
    add(page)
    expect(page.locator(".result")).to_contain_text("Added")
    assert job_of(served).title == "Wholly written"
    expect(page.get_by_label("name", exact=True)).to_have_value("")


def test_added_again_with_changes(served: Ground, browse: Browse) -> None:
    args = {"book": 7, "voice": "amy", "chapters": [3, 4], "tags": {"a": "b"}, "draft": True}
    job = served.queue.submit("rich", args)
    page = browse(served, f"jobs/{job.id}").page
    page.get_by_role("link", name="Add again with changes").click()
    expect(page.get_by_label("book", exact=True)).to_have_value("7")
    expect(field(page, "voice").get_by_role("combobox")).to_have_value("1")
    expect(field(page, "chapters").get_by_role("spinbutton")).to_have_count(2)
    expect(page.get_by_label("draft", exact=True)).to_be_checked()
    page.get_by_label("book", exact=True).fill("8")
    add(page)
    expect(page.locator(".result")).to_contain_text("Added")
    again = job_of(served)
    assert args_of(again) == args_of(job) | {"book": 8}


def test_case_d3_what_a_task_says_of_itself_is_text(serving: Any, browse: Browse) -> None:
    source = """
@queue.task(lane="render")
def loud(ctx: Context, text: str = "<img src=x onerror=alert(1)>"):
    "<img src=x onerror=alert(1)>"
"""
    page = browse(serving(source=source), "add").page
    expect(page.locator(".task .hint")).to_contain_text("<img src=x")
    expect(page.get_by_role("textbox", name="text")).to_have_value("<img src=x onerror=alert(1)>")
    expect(page.locator("img")).to_have_count(0)


@pytest.mark.parametrize("size", [PHONE], ids=["phone"])
def test_without_tasks_it_says_what_to_do(serving: Any, browse: Browse, size: Any) -> None:
    page = browse(serving(source="pass"), "add", size=size).page
    expect(page.get_by_text("This page knows no tasks")).to_be_visible()
    expect(page.get_by_text("lineclear --app module:queue serve")).to_be_visible()
