"""PROTOCOL 15, part by part, with real processes and real signals."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.helpers import python, said, tell, wait_until

from lineclear.bell import Room
from lineclear.bell.unix import UnixBell, UnixListener

LISTEN = """
import sys
from lineclear.bell.unix import UnixBell
listener = UnixBell(sys.argv[1]).listen(sys.argv[2])
held = listener.hold()
print("listening", held, flush=True)
while True:
    if listener.wait():
        print("rung", listener.again_s, flush=True)
"""

TAKE = """
import sys
from lineclear.bell.unix import UnixBell
rope = UnixBell(sys.argv[1]).take({"work"})
print("taken", flush=True)
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (path := tmp_path / "q.db").touch()
    return path


@contextmanager
def listening(database: Path, room: Room = "work") -> Iterator[UnixListener]:
    listener = UnixBell(database).listen(room)
    try:
        yield listener
    finally:
        listener.close()


def ring(database: Path, *rooms: Room) -> None:
    rope = UnixBell(database).take(rooms or ("work",))
    rope.after_commit()
    rope.let_go()


def sockets(database: Path) -> list[str]:
    return sorted(path.name for path in Path(f"{database}.d/bell").iterdir())


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_p15_rings_cross_processes(database: Path) -> None:
    with python(LISTEN, database, "work") as process:
        assert said(process) == "listening True"
        ring(database)
        assert said(process) == "rung None"


def test_p15_the_end_of_a_killed_ringer_rings(database: Path) -> None:
    with listening(database) as listener, python(TAKE + "input()", database) as ringer:
        assert said(ringer) == "taken"
        assert not listener.wait(0.02)
        ringer.kill()
        assert listener.wait(10)


def test_p15_3000_rings_to_a_stopped_listener_do_not_block(database: Path) -> None:
    with python(LISTEN, database, "work") as process:
        assert said(process) == "listening True"
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(process.pid), what="the listener to stop")
        for _ in range(3000):
            ring(database)
        process.send_signal(signal.SIGCONT)
        assert said(process) == "rung None"
        ring(database)
        assert said(process) == "rung None"


def test_p15_a_full_backlog_does_not_block_and_is_scanned_once_more(database: Path) -> None:
    with listening(database) as listener:
        bell = UnixBell(database)
        kept = [bell.take({"work"})]
        for _ in range(5000):
            ring(database)
        late = bell.take({"work"})  # no room for this one
        assert listener.drain()
        assert listener.again_s == 1.0
        late.after_commit()  # now there is room
        late.let_go()
        assert listener.wait(10)
        before = time.monotonic()
        assert listener.wait(10), "the second scan"
        assert time.monotonic() - before < 5
        assert not listener.wait(0.02)
        kept[0].drop()


def test_p15_a_dead_listener_s_socket_is_unlinked_a_living_one_s_is_not(database: Path) -> None:
    with (
        python(LISTEN, database, "work") as dead,
        python(LISTEN, database, "work") as living,
    ):
        assert said(dead) == "listening True"
        assert said(living).startswith("listening")
        assert len(sockets(database)) == 2
        dead.kill()
        dead.wait()
        assert said(living) == "rung 0.2"
        living.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(living.pid), what="the listener to stop")
        for _ in range(4200):  # also while its backlog is full
            ring(database)
        assert len(sockets(database)) == 1
        living.send_signal(signal.SIGCONT)
        assert said(living).startswith("rung")


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EACCES, errno.EPROTOTYPE, errno.ENOENT])
def test_p15_only_a_refusal_unlinks(
    database: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    class Answers(socket.socket):
        def connect_ex(self, address: object) -> int:
            return code

    with listening(database) as listener:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", Answers)
            ring(database)
        assert len(sockets(database)) == 1
        ring(database)
        assert listener.wait(10)


def test_p15_other_names_in_the_folder_are_left_alone(database: Path) -> None:
    with listening(database) as listener:
        folder = Path(f"{database}.d/bell")
        (folder / "work-notes.txt").touch()
        (folder / ".work-1.sock").touch()  # one who has not finished coming
        (folder / "other-1.sock").touch()
        ring(database)
        assert listener.wait(10)
        assert len(sockets(database)) == 4


def test_p15_deep_paths_use_the_same_folder(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a folder of some length"] * 12)
    deep.mkdir(parents=True)
    assert len(str(deep)) > 108 * 2
    with python(LISTEN, deep / "q.db", "work") as process:
        assert said(process) == "listening True"
        (tmp_path / "short").symlink_to(deep)
        ring(tmp_path / "short" / "q.db")
        assert said(process) == "rung None"
        assert sockets(deep / "q.db")[0].startswith("work-")


def test_p15_a_linked_database_has_the_bell_of_the_real_one(database: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(database)
    with listening(database) as listener:
        ring(tmp_path / "link.db")
        assert listener.wait(10)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o664])
def test_p15_sockets_take_the_mode_of_the_database(database: Path, mode: int) -> None:
    database.chmod(mode)
    before = os.umask(0o077)
    try:
        with listening(database):
            name = sockets(database)[0]
            path = Path(f"{database}.d/bell") / name
            assert stat.S_IMODE(path.stat().st_mode) == mode
            folder = 0o700 | mode | (mode & 0o444) >> 2
            assert stat.S_IMODE(path.parent.stat().st_mode) == folder
            assert stat.S_IMODE(path.parent.parent.stat().st_mode) == folder
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_p15_the_owner_of_the_database_can_ring_root_s_worker(database: Path) -> None:
    database.chmod(0o600)
    os.chown(database, 12345, 12345)
    with listening(database) as listener:
        path = Path(f"{database}.d/bell") / sockets(database)[0]
        for each in (path, path.parent, path.parent.parent):
            assert (each.stat().st_uid, each.stat().st_gid) == (12345, 12345)
        ring(database)
        assert listener.wait(10)


def test_p15_a_fork_of_the_ringer_does_not_delay_the_ring(database: Path) -> None:
    """The child lives on; the ring comes when its parent lets go, or is killed."""
    forks = TAKE + "import os, time\nif os.fork() == 0: time.sleep(60)\n"
    for end in ("input(); rope.let_go(); input()", "input()"):
        with listening(database) as listener, python(forks + end, database) as ringer:
            assert said(ringer) == "taken"
            children = Path(f"/proc/{ringer.pid}/task/{ringer.pid}/children")
            child = int(wait_until(children.read_text, what="the fork"))
            try:
                wait_until(partial(holds_nothing, child), what="the child to close its copy")
                assert not listener.wait(0.02)
                if end.startswith("input(); "):
                    tell(ringer)
                else:
                    ringer.kill()
                assert listener.wait(10)
                os.kill(child, 0)
            finally:
                os.kill(child, signal.SIGKILL)


def holds_nothing(pid: int) -> bool:
    """No socket is open in that process."""
    return not any(
        os.readlink(entry).startswith("socket:") for entry in Path(f"/proc/{pid}/fd").iterdir()
    )


def test_p15_letting_go_rings_although_a_copy_is_open(database: Path) -> None:
    """As when the fork happened in native code, which runs no handlers of Python's."""
    with listening(database) as listener:
        rope = UnixBell(database).take({"work"})
        copies = [os.dup(end.fileno()) for end in rope._ends.values()]
        rope.let_go()
        assert listener.wait(10)
        for copy in copies:
            os.close(copy)


def test_p15_a_fork_of_the_listener_holds_nothing_and_can_ring_it(database: Path) -> None:
    bell = UnixBell(database)
    listener = bell.listen("work")
    before = len(sockets(database))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            rope = bell.take({"work"})  # the very bell object, but another process now
            rope.let_go()
            listener.close()  # must take nothing away from the parent
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert listener.wait(10)
    assert len(sockets(database)) == before
    ring(database)
    assert listener.wait(10)
    listener.close()


def test_p15_nothing_survives_an_exec(database: Path) -> None:
    with listening(database) as listener:
        listener.hold()
        rope = UnixBell(database).take({"work"})
        listener.drain()
        held = subprocess.check_output(["ls", "-l", "/proc/self/fd"], close_fds=False, text=True)
        mine = [os.readlink(f"/proc/self/fd/{end.fileno()}") for end in rope._ends.values()]
        mine.append(os.readlink(f"/proc/self/fd/{listener._door.fileno()}"))
        assert all(name not in held for name in mine)
        assert "eventpoll" not in held
        rope.let_go()


def test_p15_the_death_of_a_worker_wakes_those_that_came_before_and_after(database: Path) -> None:
    for die_first in (True, False):
        with (
            python(LISTEN, database, "work") as early,
            python(LISTEN, database, "work") as late,
        ):
            assert said(early) == "listening True"
            assert said(late).startswith("listening")
            dies, lives = (early, late) if die_first else (late, early)
            dies.kill()
            assert said(lives) == "rung 0.2"


def test_p15_a_life_rope_is_no_ring_until_it_ends(database: Path) -> None:
    with listening(database) as listener, python(LISTEN, database, "work") as other:
        assert said(other) == "listening True"
        assert not listener.wait(0.05)
        assert listener.hold(), "nobody is left out"
        assert listener.hold(), "and nobody is tied twice"
        ring(database)
        assert listener.wait(10)
        assert listener.again_s is None
        assert said(other) == "rung None"
        other.kill()
        assert listener.wait(10)
        assert listener.again_s == 0.2, "its lock may be freed a moment after its sockets"
        wakes = 1
        while listener.wait(0.5):
            wakes += 1
        assert wakes in {2, 3}, "the second scan; its two ropes may also end one by one"


def test_p15_the_end_of_a_listener_that_never_answered_is_heard_too(database: Path) -> None:
    with python(LISTEN, database, "work") as deaf, listening(database) as listener:
        assert said(deaf) == "listening True"
        deaf.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(deaf.pid), what="the other to stop")
        assert listener.hold()
        assert not listener.wait(0.02)
        deaf.kill()
        assert listener.wait(10)


def test_p15_no_descriptors_left_does_not_spin_and_loses_nothing(database: Path) -> None:
    with listening(database) as listener:
        bell = UnixBell(database)
        rope = bell.take({"work"})
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(0)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
        try:
            assert listener.wait(10), "it cannot be known who rang"
            assert listener.again_s == 1.0
            assert not listener.wait(0.05), "the door is quiet until then"
            assert listener.wait(10), "the second scan"
            poor = bell.take({"work"})  # the ringer has none either
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        listener.drain()
        assert not listener.wait(0.02) or listener.again_s is None
        listener._again_at = None
        rope.drop()
        assert not listener.wait(0.05)
        poor.let_go()
        assert listener.wait(10)


def test_p15_a_ring_that_cannot_be_rung_is_said(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with listening(database):
        spare = os.dup(0)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
        try:
            ring(database)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "could not be rung" in caplog.text


def test_p15_thousands_of_waiting_rings_need_few_descriptors(database: Path) -> None:
    with listening(database) as listener:
        for _ in range(2000):
            ring(database)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            assert listener.drain()
            assert listener.again_s is None
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_p15_a_listener_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "q.db.d").touch()
    with pytest.raises(NotADirectoryError):
        UnixBell(tmp_path / "q.db").listen("work")
    gc.collect()  # an open socket would be a warning here, and warnings are errors
    ring(tmp_path / "q.db")


def test_p15_e19_an_idle_listener_makes_no_system_call(database: Path) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    with python(LISTEN, database, "work") as process, python(LISTEN, database, "work") as other:
        assert said(process) == "listening True"
        assert said(other).startswith("listening")  # tied to the first, which must not matter
        trace = database.with_name("trace")
        strace = subprocess.Popen(
            ["strace", "-f", "-o", str(trace), "-p", str(process.pid)],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert strace.stderr
            if "attached" not in (line := strace.stderr.readline()):
                pytest.skip(f"this machine does not let strace in: {line}")
            ring(database)
            assert said(process) == "rung None"
            # Its last call is written down before the process is let go into it.
            wait_until(
                lambda: waits(trace) and "S (" in status(process.pid, "State"),
                what="the listener to wait",
            )
            before = trace.read_text()
            switches = status(process.pid, "voluntary")
            with pytest.raises(subprocess.TimeoutExpired):
                strace.wait(2)
            assert trace.read_text() == before
            assert status(process.pid, "voluntary") == switches
            ring(database)
            assert said(process) == "rung None"
        finally:
            strace.terminate()
            strace.communicate()


def status(pid: int, field: str) -> str:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(row for row in rows if row.startswith(field))


def waits(trace: Path) -> bool:
    """The last call began and has not returned."""
    last = trace.read_text().rpartition("\n")[2]
    return "epoll_wait(" in last and "=" not in last
