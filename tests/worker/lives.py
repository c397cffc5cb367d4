"""What the tests of processes share: is it over, and trees of processes that are hard to end."""

from __future__ import annotations

import sys

from lineclear.worker import linux

Name = tuple[int, int]

SLEEPERS = r"""
import os, subprocess
plain = subprocess.Popen(["sleep", "1000"])
apart = subprocess.Popen(["sleep", "1000"], start_new_session=True)
forked = subprocess.run(["setsid", "sh", "-c", "sleep 1000 >&- 2>&- & echo $!"],
                        stdout=subprocess.PIPE, check=True)
os.write(1, b"%d %d %d\n" % (plain.pid, apart.pid, int(forked.stdout)))
plain.wait()
"""
"""A task's process with three programs: a plain one, one in its own session, one forked twice."""


def sleepers() -> list[str]:
    return [sys.executable, "-c", SLEEPERS]


def name(pid: int) -> Name:
    found = linux.identity(pid)
    assert found is not None, f"process {pid} is not there"
    return found


def is_over(process: Name) -> bool:
    """Whether that very process runs no more."""
    seen = linux.look(process[0])
    return seen is None or seen.identity != process or seen.gone
