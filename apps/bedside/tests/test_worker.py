"""Rendering through a real worker: stopped, killed and damaged in the middle, and what it costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests.helpers import wait_until

from bedside import shelf, speech
from bedside.book import Book
from bedside.library import Library
from bedside.render import plan
from bedside.sound import decoded_ms
from bedside.text import read_book
from lineclear import Job, Queue, State
from lineclear.tasks import load_app

SAMPLE = Path(shelf.__file__).parent / "sample" / "line-clear.html"


@dataclass
class Bench:
    """A library and a queue with the sample book, and workers on them."""

    home: Path
    gate: Path
    queue: Queue
    library: Library
    book: Book
    workers: list[subprocess.Popen[bytes]]

    def start(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("lineclear")),
                "--database",
                str(self.queue.database),
                "worker",
            ],
            env={**os.environ, "LINECLEAR_KILL_S": "5"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.workers.append(worker)
        return worker

    def ask(self, voice: str = "ada") -> Job:
        return shelf.ask(self.library, self.queue, 1, voice).job

    def open_gate(self, until: int = 10**9) -> None:
        beside = self.gate / "until.new"
        beside.write_text(str(until))
        beside.replace(self.gate / "until")

    def said(self, what: str, voice: str = "ada") -> list[str]:
        lines = (self.gate / "said").read_text().splitlines()
        return [
            line.removeprefix(f"{what} {voice} ")
            for line in lines
            if line.startswith(f"{what} {voice} ")
        ]

    def wait_said(self, count: int, voice: str = "ada") -> None:
        """Until so many sentences are finished and kept, and the next one is begun."""

        def there() -> bool:
            return (
                len(self.said("finished", voice)) >= count
                and len(self.said("begun", voice)) > count
            )

        wait_until(there, timeout_s=30, what=f"{count} sentences said")

    def ended(self, job: Job) -> Job:
        return wait_until(
            lambda: now if (now := self.queue.get(job.id)).ended else None,
            timeout_s=40,
            what="the job ends",
        )

    def let_go(self, job: Job) -> Job:
        """Let one sentence after the other be said until the stop has reached the child."""
        while not self.queue.get(job.id).ended:
            finished = len(self.said("finished"))
            self.open_gate(finished + 1)
            later = time.monotonic() + 0.3

            def ended_or_later(later: float = later) -> bool:
                return self.queue.get(job.id).ended or time.monotonic() > later

            wait_until(ended_or_later, what="a sentence is said")
        return self.queue.get(job.id)

    def words(self) -> Counter[str]:
        """What a whole render says: each sentence once a chapter."""
        return Counter(
            w for chapter in self.book.chapters for w in {w for _, w, _ in plan(chapter)}
        )

    def check_done(self, voice: str = "ada") -> None:
        row = self.library.get(1)
        chapters = self.library.chapters(row)
        assert (row.voice, len(chapters)) == (voice, 3) and row.done_ms is not None
        start = 0
        for chapter in chapters:
            path = self.home / chapter.file
            assert chapter.start_ms == pytest.approx(start, abs=1)
            assert abs(decoded_ms(path) - chapter.duration_ms) <= 50
            start += chapter.duration_ms
        passages = self.library.passages(row)
        assert [p.text for p in passages] == [t for c in self.book.chapters for t, _, _ in plan(c)]
        assert all(a.end_ms <= b.start_ms for a, b in pairwise(passages))
        assert passages[-1].end_ms < start
        audio = sorted(path.name for path in (self.home / "audio").rglob("*") if path.is_file())
        assert audio.count("01.m4a") >= 1 and all(name.endswith(".m4a") for name in audio)


@pytest.fixture
def bench(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "said").touch()
    monkeypatch.setenv("GATE", str(gate))
    home.mkdir()
    queue = Queue(home / "lineclear.db")
    before = dict(speech.VOICES)
    queue.tasks = load_app(f"{Path(__file__).with_name('gated.py')}:queue").tasks
    with Library.open(home) as library:
        shelf.take_in(library, str(SAMPLE))
        speech.VOICES.update(ada=speech.ToneVoice, bea=speech.ToneVoice)
        made = Bench(home, gate, queue, library, read_book(SAMPLE), [])
        made.open_gate()
        yield made
        for worker in made.workers:
            worker.kill()
            worker.wait()
    queue.close()
    speech.VOICES.clear()
    speech.VOICES.update(before)


def test_b02_b06_a_book_is_rendered_and_then_refused(bench: Bench) -> None:
    row = bench.library.get(1)
    assert (row.chapters_total, row.characters_total) == (3, bench.book.characters)
    bench.open_gate(4)
    job = bench.ask()
    assert job.name == "Render Line Clear" and shelf.status(row, set()) == "pending"
    with pytest.raises(shelf.AlreadyThere, match='"Line Clear" waits in line, number 1'):
        bench.ask()
    bench.start()
    bench.wait_said(4)
    with pytest.raises(shelf.AlreadyThere, match='"Line Clear" is being rendered'):
        bench.ask("bea")
    running = {each.key for each in bench.queue.running("render")}
    assert shelf.status(bench.library.get(1), running) == "rendering"
    bench.open_gate()
    job = bench.ended(job)
    assert (job.state, job.total) == (State.DONE, bench.book.characters), job.error
    assert job.done == job.total
    bench.check_done()
    assert Counter(bench.said("finished")) == bench.words()
    with pytest.raises(shelf.AlreadyThere, match='"Line Clear" is done'):
        bench.ask()
    assert [step.weight for step in bench.queue.steps(job.id)] == [
        c.characters for c in bench.book.chapters
    ]
    assert list((bench.home / "lineclear.db.d").glob("kept/*/chapter-*")) == []


@pytest.mark.parametrize("victim", ["worker", "child", "both"])
def test_b14_a_kill_costs_the_sentence_in_flight_and_nothing_else(
    bench: Bench, victim: str
) -> None:
    first = len({words for _, words, _ in plan(bench.book.chapters[0])})
    bench.open_gate(first + 5)
    job = bench.ask()
    worker = bench.start()
    bench.wait_said(first + 5)
    made = bench.home / "audio/1/ada/01.m4a"
    before = made.stat()
    assert [c.number for c in bench.library.chapters(bench.library.get(1))] == [1]
    child = bench.queue.get(job.id).child_pid
    assert child is not None
    if victim != "worker":
        os.kill(child, signal.SIGKILL)
    if victim != "child":
        worker.kill()
        worker.wait()
    if victim == "child":
        assert "signal 9" in (bench.ended(job).error or "")
        assert bench.ask().id == job.id
    bench.open_gate()
    if victim != "child":
        bench.start()
    after = bench.ended(job)
    if after.state is State.FAILED and victim == "both":
        # The worker lived just long enough to see its child die: somebody has to ask again.
        assert bench.ask().id == job.id
        after = bench.ended(job)
    assert after.state is State.DONE, after.error
    bench.check_done()
    assert Counter(bench.said("finished")) == bench.words()
    assert sum((Counter(bench.said("begun")) - bench.words()).values()) == 1
    assert (made.stat().st_mtime_ns, made.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_b03_a_stop_leaves_nothing_of_the_chapter_in_flight(bench: Bench) -> None:
    first = len({words for _, words, _ in plan(bench.book.chapters[0])})
    bench.open_gate(first + 3)
    job = bench.ask()
    bench.start()
    bench.wait_said(first + 3)
    bench.queue.cancel(job.id)
    assert bench.let_go(job).state is State.CANCELLED
    assert sorted(path.name for path in (bench.home / "audio/1/ada").iterdir()) == ["01.m4a"]
    row = bench.library.get(1)
    assert [c.number for c in bench.library.chapters(row)] == [1]
    assert {hit.chapter for hit in bench.library.passages(row)} == {1}
    assert list((bench.home / "lineclear.db.d").glob("staging/*/*")) == []
    bench.open_gate()
    assert bench.ended(bench.ask()).state is State.DONE
    bench.check_done()
    assert Counter(bench.said("finished")) == bench.words()


def test_case_g5_another_voice_meets_no_old_piece_and_the_first_goes_on(bench: Bench) -> None:
    bench.open_gate(10)
    bench.start()
    ada = bench.ask("ada")
    bench.wait_said(10)
    bench.queue.cancel(ada.id)
    assert bench.let_go(ada).state is State.CANCELLED
    bench.open_gate(10**9)
    assert bench.ended(bench.ask("bea")).state is State.DONE
    bench.check_done("bea")
    assert Counter(bench.said("finished", "bea")) == bench.words()
    again = bench.ask("ada")
    assert again.id == ada.id and bench.ended(again).state is State.DONE
    bench.check_done("ada")
    assert Counter(bench.said("finished", "ada")) == bench.words()


@pytest.mark.parametrize("damage", ["truncated", "zeroed", "corrupted"])
def test_case_g6_a_damaged_piece_alone_is_made_again(bench: Bench, damage: str) -> None:
    bench.open_gate(8)
    job = bench.ask()
    worker = bench.start()
    bench.wait_said(8)
    worker.terminate()
    bench.open_gate(9)
    worker.wait()
    pieces = sorted((bench.home / "lineclear.db.d").glob("kept/*/chapter-1/*.piece"))
    assert len(pieces) == 9
    data = pieces[4].read_bytes()
    broken = {
        "truncated": data[:-100],
        "zeroed": bytes(len(data)),
        "corrupted": data[:500] + b"?" + data[501:],
    }
    pieces[4].write_bytes(broken[damage])
    bench.open_gate()
    bench.start()
    assert bench.ended(job).state is State.DONE
    bench.check_done()
    twice = Counter(bench.said("finished")) - bench.words()
    assert sum(twice.values()) == 1


def test_case_g3_what_cannot_be_read_fails_before_a_voice_is_loaded(bench: Bench) -> None:
    job = bench.ask()
    file = bench.home / (bench.library.get(1).file or "")
    file.write_text("<html><body><img src='x'></body></html>")
    bench.start()
    ended = bench.ended(job)
    assert ended.state is State.FAILED and ended.attempt == 1
    assert "found no readable text (nothing in it is text)" in (ended.error or "")
    assert bench.said("begun") == []
