"""What runs beside the demo: a worker, and the page at which its jobs are watched.

Started by ``bedside.demo`` and ended by it in order. The page ends even with a demo that is killed;
a worker then goes on, and the next demo finds it. Neither gets Ctrl-C, which is for the demo.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from lineclear import Queue

_APP = "bedside.jobs:queue"
_GRACE_S = 30.0
_PORTS = range(8765, 8785)
_ENDS_WITH_US = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Page:
    """The page's server, and its address: empty where it did not start."""

    process: subprocess.Popen[bytes]
    address: str


def lineclear(queue: Queue, *words: str) -> list[str]:
    """Arguments of Python for one command of the engine on this queue."""
    return ["-m", "lineclear", "--database", str(queue.database), *words]


@contextmanager
def served(folder: Path, queue: Queue) -> Iterator[Page]:
    """The page on the first free port from 8765 on, ended with the block."""
    bind = f"127.0.0.1:{_free_port()}"
    with (folder / "page.log").open("ab") as log:
        process = _start(
            ["-c", _ENDS_WITH_US, *lineclear(queue, "--app", _APP, "serve", "--bind", bind)],
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout
        said = process.stdout.readline().decode()
        found = re.search(r"http://\S+", said)
        yield Page(process, found[0] if found else "")
    finally:
        _end(process)
        assert process.stdout
        process.stdout.close()


def _free_port() -> int:
    for port in _PORTS:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    return 0


@contextmanager
def working(folder: Path, queue: Queue) -> Iterator[subprocess.Popen[bytes] | None]:
    """A worker on the demo's database, stopped in order at the end; ``None`` where one of before
    still lives.
    """
    if any(each.alive for each in queue.workers()):
        try:
            yield None
        finally:
            _stop_workers(queue)
        return
    with (folder / "worker.log").open("ab") as log:
        worker = _start(lineclear(queue, "worker"), stdout=log, stderr=log)
    try:
        yield worker
    finally:
        _end(worker)


def _start(
    arguments: Sequence[str], *, stdout: IO[bytes] | int, stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stop_workers(queue: Queue) -> None:
    for each in queue.workers():
        if each.alive:
            try:
                os.kill(each.pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
