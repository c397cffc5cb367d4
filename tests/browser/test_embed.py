"""The example of docs/how-to/embed-the-page.md in a real browser: the page below a path of
somebody's application, and a lane as a panel in a page of theirs, under the policy printed there.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.harness import DESK, PHONE, Visit, open_visit
from tests.helpers import SOURCES, wait_until

from lineclear import Queue
from lineclear.job import State

PAGE = Path(__file__).parents[2] / "docs/how-to/embed-the-page.md"
STOPPABLE = 650  # ms from the first press to one that counts


@dataclass
class Shop:
    """Somebody's application with its page; shaped like the harness's server."""

    folder: Path
    port: int
    queue: Queue

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def process(folder: Path, *command: str) -> Iterator[None]:
    with (folder / "said").open("ab") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        yield
    finally:
        running.terminate()
        running.wait(30)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    source = re.search(r"```python\n(# shop\.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert source
    (tmp_path / "shop.py").write_text(source[1])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ("granian", "--interface", "asgi", "--port", str(port), "shop:app")
    with ExitStack() as stack:
        stack.enter_context(process(tmp_path, *command))
        made = Shop(tmp_path, port, Queue(tmp_path / "shop.db"))
        stack.callback(made.queue.close)

        def answers() -> bool:
            with socket.socket() as asked:
                return asked.connect_ex(("127.0.0.1", port)) == 0

        wait_until(answers, timeout_s=20, what="the application")
        yield made


@pytest.fixture
def visits(chromium: Browser, shop: Shop) -> Iterator[list[Visit]]:
    found: list[Visit] = []
    yield found
    for visit in found:
        visit.check()
        visit.context.close()


def add(shop: Shop, name: str, *, count: int = 20) -> int:
    command = [
        *(sys.executable, "-m", "lineclear", "--app", "shop:queue"),
        *("add", "labels", f"name={name}", f"count={count}", "-q"),
    ]
    done = subprocess.run(
        command,
        cwd=shop.folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_two_lines_of_html_show_and_hold_a_lane(
    chromium: Browser, shop: Shop, visits: list[Visit]
) -> None:
    first = add(shop, "anna", count=10_000)
    add(shop, "ben")
    visit = open_visit(chromium, shop, size=DESK)  # type: ignore[arg-type]
    visits.append(visit)
    page = visit.page
    panel = page.locator("line-clear")
    expect(panel.get_by_text("Labels for ben")).to_be_visible()
    expect(panel.get_by_text("Nobody serves lane render")).to_be_visible()
    with process(shop.folder, "lineclear", "--database", "shop.db", "worker"):
        row = panel.locator(f"[data-id='{first}']")
        expect(row).to_have_attribute("data-state", "running", timeout=20_000)
        expect(row.get_by_role("progressbar")).to_be_visible()
        row.get_by_role("button", name="Stop Labels for anna").click()
        expect(row).to_contain_text("Press again to stop")
        armed = page.evaluate("performance.now()")
        wait_until(lambda: page.evaluate("performance.now()") > armed + STOPPABLE)
        row.get_by_role("button", name="Press again to stop Labels for anna").click()
        shop.queue.wait(first, timeout_s=20)
        assert shop.queue.get(first).state is State.CANCELLED
        expect(row).to_have_attribute("data-state", "cancelled")
    # Somebody's page stays somebody's: no style of ours in it, no request outside the mount.
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(0, 0, 0)"
    mine = [r.url for r in visit.requests if not r.url.startswith(f"{shop.url}queue/")]
    assert [url for url in mine if url.startswith("http")] == [shop.url]


def test_the_panel_fits_a_phone_and_takes_a_theme(
    chromium: Browser, shop: Shop, visits: list[Visit]
) -> None:
    add(shop, "anna")
    visit = open_visit(chromium, shop, size=PHONE)  # type: ignore[arg-type]
    visits.append(visit)
    page = visit.page
    expect(page.get_by_text("Labels for anna")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
    surface = "document.querySelector('line-clear').shadowRoot.querySelector('.lc')"
    background = f"getComputedStyle({surface}).backgroundColor"
    light = page.evaluate(background)
    page.evaluate("document.querySelector('line-clear').setAttribute('theme', 'night')")
    assert page.evaluate(background) != light
    page.evaluate("document.querySelector('line-clear').setAttribute('lane', 'none')")
    visit.expect("404")
    expect(page.locator("line-clear")).to_contain_text("There is no lane 'none'")


def test_the_whole_page_works_below_a_path(
    chromium: Browser, shop: Shop, visits: list[Visit]
) -> None:
    visit = open_visit(chromium, shop, "queue", size=DESK)  # type: ignore[arg-type]
    visits.append(visit)
    page = visit.page
    expect(page).to_have_url(f"{shop.url}queue/")
    page.get_by_role("link", name="Add", exact=True).click()
    expect(page).to_have_url(f"{shop.url}queue/add")
    page.get_by_label("name", exact=True).fill("anna")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".result")).to_contain_text("Added as 1st")
    page.get_by_role("button", name="Open").click()
    expect(page).to_have_url(f"{shop.url}queue/jobs/1")
    page.reload()
    expect(page.locator("article.job")).to_contain_text("Labels for anna")
    page.goto(f"{shop.url}queue/plain")
    page.get_by_role("button", name="Remove Labels for anna").click()
    expect(page).to_have_url(f"{shop.url}queue/plain")
    assert shop.queue.get(1).state is State.CANCELLED
