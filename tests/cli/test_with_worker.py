"""The verbs on what runs: a real worker, real signals, a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.cli.conftest import PROGRAM, Place
from tests.helpers import wait_until

from lineclear.job import Job, State

SLOW: dict[str, Any] = {"pages": 10_000, "pause_s": 0.02}


def running(place: Place, job_id: int, *, steps: int = 0) -> Job:
    """The job once it runs and has finished so many steps."""

    def look() -> Job | None:
        job = place.queue.get(job_id)
        ready = job.state is State.RUNNING and len(place.queue.steps(job_id)) >= steps
        return job if ready else None

    return wait_until(look, timeout_s=30, what=f"job {job_id} running")


def test_add_wait_log_and_show(place: Place) -> None:
    with place.worker():
        said = place.run("add", "render", "book=1", "--wait")
        assert (said.code, said.out) == (0, "Added 1, 1st\n")
        assert place.call("log", 1).out == "page 0\npage 1\n"
        assert place.call("show", 1).out.splitlines()[1].startswith("Done · ")
        failed = place.run("add", "fail", "--wait")
        assert failed.code == 1
        assert "Failed: 2 fail (" in failed.err and "voice file missing" in failed.err
        assert "RuntimeError: voice file missing" in place.call("log", 2).out
        assert place.call("wait", 1, 2).code == 1
        assert place.call("wait", 1).code == 0
        assert place.call("wait", "--for", "idle").code == 0
        assert place.call("status", "--check").code == 1
        (line,) = place.call("wait", 2, "--jsonl").out.splitlines()
        assert json.loads(line)["state"] == "failed"
        assert place.call("wait", "--all").code == 4


def test_stop_asks_waits_and_says_what_was_kept(place: Place) -> None:
    with place.worker():
        job_id = place.add(book=1, **SLOW)
        running(place, job_id, steps=3)
        assert place.call("stop", job_id).code == 2
        assert place.queue.get(job_id).wish is None
        said = place.call("stop", "running", "-y", "--reason", "too loud")
        assert (said.code, said.out) == (0, "Stopping 1 Render 1.\n")
        assert said.err == "Stopped: 1 Render 1.\n"
        shown = place.call("show", job_id).out
        kept = sum(step.weight for step in place.queue.steps(int(job_id)))
        assert re.search(r"\d\d:\d\d finished \d+, after \d+ more steps?\n", shown)
        assert re.search(rf"Stopped · by you \d\d:\d\d at 0 %, kept {kept:.0f} pages", shown)
        assert "asked to stop by you (too loud)" in shown
        assert place.call("stop", job_id, "-y").code == 0


def test_a_job_that_does_not_answer_is_not_stopped_by_itself(place: Place) -> None:
    """After the grace: code 5 and the hint. ``stop --now`` then ends it (H3, C7)."""
    with place.worker():
        job_id = place.add(book=1, pages=2, pause_s=60)
        running(place, job_id)
        wait_until(lambda: "page 0" in place.call("log", job_id).out, what="the first page")
        said = place.call("stop", job_id, "-y", "--grace", "200ms")
        assert said.code == 5
        assert said.err == f"Still stopping after 0.2 s. At once: lineclear stop --now {job_id}\n"
        assert "Stopping · asked " in place.call("status", job_id).out
        again = place.call("stop", job_id, "-y", "--no-wait")
        assert again.out == "Stopping 1 Render 1, as it was already.\n"
        now = place.call("stop", "--now", job_id, "-y")
        assert now.code == 0 and now.err == "Killed: 1 Render 1.\n"


def test_case_h3_what_runs_is_not_removed_and_nothing_of_it_is_left(place: Place) -> None:
    """A job that reports nothing and writes through a process of its own, which ignores TERM."""
    place.app.write_text(
        place.app.read_text()
        + """
@queue.task(lane="other")
def stream(ctx: Context):
    import subprocess
    loop = "trap '' TERM; while :; do echo more; sleep 0.01; done >> grows.txt"
    subprocess.run(["sh", "-c", loop])
"""
    )
    grows = place.folder / "grows.txt"
    with place.worker():
        job_id = place.add("stream")
        wait_until(lambda: grows.exists() and grows.stat().st_size, timeout_s=30, what="it writes")
        removed = place.call("remove", job_id)
        assert removed.code == 5
        assert removed.err == "Job 1 is running: stop it first, lineclear stop 1\n"
        assert place.call("stop", "--now", job_id, "-y").code == 0
        size = grows.stat().st_size
        place.run("status")
        assert grows.stat().st_size == size


def test_stop_now_of_a_lane_puts_its_jobs_back(place: Place) -> None:
    with place.worker():
        job_id = place.add(book=1, **SLOW)
        running(place, job_id, steps=1)
        said = place.call("stop", "--now", "--lane", "render", "-y")
        assert said.code == 0
        assert said.out == (
            "Stopping now 1 Render 1: back in line. Lane render is paused; "
            "lineclear resume --lane render\n"
        )
        back = wait_until(
            lambda: place.queue.get(job_id).state is State.QUEUED, what="it is back in line"
        )
        assert back and place.queue.get(job_id).interruptions == 0


def test_stopping_a_job_whose_worker_is_gone_says_that_one_is_needed(place: Place) -> None:
    with place.worker() as worker:
        job_id = place.add(book=1, **SLOW)
        running(place, job_id)
        worker.kill()
        worker.wait()
        assert "Worker gone" in place.call("status", job_id).out
        said = place.call("stop", job_id, "-y")
        assert said.code == 3
        assert "it is stopped when a worker starts. lineclear worker --lane render" in said.err
    with place.worker():
        place.queue.wait(job_id, timeout_s=30)
    assert place.queue.get(job_id).state is State.CANCELLED


@pytest.mark.parametrize("verb", [["wait", "1"], ["log", "-f", "1"], ["watch", "1"]])
def test_ctrl_c_leaves_the_job_alone_and_says_so(place: Place, verb: list[str]) -> None:
    with place.worker():
        running(place, place.add(book=1, **SLOW), steps=1)
        with place.start(*verb) as command:
            bell = place.queue.files.bell
            wait_until(lambda: list(bell.glob("watch-*")), timeout_s=30, what="it listens")
            command.send_signal(signal.SIGINT)
            _, err = command.communicate(timeout=30)
        assert command.returncode == 130
        assert err.endswith("The job goes on.\n")
        job = place.queue.get(1)
        assert (job.state, job.wish) == (State.RUNNING, None)
        place.call("kill", 1, "-y")


def test_log_follows_to_the_end(place: Place) -> None:
    with place.worker():
        job_id = place.add(book=1, pages=30, pause_s=0.02)
        running(place, job_id)
        said = place.run("log", "-f", job_id)
        assert said.code == 0
        assert said.out == "".join(f"page {page}\n" for page in range(30))
        assert said.err.startswith("Done: 1 Render 1 (")
        lines = place.call("log", job_id, "--jsonl", "-n", 2).out.splitlines()
        assert [json.loads(line)["text"] for line in lines] == ["page 28", "page 29"]


def test_watch_prints_a_line_for_each_change_where_it_is_no_terminal(place: Place) -> None:
    with place.worker():
        place.call("pause", "--all")
        job_id = place.add(book=1, pages=20, pause_s=0.05)
        with place.start("watch", job_id, "--exit-status") as watch:
            out, _ = watch.communicate(timeout=60)
        assert watch.returncode == 0
        assert "Render 1: Waiting" in out or "Render 1: Running" in out
        assert "Render 1: Done" in out.splitlines()[-1]
        said = place.run("watch", job_id, "--jsonl", "--exit-status")
        assert json.loads(said.out)["state"] == "done"
        assert place.run("watch", place.add("fail"), "--exit-status").code == 1


def test_run_by_hand_takes_the_same_claim(place: Place) -> None:
    job_id = place.add(book=1)
    said = place.run("run", job_id)
    assert said.code == 0, said.err
    assert place.queue.get(job_id).state is State.DONE
    failing = place.add("fail")
    assert place.run("run", failing).code == 1


@contextmanager
def terminal(
    place: Place, *args: object, columns: int = 100, rows: int = 30
) -> Iterator[tuple[int, Callable[[], str], Callable[[], int]]]:
    """A command on a terminal of its own: where to type, what it shows, how it ended."""
    process, keyboard = pty.fork()
    if process == 0:
        env = place.environment | {"TERM": "xterm-256color"}
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, *place.given(args)], env)
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    heard: list[bytes] = []
    ended: list[int] = []

    def screen() -> str:
        while select.select([keyboard], [], [], 0)[0]:
            try:
                heard.append(os.read(keyboard, 65536))
            except OSError:
                break
        text = b"".join(heard).decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.rpartition("\x1b[H")[2])

    def code() -> int:
        if not ended:
            screen()
            pid, status = os.waitpid(process, os.WNOHANG)
            if pid == 0:
                return -1
            ended.append(os.waitstatus_to_exitcode(status))
        return ended[0]

    try:
        yield keyboard, screen, code
    finally:
        if code() == -1:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        os.close(keyboard)


def test_watch_on_a_terminal_stops_a_job_with_two_presses(place: Place) -> None:
    with place.worker():
        job_id = place.add(book=1, **SLOW)
        running(place, job_id, steps=1)
        with terminal(place, "watch") as (keyboard, screen, code):
            wait_until(lambda: "q quit" in screen(), timeout_s=30, what="the first picture")
            wait_until(lambda: "░" in screen(), timeout_s=30, what="the bar")
            assert "1 running" in screen()
            os.write(keyboard, b"s")
            wait_until(lambda: "Press again to stop. Keeps" in screen(), what="it is armed")
            os.write(keyboard, b"s")  # a double tap: too soon
            armed = time.monotonic()
            wait_until(lambda: time.monotonic() > armed + 0.7, what="the second press counts")
            assert place.queue.get(job_id).wish is None
            os.write(keyboard, b"s")
            wait_until(lambda: "Stopped" in screen(), timeout_s=30, what="it is stopped")
            os.write(keyboard, b"r")
            wait_until(
                lambda: place.queue.get(job_id).attempt == 2, timeout_s=30, what="it runs again"
            )
            os.write(keyboard, b"q")
            wait_until(lambda: code() == 0, what="it ends")
        assert place.queue.get(job_id).state is State.RUNNING
        place.call("kill", job_id, "-y")


def test_watch_on_a_narrow_terminal_leaves_out_columns(place: Place) -> None:
    place.add(book=1)
    place.add("say", text="x" * 200)
    with terminal(place, "watch", columns=40) as (keyboard, screen, code):
        wait_until(lambda: "q quit" in screen(), timeout_s=30, what="the rows")
        assert all(len(line.rstrip()) <= 40 for line in screen().splitlines())
        assert "other" not in screen().partition("Waiting")[2]
        os.write(keyboard, b"x")
        wait_until(lambda: "Removed. Back with u." in screen(), what="it is removed")
        os.write(keyboard, b"u")
        wait_until(lambda: "Undone." in screen(), what="it is back")
        os.write(keyboard, b"\x03")
        wait_until(lambda: code() == 130, what="it ends")
    assert len(place.queue.waiting()) == 2


def test_stop_on_a_terminal_asks(place: Place) -> None:
    with place.worker():
        job_id = place.add(book=1, **SLOW)
        running(place, job_id)
        with terminal(place, "stop", job_id) as (keyboard, screen, code):
            wait_until(lambda: "[y/N]" in screen(), timeout_s=30, what="the question")
            os.write(keyboard, b"n\n")
            wait_until(lambda: code() == 2, what="it ends")
            assert "Nothing was done." in screen()
        assert place.queue.get(job_id).wish is None
        place.call("kill", job_id, "-y")
