"""A real server on real jobs, and a real browser that reports whatever goes wrong on the page.

For the tests of this folder and the screenshots. Jobs obey files of their folder
(``Ground.at``, ``Site.touch``), so that a test says when a job moves and when it ends. The page's
own content security policy is in force: ``Page.wait_for_function`` cannot work there. Wait with
``expect(locator)``, or with ``wait_until(lambda: page.evaluate(...))``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.request import urlopen

import psutil
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)
from tests.helpers import SOURCES, wait_until
from tests.workers import SHORT, Site, site

from lineclear import Queue

PHONE = ViewportSize(width=390, height=844)
DESK = ViewportSize(width=1280, height=800)
Theme = Literal["light", "dark", "night"]

TASKS = """
from typing import Literal
from urllib.request import urlopen

def text(name):
    try:
        return (HERE / name).read_text()
    except FileNotFoundError:
        return ""

@queue.task(lane="render", title="{name}", unit="pages")
def slow(ctx: Context, name: str, pages: float = 0):
    "Moves as the file NAME.at says (done, total, unit, note, divided by |), ends with NAME.end."
    shown = ""
    if pages:
        ctx.progress(0, pages)
    try:
        while not (HERE / f"{name}.end").exists():
            ctx.safe_point()
            now = text(f"{name}.at")
            if now != shown:
                done, total, unit, note = (now + "|||").split("|")[:4]
                ctx.progress(
                    float(done) if done else None, float(total) if total else None,
                    unit or None, note or None,
                )
                shown = now
            time.sleep(0.002)
    except BaseException as raised:
        say("raised", name, type(raised).__name__)
        raise
    return {"name": name}

@queue.task(lane="render", title="{name}")
def deaf(ctx: Context, name: str):
    "Hears nothing: it sleeps, and has no safe point."
    say("deaf", name)
    time.sleep(3600)

@queue.task(lane="render", title="{name}")
def step(ctx: Context, name: str, count: int = 3):
    "COUNT steps; number N ends with the file NAME.N."
    for number in ctx.steps(range(count), name=lambda n: f"chapter {n + 1}", weight=lambda n: 1):
        while not (HERE / f"{name}.{number}").exists():
            ctx.safe_point()
            time.sleep(0.002)

@queue.task(lane="other", title="{text}")
def quick(ctx: Context, text: str = "quick"):
    print(text)
    return {"text": text}

@queue.task(lane="other", title="{name}")
def fail(ctx: Context, name: str = "Solaris", why: str = "voice file missing"):
    print("so it ends")
    raise RuntimeError(why)

@queue.task(lane="other", title="{name}")
def talk(ctx: Context, name: str = "talk", lines: int = 500):
    "Prints LINES lines, then one more for every line of NAME.say, and ends with NAME.end."
    for number in range(lines):
        print("line", number)
    told = 0
    while not (HERE / f"{name}.end").exists():
        ctx.safe_point()
        said = text(f"{name}.say").splitlines()
        for line in said[told:]:
            print(line, flush=True)
        told = len(said)
        time.sleep(0.002)

@queue.task(lane="other", title="Read {book}", key="{book}-{voice}", unit="pages")
def rich(
    ctx: Context,
    book: int,
    voice: Literal["joe", "amy", "kathleen"] = "joe",
    speed: float = 1.0,
    draft: bool = False,
    chapters: list[int] | None = None,
    cover: str | None = None,
    tags: dict[str, str] | None = None,
):
    "Read a book aloud.\\n\\nEvery chapter becomes a file."
    return {"book": book, "voice": voice}

@queue.task(lane="other", title="swallow")
def swallow(ctx: Context, data: str = ""):
    return len(data)
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = "There is no Chromium here: apt-get install chromium (.ci/run does). Looked for {}."


def chromium() -> str:
    """Where the browser is. Never skipped over: a page that no browser opened is not tested."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(NO_BROWSER.format(", ".join(BROWSERS)))


@contextmanager
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        # Full-size pages need more shared memory than containers have.
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@dataclass(eq=False)
class Server:
    """What ``lineclear serve`` becomes, on a free port that it keeps over restarts."""

    database: str
    app: str
    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    port: int = 0
    host: str = "127.0.0.1"
    path: str = "/"

    def start(self) -> Server:
        self.log = self.folder / "server.log"
        self.log.unlink(missing_ok=True)
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "lineclear.web", self.database, "--app", self.app),
                    *("--bind", f"{self.host}:{self.port}", *self.options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(SOURCES), **SHORT, **self.env},
            )
        try:
            wait_until(self._answers, timeout_s=20, what="the server's first answer")
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{error}\n{self.said}") from None
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        found = re.search(r"http://[^\s/]+:(\d+)(/\S*)", self.said)
        if not found:
            return False
        self.port, self.path = int(found[1]), found[2]
        try:
            with urlopen(f"{self.url}-/health", timeout=10):
                return True
        except OSError:
            return False

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}{self.path}"

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def end(self) -> int:
        """Ask it to stop, as Ctrl-C does, and wait until it has."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def stall(self) -> None:
        """It keeps its connections and says nothing more, until ``go_on``."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def connections(self) -> int:
        """How many connections browsers hold to it."""
        open_now = psutil.Process(self.process.pid).net_connections(kind="tcp")
        return sum(one.status == psutil.CONN_ESTABLISHED for one in open_now)


@dataclass(eq=False)
class Ground:
    """A folder with a database, its tasks and the page's server. ``site.worker()`` starts one."""

    site: Site
    server: Server

    @property
    def queue(self) -> Queue:
        return self.site.queue

    def at(self, name: str, done: float | str = "", total: float | str = "", **more: str) -> None:
        """Let the running ``slow`` job of this name report how far it is; ``unit=``, ``note=``."""
        staged = self.site.folder / f"{name}.at.new"
        staged.write_text(f"{done}|{total}|{more.get('unit', '')}|{more.get('note', '')}")
        staged.rename(self.site.folder / f"{name}.at")

    def say(self, name: str, *lines: str) -> None:
        """Let the running ``talk`` job of this name print these lines."""
        with (self.site.folder / f"{name}.say").open("a") as told:
            told.write("".join(f"{line}\n" for line in lines))

    def end(self, name: str) -> None:
        """Let the job of this name end well."""
        self.site.touch(f"{name}.end")


@contextmanager
def ground(
    folder: Path, *options: str, source: str = TASKS, start: bool = True, **env: str
) -> Iterator[Ground]:
    """``options`` are those of ``serve``; ``env`` is the server's and the workers' alike."""
    with site(folder, source, **env) as made:
        assert made.queue.store  # the file is there before the server looks for it
        server = Server(str(made.queue.database), f"{made.module}:queue", folder, env, options)
        if start:
            server.start()
        try:
            yield Ground(made, server)
        finally:
            if getattr(server, "process", None):
                server.go_on()
                server.kill()


@dataclass(eq=False)
class Visit:
    """One browser window at the page, and everything in it that should not have been."""

    page: Page
    context: BrowserContext
    origin: str
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium reports each violated content security policy and each failed answer here too.
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            self.problems.append(f"console {message.type}: {message.text} [{where}]")

    def _request(self, request: Request) -> None:
        self.requests.append(request)
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:", "about:")):
            self.problems.append(f"left the origin: {request.url}")

    def expect(self, *patterns: str) -> None:
        """Problems that match one of these belong to what is tested."""
        self.expected += patterns

    def shown(self) -> str:
        """The window as text, for whoever reads of a failure."""
        if self.page.is_closed():
            return "a closed window"
        return f"--- {self.page.url}\n{self.page.locator('body').inner_text()[:3000]}"

    def check(self) -> None:
        if not self.page.is_closed():
            self.page.evaluate("1")  # whatever the browser has reported by now is delivered
        left = [p for p in self.problems if not any(re.search(e, p) for e in self.expected)]
        assert left == [], "\n".join(left)

    def visible(self, state: Literal["visible", "hidden"]) -> None:
        """As when another tab comes to the front, or this one comes back."""
        self.page.evaluate(
            """state => {
                Object.defineProperty(document, "visibilityState",
                    {configurable: true, get: () => state});
                Object.defineProperty(document, "hidden",
                    {configurable: true, get: () => state === "hidden"});
                document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )


def open_visit(
    browser: Browser,
    server: Server,
    path: str = "",
    *,
    size: ViewportSize = DESK,
    theme: Theme | None = None,
    stored: dict[str, str] | None = None,
    context: BrowserContext | None = None,
    touch: bool | None = None,
) -> Visit:
    """A window of its own at ``path``; with ``context`` a further tab of that window."""
    origin = "/".join(server.url.split("/")[:3])
    kept = {**(stored or {}), **({"lineclear.theme": theme} if theme else {})}
    phone = size["width"] < 600 if touch is None else touch
    made = context or browser.new_context(
        viewport=size,
        has_touch=phone,
        is_mobile=phone,
        locale="en-GB",
        timezone_id="Europe/Berlin",
        storage_state={
            "cookies": [],
            "origins": [
                {
                    "origin": origin,
                    "localStorage": [{"name": k, "value": v} for k, v in kept.items()],
                }
            ],
        },
    )
    made.set_default_timeout(10_000)
    visit = Visit(made.new_page(), made, origin)
    visit.page.goto(server.url + path.lstrip("/"))
    return visit
