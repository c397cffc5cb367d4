"""What the benchmarks share: a fresh folder with tasks, and a real worker on it."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lineclear import Queue

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
