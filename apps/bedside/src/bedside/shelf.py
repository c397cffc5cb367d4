"""What a person can ask of the library and the queue together: take a book in, ask for its render,
see how it stands.

Used by the command line and the demo (and by a page). Only submits: nothing here renders or fetches
(B01).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from bedside.book import BedsideError
from bedside.library import Library
from bedside.rows import Added, BookRow
from bedside.speech import check_voice
from bedside.text import read_book
from lineclear import Job, Queue, Refused, State

LIVE = (State.QUEUED, State.RUNNING)


class AlreadyThere(BedsideError):
    """The book is done or in line; nothing was asked again (B06)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A render in line: its job, its place from 1, and whether an ended render goes on with what it
    kept.
    """

    job: Job
    place: int | None
    resumed: bool


def take_in(library: Library, given: str) -> Added:
    """The book a person means: a file, or a Project Gutenberg number. Refuses a file that is no
    book.
    """
    path = Path(given).expanduser()
    if given.isdecimal() and not path.exists():
        return library.add(f"gutenberg:{int(given)}", f"Project Gutenberg no. {int(given)}")
    if not path.exists():
        raise BedsideError(
            f"there is no file {given}; say a file's path or a Project Gutenberg number"
        )
    book = read_book(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"books/{digest[:16]}{path.suffix.lower()}"
    _copy(path, library.home / name)
    return library.add(f"sha256:{digest}", book.title, file=name, book=book)


def ask(library: Library, queue: Queue, number: int, voice: str) -> Asked:
    """Put the render of a book in line. An ended one of the same voice goes on with what it has
    made.
    """
    check_voice(voice)
    book = library.get(number)
    if book.done_ms is not None and book.voice == voice:
        raise AlreadyThere(f'"{book.title}" is done; `bedside show {number}` lists its chapters')
    renders = renders_of(queue, number)
    live = next((job for job in renders if job.state in LIVE), None)
    if live is not None:
        raise _in_line(queue, book, live)
    ended = next((job for job in renders if _voice(job) == voice), None)
    if ended is not None and ended.state is not State.DONE:
        try:
            job = queue.retry(ended.id)
        except Refused as error:
            raise AlreadyThere(str(error)) from error
        return Asked(job, queue.place(job.id), resumed=True)
    added = queue.add("render", {"book": number, "voice": voice}, title=f"Render {book.title}")
    if not added.new:
        raise _in_line(queue, book, added.job)
    return Asked(added.job, added.place, resumed=False)


def renders_of(queue: Queue, number: int) -> list[Job]:
    """The book's renders, newest first."""
    found: list[Job] = []
    before: int | None = None
    while page := queue.jobs(task="render", before=before, limit=200, hidden=True):
        found += [job for job in page if job.key == str(number)]
        before = page[-1].id
    return found


def status(book: BookRow, running: set[str | None]) -> str:
    """``done``, ``rendering`` or ``pending`` (B06); ``running`` are the keys of the renders that
    run.
    """
    if book.done_ms is not None:
        return "done"
    return "rendering" if str(book.id) in running else "pending"


def _in_line(queue: Queue, book: BookRow, job: Job) -> AlreadyThere:
    place = queue.place(job.id)
    where = f"waits in line, number {place}" if place else "is being rendered"
    return AlreadyThere(f'"{book.title}" {where} (job {job.id})')


def _voice(job: Job) -> str:
    return str(json.loads(job.args).get("voice", "joe"))


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, beside)
    beside.replace(target)
