"""``bedside demo`` as people run it: to its end, again, over a stop and over kills."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.helpers import wait_until

from bedside.library import Library
from bedside.sound import decoded_ms
from lineclear import Queue, State

BEDSIDE = Path(sys.executable).with_name("bedside")


def demo(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [BEDSIDE, "demo", "--folder", folder, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def told(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=300)
    return output


def check_files(folder: Path) -> dict[str, int]:
    """The three files play as long as the timeline says; answers when each was made."""
    with Library.open(folder) as library:
        chapters = library.chapters(library.get(1))
        assert len(chapters) == 3 and library.get(1).done_ms is not None
        for chapter in chapters:
            assert abs(decoded_ms(folder / chapter.file) - chapter.duration_ms) <= 50
        return {chapter.file: (folder / chapter.file).stat().st_mtime_ns for chapter in chapters}


def test_b02_the_demo_ends_with_three_files_and_lists_them_again(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    first = demo(folder, "--voice", "tone")
    said = told(first)
    assert first.returncode == 0, said
    assert said.count(".m4a  Chapter") == 3 and "times faster than listening" in said
    assert said.count(" in all") == 1 and "\nMade in " in said
    made = check_files(folder)
    again = demo(folder, "--voice", "tone")
    said = told(again)
    assert again.returncode == 0 and "is done already" in said and said.count(".m4a") == 3
    assert check_files(folder) == made
    fresh = demo(folder, "--voice", "tone", "--fresh")
    said = told(fresh)
    assert fresh.returncode == 0, said
    assert check_files(folder) != made
    other = tmp_path / "mine"
    other.mkdir()
    (other / "keep.txt").touch()
    refused = demo(other, "--fresh", "--voice", "tone")
    assert "is no folder of a demo; nothing was removed" in told(refused)
    assert refused.returncode == 2 and (other / "keep.txt").exists()


def address_of(process: subprocess.Popen[str]) -> str:
    """What the demo says first."""
    assert process.stdout
    first = process.stdout.readline()
    found = re.fullmatch(r"Watch it in your browser: (http://127\.0\.0\.1:\d+/)\n", first)
    assert found, first
    return found[1]


def shown(address: str) -> str:
    """What the page has of the queue now; empty where nobody answers."""
    try:
        return httpx.get(f"{address}api/v1/state").text
    except httpx.TransportError:
        return ""


def test_b02_the_page_shows_the_book_while_the_demo_runs(tmp_path: Path) -> None:
    running = demo(tmp_path / "demo", "--voice", "tone")
    address = address_of(running)
    wait_until(lambda: "Line Clear" in shown(address), what="the book's title")
    assert "<title>" in httpx.get(address).text
    said = told(running)
    assert running.returncode == 0, said
    assert shown(address) == ""


def test_b14_the_page_ends_with_a_killed_demo_and_comes_back_with_the_next(tmp_path: Path) -> None:
    killed = demo(tmp_path / "demo", "--voice", "tone")
    address = address_of(killed)
    wait_until(lambda: shown(address))
    killed.kill()
    wait_until(lambda: not shown(address), what="the page is gone")
    told(killed)
    again = demo(tmp_path / "demo", "--voice", "tone")
    said = told(again)
    assert again.returncode == 0, said


def test_b02_at_a_terminal_the_page_stays_until_ctrl_c(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BEDSIDE, "demo", "--folder", tmp_path / "demo", "--voice", "tone"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    while b"until you press Ctrl-C" not in said:
        said += os.read(ours, 4096)
    found = re.search(rb"http://\S+/", said)
    assert found and shown(found[0].decode())
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 0
    assert shown(found[0].decode()) == ""
    os.close(ours)


@pytest.mark.timeout(600)
def test_b14_the_demo_with_the_real_voice_survives_every_kill(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    pieces: dict[Path, int] = {}

    def kept() -> dict[Path, int]:
        found = {}
        for path in folder.glob("lineclear.db.d/kept/*/*/*.piece"):
            try:
                found[path] = path.stat().st_mtime_ns
            except OSError:
                continue
        return found

    def until_more_pieces(process: subprocess.Popen[str]) -> None:
        def more() -> bool:
            assert process.poll() is None, process.communicate()[0]
            return len(kept().keys() - pieces.keys()) >= 3

        wait_until(more, timeout_s=120, what="three more sentences are finished")

    def killed(victims: Callable[[int, int], list[int]]) -> str:
        """Run the demo, kill these (of worker, child) in the middle, and see what it says."""
        process = demo(folder)
        until_more_pieces(process)
        queue = Queue(folder / "lineclear.db")
        (job,) = queue.running()
        (worker,) = [each.pid for each in queue.workers() if each.alive]
        assert job.child_pid is not None
        for pid in victims(worker, job.child_pid):
            os.kill(pid, signal.SIGKILL)
        said = told(process)
        assert process.returncode == 1, said
        assert "the same command goes on from there" in said
        now = kept()
        # A sentence finished before is never made a second time.
        assert all(now.get(path, made) == made for path, made in pieces.items())
        pieces.update(now)
        wait_until(
            lambda: not any(each.alive for each in queue.workers()), what="the worker is gone"
        )
        queue.close()
        return said

    assert "was killed by signal 9 (SIGKILL)" in killed(lambda worker, _: [worker])
    assert "signal 9" in killed(lambda _, child: [child])
    killed(lambda worker, child: [child, worker])
    stopped = demo(folder)
    until_more_pieces(stopped)
    os.killpg(stopped.pid, signal.SIGINT)
    said = told(stopped)
    assert (stopped.returncode, "Every finished sentence is kept" in said) == (130, True), said
    now = kept()
    assert all(now.get(path, made) == made for path, made in pieces.items())
    last = demo(folder)
    said = told(last)
    assert last.returncode == 0, said
    assert "The last run made" in said
    check_files(folder)
    queue = Queue(folder / "lineclear.db")
    (job,) = queue.jobs()
    assert job.state is State.DONE and job.attempt >= 5
    queue.close()
