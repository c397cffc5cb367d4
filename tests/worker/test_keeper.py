"""The keeper, with supervisors that are killed for real."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers import python, said, wait_until
from tests.worker.lives import is_over, name, sleepers

from lineclear.worker import keeper, linux, processes
from lineclear.worker.keeper import Keeper, start_keeper

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")

SUPERVISOR = """
import os, select, sys, time
from lineclear.worker import keeper, linux, processes
worker, command = sys.argv[1], sys.argv[2:]
linux.set_subreaper()
watch = keeper.start_keeper(worker)
children = [processes.spawn(command, env=os.environ, mark=f"{worker}.{job}.1") for job in (1, 2)]
for child in children:
    select.select([child.stdout], [], [])
    print(watch.pid, child.pid, child.stdout.read(200).decode().strip(), flush=True)
time.sleep(1000)
"""


@pytest.fixture
def worker() -> Iterator[str]:
    """A worker id; whatever still carries it at the end is ended."""
    worker = uuid.uuid4().hex
    yield worker
    keeper.sweep(worker)


@pytest.fixture
def watch(worker: str) -> Iterator[Keeper]:
    watch = start_keeper(worker)
    yield watch
    watch.close()


def asleep(watch: Keeper) -> bool:
    """Whether it has come as far as its one read."""
    status = Path(f"/proc/{watch.pid}/status").read_text()
    ignored = int(re.findall(r"SigIgn:\s*(\w+)", status)[0], 16)
    return bool(ignored & 1 << (signal.SIGTERM - 1)) and "State:\tS" in status


def test_case_i2_a_killed_supervisor_leaves_nothing_behind(worker: str) -> None:
    with python(SUPERVISOR, worker, *sleepers()) as supervisor:
        numbers = [int(number) for _ in range(2) for number in said(supervisor).split()]
        tree = [name(pid) for pid in set(numbers)]
        assert len(tree) == 9, "a keeper, two children, three programs each"
        assert not any(map(is_over, tree))
        supervisor.kill()
        supervisor.wait()
        wait_until(lambda: all(map(is_over, tree)), what="the end of the tree and of the keeper")


def test_p10_the_keeper_ends_only_its_own_workers_processes(worker: str, watch: Keeper) -> None:
    other = uuid.uuid4().hex
    marks = {worker: True, f"{worker}.1.1": True, f"{other}.1.1": False, f"{worker}0.1.1": False}
    started = {
        mark: subprocess.Popen(["sleep", "1000"], env={**os.environ, keeper.MARK: mark})
        for mark in marks
    }
    try:
        wait_until(lambda: len(linux.marked(worker)) == 2, what="the marked ones")
        watch.close()
        for mark, ends in marks.items():
            assert is_over(name(started[mark].pid)) == ends, mark
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def test_p10_a_dead_keeper_is_noticed_at_once_and_replaced(worker: str, watch: Keeper) -> None:
    assert not processes.has_ended(watch.pidfd)
    os.kill(watch.pid, signal.SIGKILL)
    assert processes.has_ended(watch.pidfd, timeout_s=20)
    watch.close()
    watch.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(watch.pid, os.WNOHANG)
    second = start_keeper(worker)
    assert not is_over(name(second.pid))
    second.close()


def test_p10_the_keeper_stands_apart(worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keeper.MARK, f"{worker}.1.1")
    before = len(os.listdir("/proc/self/fd"))
    watch = start_keeper(worker)
    try:
        wait_until(lambda: asleep(watch), what="its sleep")
        assert linux.marked(worker) == []
        assert linux.session_of(watch.pid) == watch.pid
        assert sorted(os.listdir(f"/proc/{watch.pid}/fd")) == ["0", "1", "2"]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(watch.pid, number)
        assert not processes.has_ended(watch.pidfd, timeout_s=0.1)
    finally:
        watch.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_p10_the_pipe_stays_out_of_children(worker: str, watch: Keeper) -> None:
    child = processes.spawn(["sleep", "1000"], env=os.environ, mark=f"{uuid.uuid4().hex}.1.1")
    itself = name(watch.pid)
    try:
        watch.close(wait_s=20)
        assert is_over(itself), "a child that held the pipe would have kept it"
    finally:
        assert processes.kill_tree(child.pid, child.start, child.mark)
        child.reap()
        child.close()


def test_p10_the_keeper_does_nothing_and_needs_little_while_it_waits(watch: Keeper) -> None:
    wait_until(lambda: asleep(watch), what="its sleep")
    path = Path(f"/proc/{watch.pid}/status")

    def switches() -> list[str]:
        return re.findall(r"ctxt_switches:\s*(\d+)", path.read_text())

    before = switches()
    time.sleep(0.5)  # nothing is to happen in it
    assert switches() == before
    resident_kb = int(re.findall(r"VmRSS:\s*(\d+)", path.read_text())[0])
    assert resident_kb < 16_000


def test_p10_the_program_loads_nothing_heavy() -> None:
    code = f"""
import sys
path = {keeper.__file__!r}
exec(compile(open(path).read(), path, "exec"), {{"__name__": "keeper", "__file__": path}})
heavy = {{"re", "typing", "select", "subprocess", "pathlib", "dataclasses", "ctypes", "lineclear"}}
sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
