"""No violation that axe can find: every screen and dialog, at two widths, in three themes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect
from tests.browser.harness import DESK, PHONE, Ground, Visit, open_visit

THEMES = ("light", "dark", "night")
WHOLE = {"resultTypes": ["violations"]}
COLOURS = {**WHOLE, "runOnly": ["color-contrast"]}
"""All that a theme can change; the rest is looked for once."""

SCREENS = {
    "now": "",
    "job running": "jobs/{running}",
    "job failed": "jobs/{failed}",
    "log": "jobs/{failed}/log",
    "history": "history",
    "metrics": "metrics",
    "add": "add?task=rich",
    "settings": "settings",
    "login": "login",
    "plain": "plain",
    "plain job": "plain/jobs/{failed}",
    "plain add": "plain/add",
}
DIALOGS = ("help", "menu", "lane", "question")


@pytest.fixture(scope="module")
def ids(shared: Ground) -> dict[str, int]:
    """One job of each kind a screen shows."""
    queue = shared.queue
    failed = queue.submit("fail", {})
    again = [queue.submit("quick", {}), queue.submit("quick", {"text": "two"})]
    running = queue.submit("slow", {"name": "Dune", "pages": 980})
    for name in ("Emma", "The Hobbit"):
        queue.submit("slow", {"name": name})
    held = queue.submit("slow", {"name": "Ulysses"})
    queue.hold(held.id)
    shared.at("Dune", 412, 980, unit="pages", note="chapter 14 of 19")
    shared.site.worker()
    queue.wait(failed.id, *(job.id for job in again), timeout_s=30)
    queue.wait(running.id, until="started", timeout_s=30)
    shared.site.until(lambda: queue.get(running.id).done == 412)
    queue.lane("other").pause("night", by="somebody")
    return {"failed": failed.id, "running": running.id}


@pytest.fixture(scope="module", params=["phone", "desk"])
def visit(request: pytest.FixtureRequest, chromium: Browser, shared: Ground) -> Iterator[Visit]:
    size = {"phone": PHONE, "desk": DESK}[request.param]
    made = open_visit(chromium, shared.server, "settings", size=size)
    yield made
    made.check()
    made.context.close()


def check(page: Page, where: str) -> None:
    found: list[str] = []
    page.evaluate(AXE_SCRIPT)
    for theme in THEMES:
        page.emulate_media(color_scheme="light" if theme == "light" else "dark")
        rules = page.evaluate(
            """([theme, options]) => {
                localStorage.setItem("lineclear.theme", theme);
                globalThis.lineclearTheme?.();
                return axe.run(document, options).then((found) => found.violations);
            }""",
            [theme, WHOLE if theme == THEMES[0] else COLOURS],
        )
        for rule in rules:
            nodes = [f"{node['html'][:200]} ({node['failureSummary']})" for node in rule["nodes"]]
            found += [f"{where}, {theme}: {rule['id']}: {each}" for each in nodes[:3]]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("screen", SCREENS)
def test_screens(visit: Visit, shared: Ground, ids: dict[str, int], screen: str) -> None:
    page = visit.page
    page.goto(shared.server.url + SCREENS[screen].format(**ids))
    if not screen.startswith("plain"):
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Connecting")
        expect(page.locator("#main > *").first).to_be_attached()
    check(page, screen)


@pytest.mark.parametrize("dialog", DIALOGS)
def test_dialogs(visit: Visit, shared: Ground, ids: dict[str, int], dialog: str) -> None:
    page = visit.page
    page.goto(shared.server.url)
    expect(page.locator(f"[data-id='{ids['running']}']")).to_be_visible()
    match dialog:
        case "help":
            page.goto(f"{shared.server.url}settings")
            expect(page.get_by_text("stop: press twice")).to_be_visible()
            page.keyboard.press("?")
        case "menu":
            page.get_by_role("button", name="More for Emma").click()
        case "lane":
            page.get_by_role("button", name="More for lane render").click()
        case _:
            page.get_by_role("button", name="More for lane render").click()
            page.get_by_role("button", name="Remove all waiting").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page, dialog)
