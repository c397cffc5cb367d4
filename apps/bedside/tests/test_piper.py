"""The real voice: the first chapter of a real book through the real worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers import wait_until

from bedside.library import Library
from bedside.render import plan
from bedside.shelf import ask, take_in
from bedside.sound import decoded_ms
from bedside.text import read_book
from lineclear import Queue, State, Task


@pytest.mark.timeout(900)
def test_b02_alices_first_chapter_in_the_real_voice(
    home: Path, tmp_path: Path, real_book: Callable[[str], Path]
) -> None:
    whole = real_book("alice-11.txt").read_text("utf-8-sig")
    begin, end = whole.index("CHAPTER I. "), whole.index("CHAPTER II. ")
    path = tmp_path / "alice.txt"
    path.write_text(whole[begin:end], "utf-8")
    (chapter,) = read_book(path).chapters
    (queue := Queue(home / "lineclear.db")).tasks = _tasks()
    with Library.open(home) as library:
        take_in(library, str(path))
        job = ask(library, queue, 1, "joe").job
        worker = subprocess.Popen(
            [Path(sys.executable).with_name("lineclear"), "--database", queue.database, "worker"],
            env=dict(os.environ),
            stdin=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: queue.get(job.id).ended, timeout_s=800, what="the chapter is made")
        finally:
            worker.terminate()
            worker.wait()
        ended = queue.get(job.id)
        assert ended.state is State.DONE, ended.error
        (made,) = library.chapters(library.get(1))
        hits = library.passages(library.get(1))
    queue.close()
    assert abs(decoded_ms(home / made.file) - made.duration_ms) <= 50
    assert made.warnings == ()
    assert [hit.text for hit in hits] == [text for text, _, _ in plan(chapter)]
    # A reader says twelve to nineteen characters a second.
    assert 10 < chapter.characters / (made.duration_ms / 1000) < 22
    result = json.loads(ended.result or "{}")
    print(f"{made.duration_ms / 1000:.0f} s of sound in {result['took_ms'] / 1000:.0f} s")


def _tasks() -> dict[str, Task]:
    from bedside.jobs import queue

    return queue.tasks
