"""What tests of several folders share: waiting for a condition, and real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SOURCES = Path(__file__).parents[1] / "src"


def wait_until(condition: Callable[[], T | None], *, timeout_s: float = 10, what: str = "") -> T:
    """The first true answer of ``condition``. The only place where a test sleeps."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what or condition}")
        time.sleep(0.005)
    return answer


@contextmanager
def python(
    code: str, *args: object, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A real Python process running ``code``, with ``args`` in ``sys.argv[1:]`` and pipes for
    stdin and stdout (text, by line). Killed and reaped at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **(env or {})},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(BrokenPipeError):  # unsent lines to a process that is gone
                    pipe.close()


def said(process: subprocess.Popen[str]) -> str:
    """The next line the process printed; empty at its end."""
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


def tell(process: subprocess.Popen[str], line: str = "") -> None:
    """Send a line to the process's stdin."""
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
