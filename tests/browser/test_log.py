"""The Log screen on real logs: it follows, lets somebody read, goes on where it was, stays
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser import harness
from tests.browser.conftest import Browse
from tests.browser.harness import PHONE, TASKS, Ground, Visit
from tests.helpers import wait_until

COLOURS = """
@queue.task(lane="other", title="colours")
def colours(ctx: Context):
    print("\\x1b[1;31mred\\x1b[0m then plain")
    print("1 %\\r50 %\\r100 %")
    print("bell \\x07 end")
    print("left \\u202eright")
    print("y" * 9000)
    print("aside", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One server and worker for all; every test has a job of its own name."""
    with harness.ground(tmp_path_factory.mktemp("logs"), source=TASKS + COLOURS) as made:
        made.queue.lane("other").set_concurrency(30)
        made.queue.lane("render").set_concurrency(30)
        made.site.worker()
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:40].replace("[", "-").replace("]", "")


def talking(ground: Ground, name: str, *, lines: int = 500) -> int:
    job = ground.site.submit("talk", name=name, lines=lines)
    ground.site.running(job)
    return job


def lines_of(page: Page) -> list[str]:
    told: list[str] = page.locator(".log-text").all_inner_texts()
    return told


def at_end(page: Page) -> bool:
    return bool(
        page.locator(".log").evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight <= 40")
    )


def opened(browse: Browse, ground: Ground, job: int, **more: object) -> Visit:
    visit = browse(ground, f"jobs/{job}/log", **more)
    expect(visit.page.locator(".log-line").first).to_be_attached()
    return visit


def test_it_opens_at_the_end_with_the_last_lines_and_follows(
    ground: Ground, browse: Browse, name: str
) -> None:
    page = opened(browse, ground, talking(ground, name)).page
    expect(page.get_by_text("line 499")).to_be_visible()
    assert len(lines_of(page)) == 200
    assert at_end(page)
    ground.say(name, "a new line")
    expect(page.get_by_text("a new line")).to_be_visible()
    assert at_end(page)


def test_scrolling_up_stops_following_and_the_button_says_what_came(
    ground: Ground, browse: Browse, name: str
) -> None:
    page = opened(browse, ground, talking(ground, name)).page
    expect(page.get_by_text("line 499")).to_be_visible()
    page.locator(".log").evaluate("e => e.scrollTop = 300")
    expect(page.locator(".log")).to_have_attribute("data-following", "no")
    before = page.locator(".log").evaluate("e => e.scrollTop")
    ground.say(name, *(f"news {n}" for n in range(12)))
    button = page.get_by_role("button", name="12 new lines ↓")
    expect(button).to_be_visible()
    assert page.locator(".log").evaluate("e => e.scrollTop") == before
    button.click()
    expect(page.get_by_text("news 11")).to_be_visible()
    expect(button).to_be_hidden()
    ground.say(name, "and on")
    expect(page.get_by_text("and on")).to_be_visible()


def test_reaching_the_end_follows_again(ground: Ground, browse: Browse, name: str) -> None:
    page = opened(browse, ground, talking(ground, name)).page
    expect(page.get_by_text("line 499")).to_be_visible()
    log = page.locator(".log")
    log.evaluate("e => e.scrollTop = 0")
    expect(log).to_have_attribute("data-following", "no")
    log.evaluate("e => e.scrollTop = e.scrollHeight")
    expect(log).to_have_attribute("data-following", "yes")


def test_earlier_lines_are_put_above_without_moving_what_is_read(
    ground: Ground, browse: Browse, name: str
) -> None:
    page = opened(browse, ground, talking(ground, name)).page
    page.locator(".log").evaluate("e => e.scrollTop = 0")
    top = page.get_by_text("line 300", exact=True).bounding_box()
    page.get_by_role("button", name="Earlier lines").evaluate("e => e.click()")
    expect(page.get_by_text("line 0", exact=True)).to_be_attached()
    assert lines_of(page) == [f"line {n}" for n in range(500)]
    now = page.get_by_text("line 300", exact=True).bounding_box()
    assert top and now
    assert abs(now["y"] - top["y"]) <= 40  # the button above it may have gone
    expect(page.get_by_role("button", name="Earlier lines")).to_be_hidden()


def test_a_lost_connection_goes_on_at_the_same_line(
    ground: Ground, browse: Browse, name: str
) -> None:
    visit = opened(browse, ground, talking(ground, name, lines=20))
    page = visit.page
    expect(page.get_by_text("line 19")).to_be_visible()
    visit.expect("ERR_", "Failed to load")
    ground.server.kill()
    ground.say(name, "while away")
    ground.server.start()
    expect(page.get_by_text("while away")).to_be_visible()
    ground.say(name, "afterwards")
    expect(page.get_by_text("afterwards")).to_be_visible()
    assert lines_of(page) == [*(f"line {n}" for n in range(20)), "while away", "afterwards"]


def test_no_more_than_5000_lines_are_kept(ground: Ground, browse: Browse, name: str) -> None:
    page = opened(browse, ground, talking(ground, name, lines=12_000)).page
    expect(page.get_by_text("line 11999")).to_be_visible()
    for batch in range(6):  # 1,000 at a time
        ground.say(name, *(f"more {batch} {n}" for n in range(1000)))
        expect(page.get_by_text(f"more {batch} 999", exact=True)).to_be_visible()
    assert len(lines_of(page)) <= 5000
    earlier = page.get_by_role("button", name="Earlier lines")
    for _ in range(7):
        count = len(lines_of(page))
        first = lines_of(page)[0]
        earlier.evaluate("e => e.click()")
        wait_until(lambda first=first: lines_of(page)[0] != first)  # type: ignore[misc]
        assert count - 1 <= len(lines_of(page)) <= 5000
    shown = lines_of(page)
    start = int(shown[0].split()[1])
    assert shown[:1000] == [f"line {n}" for n in range(start, start + 1000)]
    # The end is not among them any more: the button leads there.
    page.get_by_role("button", name="To the end ↓").click()
    expect(page.get_by_text("more 5 999", exact=True)).to_be_visible()


def test_find_marks_the_lines_and_steps_through_them(
    ground: Ground, browse: Browse, name: str
) -> None:
    page = opened(browse, ground, talking(ground, name)).page
    expect(page.get_by_text("line 499")).to_be_visible()
    search = page.get_by_role("searchbox", name="Find in the lines shown")

    def focused() -> bool:  # the shortcuts are loaded last
        page.keyboard.press("/")
        return bool(search.evaluate("e => e === document.activeElement"))

    wait_until(focused)
    search.fill("LINE 31")
    expect(page.locator(".log-match")).to_have_count(10)
    expect(page.locator(".log-found")).to_have_text("10 lines")
    search.press("Enter")
    expect(page.locator(".log-current")).to_contain_text("line 319")
    expect(page.locator(".log-current")).to_be_in_viewport()
    search.press("Enter")
    expect(page.locator(".log-found")).to_have_text("1 of 10")
    search.fill("nowhere")
    expect(page.locator(".log-found")).to_have_text("Not in the 200 lines shown")
    search.press("Escape")
    expect(page.locator(".log-match")).to_have_count(0)


def test_colours_carriage_returns_controls_and_long_lines(ground: Ground, browse: Browse) -> None:
    job = ground.site.submit("colours")
    ground.site.ended(job)
    page = opened(browse, ground, job).page
    red = page.locator(".ansi-bad")
    expect(red).to_have_text("red")
    assert red.evaluate("e => getComputedStyle(e).color") == page.locator(
        ".log-e .log-stream"
    ).evaluate("e => getComputedStyle(e).color")
    told = lines_of(page)
    assert told[0] == "red then plain"
    assert told[1] == "100 %"
    assert told[2] == r"bell \x07 end"
    assert told[3] == r"left \u202eright"
    assert told[4].startswith("y" * 4000)
    assert "y" * 4001 not in told[4]
    page.get_by_role("button", name="Show all 9,000 characters").click()
    expect(page.get_by_text("y" * 9000, exact=True)).to_be_attached()
    aside = page.locator(".log-line", has_text="aside")
    expect(aside.locator(".log-stream")).to_have_text("err")
    expect(page.locator(".log-end")).to_contain_text("Ended")


def test_times_wrap_and_reading_aloud_are_switches(
    ground: Ground, browse: Browse, name: str
) -> None:
    job = talking(ground, name, lines=3)
    page = opened(browse, ground, job).page
    first = page.locator(".log-line time").first
    expect(first).to_be_hidden()
    page.get_by_role("button", name="Times").click()
    expect(first).to_be_visible()
    assert first.get_attribute("datetime")
    log = page.get_by_role("log")
    expect(log).to_have_attribute("aria-live", "off")
    page.get_by_role("button", name="Read new lines").click()
    expect(log).to_have_attribute("aria-live", "polite")
    wrap = page.get_by_role("button", name="Wrap")
    expect(wrap).to_have_attribute("aria-pressed", "false")
    phone = opened(browse, ground, job, size=PHONE).page
    expect(phone.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "true")


def test_copy_and_download_give_the_text(ground: Ground, browse: Browse, name: str) -> None:
    visit = opened(browse, ground, talking(ground, name, lines=3))
    page = visit.page
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied 3 lines.").first).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "line 0\nline 1\nline 2"
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download", exact=True).click()
    assert waiting.value.path().read_text() == "line 0\nline 1\nline 2\n"


def test_its_end_is_the_last_line(ground: Ground, browse: Browse, name: str) -> None:
    page = opened(browse, ground, talking(ground, name, lines=3)).page
    expect(page.locator(".log-end")).to_be_hidden()
    ground.end(name)
    expect(page.locator(".log-end")).to_contain_text("Ended")


def test_an_empty_log_says_why(ground: Ground, browse: Browse, name: str) -> None:
    running = ground.site.submit("slow", name=name)
    waiting = ground.queue.submit("slow", {"name": f"{name} later"}, held=True).id
    ground.site.running(running)
    visit = browse(ground, f"jobs/{running}/log")
    end = visit.page.locator(".log-end")
    expect(end).to_contain_text("No output yet. Started")
    visit.page.goto(f"{ground.server.url}jobs/{waiting}/log")
    expect(end).to_contain_text("No output yet. It has not started.")
