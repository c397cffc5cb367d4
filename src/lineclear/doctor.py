"""Whether this installation can do its work: each check is a verdict and what to do about it.

Called by ``lineclear doctor``. It looks at the database only through the queue (SQLite), never
opens the file itself, and changes nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lineclear.errors import StoreError
from lineclear.figures import MINUTE_MS, count, duration, size
from lineclear.files import kind_of, network_file_system
from lineclear.queue import Queue
from lineclear.terms import BIG_LOG, LOG_HINT, LOW_DISK
from lineclear.words import unserved

SLOW_IMPORT_S = 0.5
FULL_DISK = 100_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    verdict: Literal["ok", "warn", "bad"]
    sentence: str


def examine(queue: Queue, *, app: str | None) -> list[Finding]:
    """Every check, in the order in which one would look for a fault."""
    checks: list[Callable[[Queue], Iterator[Finding]]] = [_folder, _disk, _sqlite]
    findings = [found for check in checks for found in check(queue)]
    if app is not None:
        findings += _import_of(app)
    try:
        for check in (_database, _workers, _clock):
            findings += check(queue)
    except StoreError as error:
        findings.append(Finding("bad", str(error)))
    return findings


def _folder(queue: Queue) -> Iterator[Finding]:
    folder = queue.database.parent
    if not folder.is_dir():
        yield Finding("bad", f"The folder {folder} is not there. Make it, or say --database.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield Finding("bad", f"The folder {folder} cannot be written to. Give this user the right.")
    elif kind := network_file_system(folder):
        yield Finding("bad", f"{folder} is on a network drive ({kind}). Use a local disk.")
    else:
        kind = _file_system(folder) or "its file system is unknown"
        yield Finding("ok", f"The folder {folder} can be written to ({kind}).")


def _file_system(folder: Path) -> str:
    try:
        return kind_of(Path("/proc/self/mounts").read_text("utf-8", "replace"), folder)
    except OSError:
        return ""


def _disk(queue: Queue) -> Iterator[Finding]:
    folder = queue.database.parent
    if folder.is_dir():
        free = shutil.disk_usage(folder).free
        verdict: Literal["ok", "warn", "bad"] = "bad" if free < FULL_DISK else "warn"
        low = free < LOW_DISK
        more = " Jobs may fail: make room." if low else ""
        yield Finding(verdict if low else "ok", f"{size(free)} free on its disk.{more}")


def _sqlite(_: Queue) -> Iterator[Finding]:
    yield Finding("ok", f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}.")


def _import_of(app: str) -> Iterator[Finding]:
    """Measured in a fresh process, as every child pays for it."""
    code = (
        "import sys, time; begin = time.perf_counter()\n"
        "from lineclear.tasks import load_app; load_app(sys.argv[1])\n"
        "sys.stderr.write(f'\\n{time.perf_counter() - begin}')"
    )
    begun = [sys.executable, "-c", code, app]
    try:
        done = subprocess.run(begun, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        yield Finding("bad", f"Importing {app} takes over a minute. Import only what registers.")
        return
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode:
        yield Finding("bad", f"{app} cannot be loaded: {last}")
        return
    took = float(last)
    hint = ": move heavy imports into the task" if took > SLOW_IMPORT_S else ""
    yield Finding("warn" if hint else "ok", f"Importing {app} took {took:.1f} s{hint}.")


def _database(queue: Queue) -> Iterator[Finding]:
    faults = queue.check()
    for fault in faults:
        yield Finding("bad", f"The database is damaged: {fault}. Keep a copy before anything else.")
    if not faults:
        yield Finding("ok", f"The database {queue.database} is sound.")
    log = queue.wal_bytes()
    if log > BIG_LOG:
        yield Finding("warn", f"Its write-ahead log has {size(log)}: {LOG_HINT}.")
    else:
        yield Finding("ok", f"Its write-ahead log has {size(log)}.")


def _workers(queue: Queue) -> Iterator[Finding]:
    now_ms = queue.now_ms()
    alive = [each for each in queue.workers() if each.alive is not False]
    for worker in alive:
        served = "every lane" if "*" in worker.lanes else f"lanes {', '.join(worker.lanes)}"
        since = duration(now_ms - worker.started_ms)
        yield Finding("ok", f"Worker {worker.pid} on {worker.host} serves {served}, since {since}.")
    for job in queue.running():
        if job.worker_alive is None:
            told = f"The lock of job {job.id}'s worker is missing, so nothing shows if it runs."
            yield Finding("warn", f"{told} If it is gone, free its slot: lineclear kill {job.id}")
    lanes = queue.lanes()
    for lane in lanes:
        if not lane.workers:
            waits = f" {count(lane.waiting, 'job')} waiting." if lane.waiting else ""
            do = f" Start one: lineclear worker --lane {lane.name}"
            told = f"{unserved(lane, now_ms=now_ms)}{waits}{do}"
            yield Finding("bad" if lane.waiting else "warn", told)
    if not lanes and not alive:
        yield Finding("warn", "No worker runs. Start one: lineclear worker")


def _clock(queue: Queue) -> Iterator[Finding]:
    newest = max((job.submitted_ms for job in queue.jobs(limit=1, hidden=True)), default=0)
    ahead = newest - queue.now_ms()
    if ahead > MINUTE_MS:
        yield Finding("warn", f"The clock was set back {duration(ahead)}: times shown may be odd.")
    elif time.time() < 1_600_000_000:
        yield Finding("warn", "The clock says a year before 2021. Set it: due jobs wait for it.")
    else:
        yield Finding("ok", "The clock runs forward.")
