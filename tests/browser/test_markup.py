"""Markup, bidirectional and control characters in every field that can carry text: shown, never
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tests.browser import harness
from tests.browser.conftest import Browse
from tests.browser.harness import DESK, PHONE, TASKS, Ground, Visit
from tests.helpers import wait_until

EVIL = "<img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>"
STEERS = "a\u202eb\u2066c\u200fd\x1b[31me\x07f"
SHOWN = "<img src=x onerror="
LANE = "evil"  # names of lanes and tasks can carry no markup: they are refused

TASK = f"""
EVIL = {EVIL!r}
STEERS = {STEERS!r}

@queue.task(lane={LANE!r}, title="{{name}}", unit="<b>pages</b>")
def evil(ctx: Context, name: str, fails: bool = False):
    print(EVIL)
    print(STEERS, file=sys.stderr)
    for _ in ctx.steps([1], name=lambda n: f"{{EVIL}}{{STEERS}}", weight=lambda n: 1):
        pass
    ctx.progress(1, 10, "<i>pages</i>", f"<u>{{STEERS}}")
    if fails:
        raise RuntimeError(f"{{EVIL}}{{STEERS}}")
    while not (HERE / "evil.end").exists():
        ctx.safe_point()
        time.sleep(0.005)
    return {{EVIL: [EVIL, STEERS]}}
"""


class Jobs:
    running: int
    failed: int
    waiting: int
    done: int


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ground, Jobs]]:
    with harness.ground(tmp_path_factory.mktemp("evil"), source=TASKS + TASK) as ground:
        queue, site, jobs = ground.queue, ground.site, Jobs()
        title = f"{EVIL}{STEERS}"
        queue.lane(LANE).set_concurrency(1)

        def put(**more: object) -> int:
            args = {"name": title, **more}
            return queue.submit("evil", args, key=f"{EVIL}{len(queue.jobs())}", by=EVIL).id

        site.worker()
        jobs.failed = put(fails=True)
        site.ended(jobs.failed)
        jobs.done = put()
        site.touch("evil.end")
        site.ended(jobs.done)
        (site.folder / "evil.end").unlink()
        jobs.running = put()
        site.running(jobs.running)
        site.until(lambda: queue.get(jobs.running).note or None)
        jobs.waiting = put()
        queue.hold(jobs.waiting, by=EVIL, why=EVIL)
        queue.release(jobs.waiting, by=EVIL)
        queue.lane(LANE).pause(EVIL, by=EVIL)
        yield ground, jobs


def harmless(page: Page) -> None:
    """Nothing of it became an element, and none of it ran."""
    assert page.title() != "run"
    assert (
        page.locator("img, main script, dialog script, main b b, main u, main i img").count() == 0
    )
    assert page.locator("[onerror], [onclick], [style*=url]").count() == 0
    for char in "\u202e\u2066\u200f\x1b\x07":
        assert char not in page.locator("main").inner_text()


def opened(browse: Browse, ground: Ground, path: str, size: ViewportSize = DESK) -> Visit:
    visit = browse(ground, path, size=size)
    visit.page.on("dialog", lambda box: visit.problems.append(f"dialog: {box.message}"))
    return visit


SCREENS: dict[str, Callable[[Jobs], str]] = {
    "now": lambda jobs: "",
    "running": lambda jobs: f"jobs/{jobs.running}",
    "failed": lambda jobs: f"jobs/{jobs.failed}",
    "waiting": lambda jobs: f"jobs/{jobs.waiting}",
    "done": lambda jobs: f"jobs/{jobs.done}",
    "log": lambda jobs: f"jobs/{jobs.failed}/log",
    "history": lambda jobs: "history?q=%3Cimg%20src%3Dx&kind=%3Cimg%20src%3Dx%3E",
    "history-all": lambda jobs: "history",
    "add": lambda jobs: f"add?again={jobs.failed}",
    "settings": lambda jobs: "settings",
    "metrics": lambda jobs: "metrics",
}


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("screen", SCREENS)
def test_case_d3_markup_is_shown_literally(
    evil: tuple[Ground, Jobs], browse: Browse, screen: str, size: ViewportSize
) -> None:
    ground, jobs = evil
    page = opened(browse, ground, SCREENS[screen](jobs), size).page
    expect(page.locator("main *").first).to_be_attached()
    if screen == "add":
        values = "els => els.map(e => e.value)"
        wait_until(lambda: EVIL in "".join(page.locator("main input").evaluate_all(values)))
    elif screen != "metrics":
        expect(page.get_by_text("<img src=x").first).to_be_attached()
    harmless(page)


def test_case_d3_in_the_job_every_field_is_there(evil: tuple[Ground, Jobs], browse: Browse) -> None:
    ground, jobs = evil
    page = opened(browse, ground, f"jobs/{jobs.failed}").page
    for part in (".job-head h2", ".job-why", ".job-short", ".steps", ".job-inputs", ".facts"):
        expect(page.locator(part).first).to_contain_text(SHOWN)
    expect(page.locator(".job-head h2")).to_contain_text(r"a\u202eb\u2066c\u200fd\x1b[31me\x07f")
    page.get_by_text("Raw JSON").click()
    expect(page.locator(".raw .data")).to_contain_text(SHOWN)
    page.get_by_text("Show trace").click()
    expect(page.locator(".trace")).to_contain_text(SHOWN)
    harmless(page)
    page.goto(f"{ground.server.url}jobs/{jobs.running}")
    expect(page.locator(".job-note")).to_contain_text("<u>a\\u202eb")
    expect(page.locator(".job-progress")).to_contain_text("<i>pages</i>")
    page.goto(f"{ground.server.url}jobs/{jobs.waiting}")
    expect(page.locator(".job-waits")).to_contain_text(SHOWN)
    expect(page.locator(".timeline")).to_contain_text(SHOWN)
    page.goto(f"{ground.server.url}jobs/{jobs.done}")
    expect(page.locator(".job-result")).to_contain_text(SHOWN)
    harmless(page)


def test_case_d3_in_sheets_questions_toasts_and_live_rows(
    evil: tuple[Ground, Jobs], browse: Browse
) -> None:
    ground, jobs = evil
    page = opened(browse, ground, "", PHONE).page
    row = page.locator(f"[data-id='{jobs.waiting}']")
    row.locator(".more").click()
    expect(page.get_by_role("dialog")).to_contain_text(SHOWN)
    harmless(page)
    page.get_by_role("dialog").locator("[data-kind=remove]").click()
    expect(page.locator(".toast")).to_contain_text(SHOWN)
    harmless(page)
    page.locator(".toast").get_by_role("button", name="Undo").evaluate("e => e.click()")
    expect(row).to_be_visible()
    live = ground.queue.submit("evil", {"name": f"live {EVIL}"})
    expect(page.get_by_text(f"live {SHOWN}").first).to_be_visible()
    ground.queue.remove(live.id)
    harmless(page)


def test_case_d3_from_another_origin_nothing_can_be_pressed(
    chromium: Browser, evil: tuple[Ground, Jobs], serving: Callable[..., Ground]
) -> None:
    ground, jobs = evil
    other = serving()
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{other.server.url.replace('127.0.0.1', 'localhost')}plain")
    status = page.evaluate(
        """url => fetch(url, {method: "POST", mode: "no-cors",
            headers: {"Content-Type": "text/plain"}, body: "{}"})
            .then(() => "sent", () => "refused")""",
        f"{ground.server.url}api/v1/jobs/{jobs.running}/stop",
    )
    assert status in ("sent", "refused")
    assert ground.queue.get(jobs.running).wish is None
    context.close()
