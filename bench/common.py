"""What the benchmarks share: a fresh folder with tasks, a real worker on it, the page's server
and a real browser."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lineclear import Queue

if TYPE_CHECKING:
    from playwright.sync_api import Page

TASKS = '''
import time
from lineclear import Context, Queue

queue = Queue()


@queue.task(lane="bench")
def points(ctx: Context, seconds: float = 60.0):
    """Safe points, one every millisecond; says when one of them raised."""
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ctx.safe_point()
            time.sleep(0.001)
    finally:
        ctx.log.info("stopped at %.6f", time.monotonic())


@queue.task(lane="many")
def sleeper(ctx: Context, number: int):
    for _ in range(6000):
        ctx.safe_point()
        time.sleep(0.1)
'''
FREE = "127.0.0.1:0"


@contextlib.contextmanager
def place() -> Iterator[tuple[Path, Queue]]:
    """A folder with ``tasks.py`` and a database; the queue of those tasks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks.py").write_text(TASKS)
        sys.path.insert(0, name)
        os.environ["LINECLEAR_DATABASE"] = str(folder / "lineclear.db")
        sys.modules.pop("tasks", None)
        queue: Queue = importlib.import_module("tasks").queue
        yield folder, queue
        queue.close()
        sys.path.remove(name)


def start_worker(folder: Path, **settings: str) -> subprocess.Popen[bytes]:
    environment = dict(os.environ) | settings
    return subprocess.Popen(
        [sys.executable, "-m", "lineclear", "worker"],
        cwd=folder,
        env=environment,
        stderr=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def worker(folder: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    process = start_worker(folder, **settings)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
        process.wait()


def start_page(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The page's server on a free port, once it listens, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lineclear", "--app", "tasks:queue", "serve", "--bind", FREE],
        cwd=folder,
        env=dict(os.environ) | {"PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    found = re.search(r"http://\S+/", process.stdout.readline())
    assert found, "the page's server does not start"
    return process, found[0]


@contextlib.contextmanager
def page(folder: Path) -> Iterator[tuple[Page, str]]:
    """A browser at the page, and the page's address."""
    from playwright.sync_api import sync_playwright

    process, address = start_page(folder)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            opened = browser.new_page()
            opened.goto(address)
            yield opened, address
            browser.close()
    finally:
        process.terminate()
        process.communicate()


def behind(page: Page) -> float:
    """Seconds to add to the page's clock (origin and now) to get this process's monotonic one."""
    best = (float("inf"), 0.0)
    for _ in range(50):
        before = time.monotonic()
        there = page.evaluate("performance.timeOrigin + performance.now()") / 1000
        after = time.monotonic()
        best = min(best, (after - before, (before + after) / 2 - there))
    return best[1]


def until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait for a condition of another process's making."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.002)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(values: Sequence[float], unit: str = "ms") -> str:
    return (
        f"p50 {statistics.median(values):.1f} {unit}, p99 {quantile(values, 0.99):.1f} {unit}, "
        f"most {max(values):.1f} {unit}, of {len(values)}"
    )
