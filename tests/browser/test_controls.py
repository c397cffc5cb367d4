"""What the controls promise: two presses, a box that stays, answers in their place, exact Undo.

That each control does what it says stands in ``test_end_to_end.py``.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Browse
from tests.browser.harness import PHONE, Ground, Visit
from tests.helpers import wait_until

from lineclear import Job
from lineclear.job import State
from lineclear.web.tokens import Tokens


def row(page: Page, title: str) -> Locator:
    return page.locator("#main .row", has=page.get_by_role("link", name=title, exact=True))


def press(at: Locator, name: str) -> None:
    at.get_by_role("button", name=name, exact=True).click()


def lane_menu(page: Page) -> None:
    page.get_by_role("button", name="More for lane render").click()


def running(ground: Ground, name: str, **args: object) -> Job:
    if not ground.site.workers:
        ground.site.worker()
    job = ground.site.submit("slow", name=name, **args)
    return ground.site.running(job)


def posts(visit: Visit) -> list[str]:
    return [one.url for one in visit.requests if one.method != "GET"]


def state(ground: Ground, job: int) -> State:
    return ground.queue.get(job).state


@pytest.fixture
def waiting(served: Ground) -> Ground:
    """Six jobs wait in one lane, nobody serves it."""
    for name in ("Dune", "Emma", "Ivanhoe", "Kim", "Persuasion", "Walden"):
        served.site.submit("slow", name=name)
    return served


def titles(page: Page) -> list[str]:
    return page.locator("#main .row .title").all_inner_texts()


def test_remove_undo_and_where_the_focus_goes(waiting: Ground, browse: Browse) -> None:
    page = browse(waiting).page
    row(page, "Emma").get_by_role("button", name="Remove Emma").focus()
    page.keyboard.press("Enter")
    expect(row(page, "Emma").locator(".word")).to_have_text("Removed")
    expect(row(page, "Ivanhoe").get_by_role("link")).to_be_focused()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    wait_until(lambda: titles(page)[:3] == ["Dune", "Emma", "Ivanhoe"])
    expect(page.locator(".toast")).to_be_visible()


def test_undo_takes_back_exactly_its_act(waiting: Ground, browse: Browse) -> None:
    page = browse(waiting).page
    press(row(page, "Emma"), "Remove Emma")
    toast = page.locator(".toast", has_text="Removed Emma")
    expect(toast).to_be_visible()
    kim = next(job for job in waiting.queue.waiting("render") if job.name == "Kim")
    waiting.queue.remove(kim.id)
    expect(row(page, "Kim").locator(".word")).to_have_text("Removed")
    toast.get_by_role("button", name="Undo").click()
    expect(row(page, "Emma").locator(".word")).to_have_text("Waiting")
    assert state(waiting, kim.id) is State.CANCELLED


def test_stop_takes_two_presses(served: Ground, browse: Browse) -> None:
    job = running(served, "The Hobbit", pages=980)
    visit = browse(served)
    page, hobbit = visit.page, row(visit.page, "The Hobbit")
    stop = hobbit.locator("[data-kind=stop]")
    expect(stop).to_have_accessible_name("Stop The Hobbit")
    before = stop.bounding_box()
    stop.click()
    expect(stop).to_have_text("Again?")
    expect(stop).to_have_accessible_name("Press again to stop The Hobbit")
    expect(hobbit.locator(".said")).to_contain_text("Press again to stop.")
    expect(hobbit.locator(".said")).to_contain_text("of work.")
    expect(page.get_by_role("status")).to_contain_text("Press again to stop.")
    assert stop.bounding_box() == before
    assert posts(visit) == []
    page.wait_for_timeout(700)
    stop.click()
    expect(hobbit.locator(".word")).to_have_text("Stopped")
    assert served.site.ended(job.id)[0].state is State.CANCELLED
    assert len(posts(visit)) == 1


@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_changes_the_box_of_a_button(served: Ground, browse: Browse, width: int) -> None:
    running(served, "The Hobbit")
    page = browse(served, size={"width": width, "height": 844}).page
    stop = page.locator("[data-kind=stop]").first
    expect(stop).to_be_visible()
    box = stop.bounding_box()
    assert box
    assert box["width"] >= 84
    assert box["height"] >= (44 if width == 390 else 36)
    for label in ("Again?", "Asked…", "Stop"):
        stop.evaluate("(node, label) => { node.firstChild.textContent = label }", label)
        assert stop.bounding_box() == box
    stop.evaluate("node => node.classList.add('armed')")
    assert stop.bounding_box() == box


def test_a_double_tap_sends_nothing(served: Ground, browse: Browse) -> None:
    job = running(served, "The Hobbit")
    visit = browse(served, size=PHONE)
    stop = row(visit.page, "The Hobbit").locator("[data-kind=stop]")
    for _ in range(3):
        stop.dblclick()
    expect(stop).to_have_text("Again?")
    assert posts(visit) == []
    assert state(served, job.id) is State.RUNNING


def test_the_second_press_counts_from_600_ms_to_6_s(served: Ground, browse: Browse) -> None:
    running(served, "The Hobbit")
    visit = browse(served)
    page, stop = visit.page, row(visit.page, "The Hobbit").locator("[data-kind=stop]")
    expect(stop).to_be_visible()
    now = page.evaluate("performance.now()")
    page.evaluate("() => { performance.now = () => globalThis.faked }")
    at = {"first": now, "early": now + 590, "late": now + 6_100}

    def tap(moment: str) -> None:
        page.evaluate("now => { globalThis.faked = now }", at[moment])
        stop.click()

    tap("first")
    tap("early")
    expect(stop).to_have_text("Again?")
    assert posts(visit) == []
    expect(stop).to_have_text("Stop", timeout=8_000)  # disarmed by itself after 6 s
    tap("late")
    expect(stop).to_have_text("Again?")
    assert posts(visit) == []
    at["second"] = at["late"] + 610
    tap("second")
    wait_until(lambda: page.evaluate("1") and len(posts(visit)) == 1)


def test_what_disarms(served: Ground, browse: Browse) -> None:
    job = running(served, "The Hobbit")
    served.queue.lane("render").set_concurrency(2)
    running(served, "Dune")
    visit = browse(served)
    page = visit.page
    stop, other = (row(page, title).locator("[data-kind=stop]") for title in ("The Hobbit", "Dune"))
    stop.click()
    expect(stop).to_have_text("Again?")
    page.keyboard.press("Escape")
    expect(stop).to_have_text("Stop")
    stop.click()
    page.locator("h1").click()
    expect(stop).to_have_text("Stop")
    stop.click()
    other.click()  # one armed button at a time
    expect(stop).to_have_text("Stop")
    expect(other).to_have_text("Again?")
    stop.click()
    served.queue.cancel(job.id)  # its state changes under the finger
    expect(row(page, "The Hobbit").locator(".said")).to_be_hidden()
    assert posts(visit) == []


def test_a_refused_act_says_why_in_its_row(served: Ground, browse: Browse) -> None:
    job = running(served, "The Hobbit")
    visit = browse(served)
    visit.expect("409")
    page = visit.page
    stop = row(page, "The Hobbit").locator("[data-kind=stop]")
    stop.click()
    page.wait_for_timeout(650)
    page.evaluate(
        """() => { const ask = fetch; globalThis.fetch = async (...asked) => {
            await new Promise(go => { globalThis.letGo = go }); return ask(...asked) } }"""
    )
    stop.click()
    expect(stop).to_have_text("Asked…")
    served.end("The Hobbit")
    served.site.ended(job.id)
    page.evaluate("letGo()")
    hobbit = row(page, "The Hobbit")
    expect(hobbit.locator(".said")).to_contain_text("Nothing was stopped")
    expect(hobbit.locator(".word")).to_have_text("Done")


def test_asked_until_the_stream_brings_it(served: Ground, browse: Browse) -> None:
    running(served, "The Hobbit")
    page = browse(served).page
    stop = row(page, "The Hobbit").locator("[data-kind=stop]")
    stop.click()
    page.wait_for_timeout(650)
    served.server.stall()
    stop.click()
    expect(stop).to_have_text("Asked…")
    expect(stop).to_have_attribute("aria-disabled", "true")
    said = row(page, "The Hobbit").locator(".said")
    expect(said).to_have_text("Asked, no answer yet.", timeout=7_000)
    served.server.go_on()
    expect(row(page, "The Hobbit").locator(".word")).to_have_text("Stopped")
    expect(said).to_be_hidden()


def test_pause_for_a_time_with_a_reason(waiting: Ground, browse: Browse) -> None:
    page = browse(waiting, size=PHONE).page
    lane_menu(page)
    page.get_by_role("dialog").get_by_role("button", name="Pause for a time").click()
    page.get_by_label("Why").fill("the baby sleeps")
    page.get_by_role("button", name="1 h", exact=True).click()
    expect(page.locator("h1")).to_contain_text("(the baby sleeps), until")


def test_the_delay_between_jobs_can_be_cut_short(served: Ground, browse: Browse) -> None:
    served.queue.lane("render").set_delay(300_000)
    first = running(served, "Dune")
    served.site.submit("slow", name="Emma")
    served.end("Dune")
    served.site.ended(first.id)
    page = browse(served).page
    expect(page.locator(".delay")).to_contain_text("left of the delay")
    page.get_by_role("button", name="Start next now").click()
    expect(row(page, "Emma").locator(".word")).to_have_text("Running")


def test_a_phone_has_one_control_and_a_sheet_that_back_closes(
    waiting: Ground, browse: Browse
) -> None:
    page = browse(waiting, size=PHONE).page
    dune = row(page, "Dune")
    expect(dune.get_by_role("button")).to_have_count(1)
    dune.get_by_role("button").tap()
    sheet = page.get_by_role("dialog", name="Dune")
    names = sheet.locator(".btn").all_inner_texts()
    assert names[:4] == ["Move to top", "Move up", "Move down", "Move to bottom"]
    assert names[-2:] == ["Details", "Cancel"]
    page.go_back()
    expect(sheet).to_have_count(0)
    expect(dune.get_by_role("button")).to_be_focused()
    assert page.url == waiting.server.url
    dune.get_by_role("button").tap()
    sheet.get_by_role("link", name="Details").tap()
    expect(page).to_have_url(f"{waiting.server.url}jobs/1")
    page.go_back()
    expect(row(page, "Dune")).to_be_visible()


def test_who_may_only_look_sees_no_controls(waiting: Ground, browse: Browse) -> None:
    token = Tokens(waiting.queue.files).add("night", "view", now_ms=waiting.queue.now_ms())
    visit = browse(waiting, "login")
    visit.expect("401")
    page = visit.page
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(row(page, "Dune")).to_be_visible()
    expect(page.locator(".role")).to_have_text("View only")
    expect(page.locator("#main .acts .btn:visible, #controls .btn:visible")).to_have_count(0)
