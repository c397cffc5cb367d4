"""The questions to /proc and the settings of a process, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.helpers import wait_until
from tests.worker.lives import is_over, name

from lineclear.worker import linux

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that are killed and reaped at the end of the test."""
    with ExitStack() as undo:

        def begin(*command: str, **kwargs: object) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(command, start_new_session=True, **kwargs)  # type: ignore[call-overload]
            undo.callback(process.wait)
            undo.callback(os.killpg, process.pid, signal.SIGKILL)
            return process  # type: ignore[no-any-return]

        yield begin


def python(code: str) -> tuple[str, str, str]:
    return sys.executable, "-c", code


def test_a_process_is_named_by_pid_and_start_whatever_it_is_called(
    start: Start, tmp_path: Path
) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    process = start(str(odd), "1000")
    wait_until(lambda: b"a) R" in Path(f"/proc/{process.pid}/stat").read_bytes(), what="exec")
    seen = linux.look(process.pid)
    assert seen is not None
    assert (seen.parent, seen.group, seen.session) == (os.getpid(), process.pid, process.pid)
    assert linux.identity(process.pid) == (process.pid, linux.start_time(process.pid))
    assert linux.session_of(process.pid) == os.getsid(process.pid)
    assert seen.start >= (linux.start_time(os.getpid()) or 0) > 0
    assert not seen.gone


def test_a_zombie_is_gone_and_what_is_not_there_is_nothing(start: Start) -> None:
    process = subprocess.Popen(["true"])
    pid = process.pid
    wait_until(lambda: (seen := linux.look(pid)) is not None and seen.gone, what="the zombie")
    process.wait()
    assert linux.look(pid) is None
    assert linux.identity(pid) is None


def test_a_mark_matches_whole_parts_only(start: Start) -> None:
    worker = uuid.uuid4().hex
    marks = (f"{worker}.1.2", f"{worker}.1.23", f"{worker}.12.3")
    pids = [
        start("sleep", "1000", env={**os.environ, "LINECLEAR_RUN": mark, "A": "b"}).pid
        for mark in marks
    ]
    start("sleep", "1000", env={**os.environ, "X": f"LINECLEAR_RUN={marks[0]}"})
    wait_until(lambda: len(linux.marked(worker)) == 3, what="three marked processes")
    assert sorted(linux.marked(worker)) == sorted(pids)
    assert linux.marked(f"{worker}.1.2") == pids[:1]
    assert sorted(linux.marked(f"{worker}.1")) == sorted(pids[:2])
    assert linux.marked(f"{worker}.12") == pids[2:]
    assert linux.marked(worker[:-1]) == []


def test_descendants_are_found_over_sessions(start: Start) -> None:
    process = start("sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1000 & wait' & sleep 1000; wait")
    wait_until(lambda: len(linux.descendants(process.pid)) == 4, what="four descendants")
    others = [pid for pid in linux.descendants(process.pid) if os.getsid(pid) != process.pid]
    assert len(others) == 3
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    assert process.pid in linux.children()
    assert process.pid in linux.descendants(os.getpid())


def test_the_memory_limit_is_an_error_in_the_task(start: Start) -> None:
    code = """
from lineclear.worker.linux import limit_memory
limit_memory(150)
bytearray(20 << 20)
try:
    bytearray(300 << 20)
except MemoryError:
    raise SystemExit(7)
"""
    assert subprocess.run(python(code), check=False).returncode == 7


def test_the_oom_score_is_raised_and_never_lowered(start: Start) -> None:
    process = start("sleep", "1000")
    path = Path(f"/proc/{process.pid}/oom_score_adj")
    assert linux.raise_oom_score(process.pid, score=600)
    assert path.read_text().strip() == "600"
    assert linux.raise_oom_score(process.pid, score=100)
    assert path.read_text().strip() == "600"
    assert linux.oom_kills() >= 0


def test_p22_a_parent_death_signal_ends_the_child_of_a_killed_parent(start: Start) -> None:
    child = """
import os, signal, time
from lineclear.worker.linux import set_parent_death_signal
assert set_parent_death_signal(signal.SIGKILL)
print(os.getpid(), flush=True)
time.sleep(1000)
"""
    parent = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {child!r}])
"""
    process = start(*python(parent), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as said:
        pid = int(said.readline())
    child_name = name(pid)
    process.kill()
    wait_until(lambda: is_over(child_name), what="its end")


def test_p22_a_subreaper_is_given_orphans() -> None:
    code = """
import os, subprocess
from lineclear.worker import linux
assert linux.set_subreaper()
pid = int(subprocess.run(["sh", "-c", "sleep 1000 >/dev/null & echo $!"],
                         stdout=subprocess.PIPE).stdout)
assert linux.look(pid).parent == os.getpid()
assert linux.children() == [pid]
os.kill(pid, 9)
os.waitid(os.P_PID, pid, os.WEXITED)
assert linux.children() == []
"""
    assert subprocess.run(python(code), check=False).returncode == 0
