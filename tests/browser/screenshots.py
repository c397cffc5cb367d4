"""Pictures of every screen, at 390 and 1280 pixels, in three themes: ``make screenshots``.

Real jobs under a real worker, made older in the database than they are, since nobody waits an hour
for a picture. Writes into ``screenshots/``, and the two of the README into ``docs/images/``.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Browser, Page
from tests.browser.harness import DESK, PHONE, Ground, Theme, browser, ground, open_visit
from tests.helpers import wait_until

from lineclear.web.tokens import Tokens

ROOT = Path(__file__).parents[2]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
PACE = (0.83, 1.15, 0.88, 1.14)
THEMES: tuple[Theme, ...] = ("light", "dark", "night")
FOR_README = {"now-1280-light": "page.png", "now-390-night": "page-phone.png"}

TASKS = """
from typing import Literal

Voice = Literal["joe", "amy", "kathleen"]

def work(ctx, name, lines, stuck=False):
    for line in lines:
        print(line, flush=True)
    shown = ""
    while not (HERE / f"{name}.end").exists():
        ctx.safe_point()
        try:
            now = (HERE / f"{name}.at").read_text()
        except FileNotFoundError:
            now = ""
        if now != shown:
            done, total, unit, note = now.split("|")
            ctx.progress(float(done), float(total), unit or None, note or None)
            shown = now
            if stuck:
                time.sleep(3600)  # without a safe point: alive, and not moving
        time.sleep(0.01)

@queue.task(lane="books", title="{title}", key="{title}-{voice}", unit="pages")
def audiobook(ctx: Context, title: str, voice: Voice = "joe", chapters: list[int] | None = None,
              speed: float = 1.0, keep_wav: bool = False):
    "Read a book aloud.\\n\\nOne audio file for each chapter; a stop keeps the finished ones."
    for number in ctx.steps(range(1, 9), name=lambda n: f"chapter {n}", weight=lambda n: 40):
        print(f"chapter {number}: {31 + number * 7} sentences", flush=True)
    work(ctx, title, [f"chapter 9, sentence {n}: {n * 37 % 9 + 3}.{n % 10} s" for n in range(140)])
    return {"files": 19, "spoken": "11 h 20 min"}

@queue.task(lane="scans", title="{title}", unit="pages")
def scan(ctx: Context, title: str, box: str = ""):
    "Read a box of scanned pages."
    work(ctx, title, [f"\\x1b[32mok\\x1b[0m page {n}" for n in range(60)], stuck=True)

@queue.task(lane="albums", title="{title}", unit="tracks")
def album(ctx: Context, title: str, fail: str = ""):
    "Fetch an album."
    print("asking the archive", flush=True)
    if fail:
        print("track 4: 404", file=sys.stderr, flush=True)
        raise FileNotFoundError(fail)
    return {"tracks": 11}
"""
ALBUMS = (
    "Kind of Blue", "Blue Train", "Time Out", "Mingus Ah Um", "Somethin’ Else", "Moanin’",
    "Getz/Gilberto", "Waltz for Debby", "Maiden Voyage", "Speak No Evil", "Giant Steps",
    "Soul Station", "The Sidewinder", "Song for My Father", "Empyrean Isles", "Idle Moments",
)  # fmt: skip


def stage(made: Ground) -> dict[str, int]:
    """A night's queue: what runs, is quiet, waits, is paused, failed and is done."""
    queue = made.queue
    with urlopen(f"{made.server.url}api/v1/me") as answer:
        me = json.load(answer)["name"]
    made.site.worker()
    ids: dict[str, int] = {}

    def add(task: str, title: str, name: str = "", **more: Any) -> int:
        ids[name or title] = queue.submit(task, {"title": title}, **more).id
        return ids[name or title]

    for number, title in enumerate(ALBUMS):
        job = add("album", title, "done")
        made.site.ended(job)
        older(
            made,
            job,
            ended_ago_ms=(20 + 40 * (len(ALBUMS) - number) ** 2) * MINUTE_MS,
            took_ms=(9 + number) * MINUTE_MS,
            waited_ms=number * 4 * MINUTE_MS,
        )
    ids["failed"] = queue.submit(
        "album", {"title": "In a Silent Way", "fail": "track 4 is not at the source"}
    ).id
    made.site.ended(ids["failed"])
    older(made, ids["failed"], ended_ago_ms=7 * MINUTE_MS, took_ms=22 * MINUTE_MS)

    running = add("audiobook", "Moby-Dick", "running")
    add("audiobook", "Dracula")
    held = add("audiobook", "Frankenstein")
    add("audiobook", "Middlemarch", run_at_ms=queue.now_ms() + 3 * HOUR_MS)
    quiet = add("scan", "Scans from the attic, boxes 3 to 11", "quiet")
    add("scan", "Receipts 2025")
    made.site.running(running)
    made.site.running(quiet)
    queue.hold(held, by=me)
    queue.lane("albums").pause(
        "the archive asked for a rest", until_ms=queue.now_ms() + 5 * HOUR_MS, by=me
    )
    add("album", "A Love Supreme")
    add("album", "Out to Lunch!")
    made.at("Moby-Dick", 412, 980, note="chapter 9 of 19")
    made.at("Scans from the attic, boxes 3 to 11", 300, 1204)
    # Once the last beat that tells of a move is written, no other will be.
    wait_until(lambda: queue.get(running).done and (queue.get(quiet).moved_age_ms or 0) > 2_000)
    older(made, running, started_ago_ms=38 * MINUTE_MS)
    older(made, quiet, started_ago_ms=72 * MINUTE_MS, moved_ago_ms=4 * MINUTE_MS)
    for waits in ("Dracula", "Frankenstein", "Middlemarch", "Receipts 2025", "A Love Supreme"):
        older(made, ids[waits], submitted_ago_ms=65 * MINUTE_MS)
    return ids


@contextmanager
def database(made: Ground) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(made.queue.database, timeout=10)) as opened, opened:
        yield opened


def older(
    made: Ground,
    job_id: int,
    *,
    ended_ago_ms: int = 0,
    took_ms: int = 0,
    started_ago_ms: int = 0,
    moved_ago_ms: int = 0,
    submitted_ago_ms: int = 0,
    waited_ms: int = 0,
) -> None:
    """Make a job and its events as old as a night's are."""
    now_ms = made.queue.now_ms()
    job = made.queue.get(job_id)
    shift = ended_ago_ms + took_ms or started_ago_ms or submitted_ago_ms
    with database(made) as opened:
        opened.execute(
            "UPDATE job SET submitted_ms = submitted_ms - ?1 - ?4, started_ms = started_ms - ?1, "
            "held_ms = held_ms - ?1, start_tick = start_tick - ?1, ended_ms = ended_ms - ?2 "
            "WHERE id = ?3",
            (shift, ended_ago_ms, job_id, waited_ms),
        )
        opened.execute(
            "UPDATE event SET at_ms = at_ms - CASE kind WHEN 'ended' THEN ?2 ELSE ?1 END "
            "WHERE job = ?3",
            (shift, ended_ago_ms, job_id),
        )
        opened.execute(
            "UPDATE event SET at_ms = at_ms - ? WHERE job = ? AND kind = 'added'",
            (waited_ms, job_id),
        )
        if took_ms:
            opened.execute("UPDATE job SET worked_ms = ? WHERE id = ?", (took_ms, job_id))
        if moved_ago_ms:
            opened.execute(
                "UPDATE job SET moved_tick = moved_tick - ?, moves = 400 WHERE id = ?",
                (moved_ago_ms, job_id),
            )
        elif started_ago_ms and job.done:
            minutes = started_ago_ms // MINUTE_MS
            opened.executemany(
                "INSERT OR REPLACE INTO pace VALUES (?, 1, ?, ?)",
                [
                    (
                        job_id,
                        (now_ms // MINUTE_MS - minutes + n) * MINUTE_MS,
                        job.done * sum(PACE[m % 4] for m in range(n)) / minutes,
                    )
                    for n in range(1, minutes)
                ],
            )
            opened.execute("UPDATE job SET moves = 900 WHERE id = ?", (job_id,))


READY = """() => {
  const main = document.querySelector("main");
  const pane = document.querySelector(".pane");
  const empty = pane && innerWidth >= 1280 && !pane.textContent;
  return main.childElementCount > 0 && !main.textContent.includes("Loading") && !empty
    && document.querySelector("h1").textContent !== "Connecting";
}"""


def ready(page: Page) -> bool:
    return bool(page.evaluate(READY))


def shoot(started: Browser, made: Ground, folder: Path, screens: dict[str, str]) -> None:
    for size in (PHONE, DESK):
        for theme in THEMES:
            visit = open_visit(started, made.server, size=size, theme=theme)
            for name, path in screens.items():
                visit.page.goto(made.server.url + path)
                wait_until(partial(ready, visit.page), timeout_s=5, what=f"{name} to be drawn")
                visit.page.evaluate("() => document.fonts.ready")
                taken = f"{name}-{size['width']}-{theme}"
                visit.page.screenshot(
                    path=folder / f"{taken}.png", full_page=taken not in FOR_README
                )
                if taken in FOR_README:
                    target = ROOT / "docs/images" / FOR_README[taken]
                    target.write_bytes((folder / f"{taken}.png").read_bytes())
            visit.expect("401")  # what the page learns before it asks for a token
            visit.check()
            visit.context.close()


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as there,
        browser() as started,
        ground(Path(there), source=TASKS) as made,
    ):
        ids = stage(made)
        screens = {
            "now": "",
            "job": f"jobs/{ids['running']}",
            "failed": f"jobs/{ids['failed']}",
            "log": f"jobs/{ids['running']}/log",
            "history": "history",
            "metrics": "metrics",
            "add": "add",
            "settings": "settings",
        }
        shoot(started, made, folder, screens)
        Tokens(made.queue.files).add("desk", "control", now_ms=made.queue.now_ms())
        shoot(started, made, folder, {"login": "login"})
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "screenshots")
