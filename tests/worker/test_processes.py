"""Starting, ending and reaping real processes."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers import wait_until
from tests.worker.lives import is_over, name, sleepers

from lineclear.worker import linux, processes
from lineclear.worker.processes import Exit, NotStarted, Spawned, kill_tree, spawn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")

Start = Callable[..., Spawned]


def random_mark() -> str:
    """Another one each time: tests that run at once must not end each other's processes."""
    return f"{uuid.uuid4().hex}.1.1"


@pytest.fixture
def start() -> Iterator[Start]:
    """``spawn`` with a random mark; what it started is ended at the end of the test."""
    started: list[Spawned] = []

    def begin(*command: str, mark: str = "", **kwargs: object) -> Spawned:
        mark = mark or random_mark()
        started.append(spawn(command, env=os.environ, mark=mark, **kwargs))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for each in started:
        assert kill_tree(each.pid, each.start, each.mark)
        each.reap()
        each.close()


def line_of(spawned: Spawned) -> bytes:
    """The next line it prints."""
    said = b""
    while not said.endswith(b"\n"):
        assert select.select([spawned.stdout], [], [], 20)[0], "it says nothing"
        block = spawned.stdout.read(1)
        assert block, "it has closed its output"
        said += block
    return said


def ended(spawned: Spawned) -> Exit:
    assert processes.has_ended(spawned.pidfd, timeout_s=20)
    found = spawned.reap()
    assert found is not None
    return found


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_p22_a_child_has_its_own_session_its_socket_and_its_mark(start: Start) -> None:
    code = """
import os, socket, sys
link = socket.socket(fileno=int(sys.argv[1]))
assert link.recv(10) == b"run"
print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()), os.environ["LINECLEAR_RUN"],
      sorted(int(n) for n in os.listdir("/proc/self/fd"))[:4], flush=True)
link.send(b"ended")
"""
    before, mark = open_descriptors(), random_mark()
    child = start(sys.executable, "-c", code, processes.FD, mark=mark, nice=3)
    assert open_descriptors() == before + 4
    assert child.notes == ()
    assert name(child.pid) == (child.pid, child.start)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == 3 + os.getpriority(os.PRIO_PROCESS, 0)
    assert Path(f"/proc/{child.pid}/oom_score_adj").read_text().strip() == "500"
    assert child.reap() is None
    child.socket.send(b"run")
    said = line_of(child).split()
    assert said[:3] == [b"True", b"''", mark.encode()]
    assert ended(child) == Exit(code=0)
    assert child.socket.recv(10) == b"ended"
    assert child.socket.recv(10) == b""
    child.close()
    child.close()
    assert open_descriptors() == before


def test_p22_exit_codes_and_signals_are_told_once_and_for_all(start: Start) -> None:
    failed, killed = start("sh", "-c", "exit 3"), start("sleep", "1000")
    assert ended(failed) == Exit(code=3)
    assert failed.reap() == Exit(code=3)
    os.kill(killed.pid, signal.SIGKILL)
    assert ended(killed) == Exit(signal=9)
    assert killed.reap() == Exit(signal=9)


def test_p22_an_exit_status_that_another_took_is_unknown(start: Start) -> None:
    child = start("true")
    os.waitpid(child.pid, 0)
    assert child.reap() == Exit()


def test_p22_spawning_is_for_the_main_thread() -> None:
    seen: list[BaseException] = []

    def begin() -> None:
        with pytest.raises(AssertionError) as refused:
            spawn(["true"], env={}, mark=random_mark())
        seen.append(refused.value)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert len(seen) == 1


def test_p22_reaping_does_not_wait_for_a_grandchild_that_holds_the_pipes(start: Start) -> None:
    child = start("sh", "-c", "setsid sleep 1000 & exit 5")
    assert ended(child) == Exit(code=5)
    assert child.stdout.read(10) is None  # still open, and nobody waited for it


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["/no/such/program"], "No such file or directory: /no/such/program"),
        (["/etc"], "Permission denied: /etc"),
        (["true", "nul\0"], "embedded null byte"),
    ],
)
def test_what_cannot_be_started_says_why_and_leaves_nothing(
    command: list[str], sentence: str
) -> None:
    before, children = open_descriptors(), linux.children()
    with pytest.raises(NotStarted, match=f"^The process could not be started: {sentence}$"):
        spawn(command, env={}, mark=random_mark())
    assert open_descriptors() == before
    assert linux.children() == children


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=r"No such file or directory: .*/gone$"):
        spawn(["true"], env={}, mark=random_mark(), cwd=tmp_path / "gone")


def test_a_process_that_cannot_be_held_on_to_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    before, children = open_descriptors(), linux.children()

    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(NotStarted):
        spawn(["sleep", "1000"], env={}, mark=random_mark())
    assert open_descriptors() == before
    assert linux.children() == children


def test_each_place_where_descriptors_run_out_leaves_nothing() -> None:
    before, children = open_descriptors(), linux.children()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(number) for number in os.listdir("/proc/self/fd"))
    holes = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest + 1 - before)]
    refused: list[str] = []
    try:
        for spare in range(30):
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2 + spare, hard))
            try:
                child = spawn(["true"], env={}, mark=random_mark())
            except NotStarted as error:
                refused.append(str(error))
            else:
                assert ended(child) == Exit(code=0)
                child.close()
                break
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in holes:
            os.close(each)
    assert len(refused) > 5, "the limit was never met"
    assert all(os.strerror(errno.EMFILE) in sentence for sentence in refused)
    assert open_descriptors() == before
    assert linux.children() == children


def test_case_i2_the_whole_tree_of_a_killed_child_is_ended(start: Start) -> None:
    child = start(*sleepers())
    tree = [name(int(pid)) for pid in line_of(child).split()]
    assert not any(map(is_over, tree))
    os.kill(child.pid, signal.SIGKILL)
    assert processes.has_ended(child.pidfd, timeout_s=20)
    assert kill_tree(child.pid, child.start, child.mark)
    assert all(map(is_over, tree))
    assert child.reap() == Exit(signal=9)


def test_case_i2_the_whole_tree_of_a_running_child_is_ended(start: Start) -> None:
    child, other = start(*sleepers()), start(*sleepers())
    tree = [name(child.pid), *(name(int(pid)) for pid in line_of(child).split())]
    others = [name(other.pid), *(name(int(pid)) for pid in line_of(other).split())]
    assert kill_tree(child.pid, child.start, child.mark)
    assert all(map(is_over, tree))
    assert not any(map(is_over, others))
    assert child.reap() == Exit(signal=9)
    assert child.mark != other.mark


def test_case_i2_a_program_with_an_empty_environment_is_ended_while_it_can_be_told(
    start: Start,
) -> None:
    code = "env -i sleep 1000 & setsid env -i sleep 1000 & echo; wait"
    child = start("sh", "-c", code)
    line_of(child)
    wait_until(lambda: len(linux.descendants(child.pid)) == 2, what="two programs")
    tree = [name(pid) for pid in linux.descendants(child.pid)]
    assert kill_tree(child.pid, child.start, child.mark)
    assert all(map(is_over, tree))


def test_case_i2_a_program_left_in_the_session_of_an_ended_child_is_ended(start: Start) -> None:
    child = start("sh", "-c", "env -i sleep 1000 & echo $!")
    left = name(int(line_of(child)))
    assert processes.has_ended(child.pidfd, timeout_s=20)
    program = Path(f"/proc/{left[0]}/cmdline")
    wait_until(lambda: program.read_bytes().startswith(b"sleep"), what="exec")
    assert kill_tree(child.pid, child.start, child.mark)
    assert is_over(left)
    assert child.reap() == Exit(code=0)


def test_case_i3_a_process_of_another_start_time_is_never_signalled(start: Start) -> None:
    child = start("sh", "-c", "sleep 1000 & echo; wait")
    line_of(child)
    tree = [name(child.pid), *map(name, linux.descendants(child.pid))]
    unknown = random_mark()
    for wrong in (child.start - 1, child.start + 1, 0):
        assert kill_tree(child.pid, wrong, unknown)
        assert not processes.terminate_group(child.pid, wrong)
        assert not processes.terminate_group(child.pid, wrong, signal.SIGKILL)
    assert len(tree) == 2
    assert not any(map(is_over, tree))


def test_case_i3_a_pid_that_passed_to_another_since_the_look_is_not_signalled(
    start: Start,
) -> None:
    child = start("sleep", "1000")
    seen = linux.look(child.pid)
    assert seen is not None
    processes._end([replace(seen, start=seen.start + 1)], until=time.monotonic())
    assert not processes.has_ended(child.pidfd, timeout_s=0.1)
    processes._end([seen], until=time.monotonic() + 20)
    assert ended(child) == Exit(signal=9)


def test_case_i3_of_a_recorded_process_that_is_gone_only_marked_ones_are_ended(
    start: Start,
) -> None:
    marked = start("sleep", "1000", mark=random_mark())
    gone = start("true")
    ended(gone)
    assert kill_tree(gone.pid, gone.start, gone.mark)
    assert not is_over(name(marked.pid))
    assert kill_tree(gone.pid, marked.start, marked.mark)
    assert is_over((marked.pid, marked.start))


def test_case_i7_term_reaches_the_group_and_kill_ends_what_ignores_it(start: Start) -> None:
    child = start("sh", "-c", "trap '' TERM; echo; sleep 1000 | sleep 1000")
    line_of(child)
    wait_until(lambda: len(linux.descendants(child.pid)) == 2, what="the pipeline")
    tree = [name(child.pid), *map(name, linux.descendants(child.pid))]
    assert processes.terminate_group(child.pid, child.start)
    assert not processes.has_ended(child.pidfd, timeout_s=0.2)
    assert not any(map(is_over, tree)), "an ignored signal is inherited"
    assert kill_tree(child.pid, child.start, child.mark)
    assert all(map(is_over, tree))
    assert child.reap() == Exit(signal=9)


def test_case_i7_term_ends_a_group_that_heeds_it(start: Start) -> None:
    child = start("sh", "-c", "echo; sleep 1000 | sleep 1000")
    line_of(child)
    wait_until(lambda: len(linux.descendants(child.pid)) == 2, what="the pipeline")
    tree = [name(child.pid), *map(name, linux.descendants(child.pid))]
    assert processes.terminate_group(child.pid, child.start)
    wait_until(lambda: all(map(is_over, tree)), what="the end of the group")
    assert ended(child) == Exit(signal=signal.SIGTERM)


def test_a_tree_of_hundreds_is_ended(start: Start) -> None:
    code = "i=0; while [ $i -lt 150 ]; do setsid sleep 1000 & i=$((i+1)); done; echo; wait"
    child = start("sh", "-c", code)
    line_of(child)
    before = time.monotonic()
    assert kill_tree(child.pid, child.start, child.mark, timeout_s=20)
    assert linux.marked(child.mark) == []
    assert time.monotonic() - before < 15


ORPHANS = """
import os, sys
from lineclear.worker import linux, processes
assert linux.set_subreaper()
jobs, worker = int(sys.argv[1]), sys.argv[2]
own, zombies, reaped = {}, [], 0
# Reaped last: until then it hides the others.
first = processes.spawn(["true"], env=os.environ, mark=f"{worker}.0.1")
assert processes.has_ended(first.pidfd, timeout_s=20)
own[first.pid] = first
for number in range(jobs):
    code = f"(true &) ; (sleep 0.01 &) ; exit {number % 100}"
    child = processes.spawn(["sh", "-c", code], env=os.environ, mark=f"{worker}.{number}.1")
    own[child.pid] = child
    assert processes.has_ended(child.pidfd, timeout_s=20)
    reaped += processes.reap_orphans(own)
    seen = child.reap()
    assert seen == processes.Exit(code=number % 100), (number, seen)
    child.close()
    del own[child.pid]
    zombies.append(len(linux.children()))
while len(linux.children()) > 1:
    reaped += processes.reap_orphans(own)
assert first.reap() == processes.Exit(code=0)
first.close()
assert linux.children() == []
print(reaped, max(zombies))
"""


def test_case_i6_orphans_do_not_pile_up_and_no_exit_status_is_stolen() -> None:
    command = [sys.executable, "-c", ORPHANS, "300", uuid.uuid4().hex]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    reaped, most = map(int, done.stdout.split())
    assert reaped == 600
    assert most < 60, "orphans that still sleep, and few zombies"


def test_p22_without_children_there_is_nothing_to_reap() -> None:
    code = "from lineclear.worker.processes import reap_orphans; assert reap_orphans(()) == 0"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_p22_ending_a_tree_reaps_the_orphans_it_leaves() -> None:
    code = f"""
import os, select, sys
from lineclear.worker import linux, processes
linux.set_subreaper()
child = processes.spawn({sleepers()!r}, env=os.environ, mark="{random_mark()}")
assert select.select([child.stdout], [], [], 20)[0]
assert processes.kill_tree(child.pid, child.start, child.mark)
assert linux.children() == [child.pid], linux.children()
assert child.reap() == processes.Exit(signal=9)
child.close()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
