"""The command line: ``bedside add``, ``list``, ``show``, ``search``, ``demo``. Says its refusals in
one sentence.

Exit codes: 0 done, or so already; 2 refused, with a sentence; 3 the library or the queue cannot be
used.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bedside.book import BedsideError
from bedside.home import home
from bedside.library import Library, LibraryError, NoSuchBook
from lineclear import LineClearError, StoreError

app = typer.Typer(
    help="Books rendered to speech, one at a time.", no_args_is_help=True, add_completion=False
)
Voice = Annotated[str, typer.Option("--voice", help="joe, or tone for a dry run.")]


def main() -> None:
    """Run a command; every refusal is one sentence on stderr."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        sys.exit(130)
    except (LibraryError, StoreError) as error:
        _say(error)
        sys.exit(3)
    except NoSuchBook as error:
        _say(error)
        sys.exit(4)
    except (BedsideError, LineClearError) as error:
        _say(error)
        sys.exit(2)
    except Exception as error:
        # A usage error of the command line itself shows and exits as it always does.
        if not hasattr(error, "exit_code") or not hasattr(error, "show"):
            raise
        error.show()
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


@app.command()
def add(
    what: Annotated[
        str, typer.Argument(metavar="FILE|NUMBER", help="A book, or its Gutenberg id.")
    ],
    *,
    voice: Voice = "joe",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list a file's chapters.")
    ] = False,
) -> None:
    """Put a book in line. A worker renders it: lineclear worker."""
    if dry_run:
        _chapters(Path(what))
        return
    from bedside.jobs import queue
    from bedside.shelf import ask, take_in
    from bedside.speech import check_voice

    check_voice(voice)
    with Library.open(home()) as library:
        book = take_in(library, what).book
        asked = ask(library, queue, book.id, voice)
    chapters = f", {book.chapters_total} chapters" if book.chapters_total else ""
    how = "goes on where it ended" if asked.resumed else f"number {asked.place} in line"
    typer.echo(f'Book {book.id}, "{book.title}"{chapters}: job {asked.job.id}, {how}.')
    if not any(worker.alive for worker in queue.workers()):
        typer.echo(
            f"No worker runs. Start one: lineclear --database {queue.database} worker", err=True
        )


@app.command("list")
def list_() -> None:
    """The books, and how they stand."""
    from bedside.jobs import queue
    from bedside.shelf import status

    with Library.open(home()) as library:
        running = {job.key for job in queue.running("render")}
        books = library.books()
        if not books:
            typer.echo("No book is here. Add one: bedside add FILE|NUMBER", err=True)
        for book in books:
            made = len(library.chapters(book))
            of = f"{made} of {book.chapters_total}" if book.chapters_total else "not read yet"
            who = f" ({book.author})" if book.author else ""
            typer.echo(f"{book.id:>4}  {status(book, running):<9}  {of:>12}  {book.title}{who}")


@app.command()
def show(book: Annotated[int, typer.Argument(help="Its number in the list.")]) -> None:
    """The chapters of a book: durations, files, and what was left out."""
    with Library.open(home()) as library:
        row = library.get(book)
        typer.echo(f"{row.title}{f', by {row.author}' if row.author else ''}")
        total = 0
        for chapter in library.chapters(row):
            total += chapter.duration_ms
            path = library.home / chapter.file
            typer.echo(
                f"{chapter.number:>4}  {clock(chapter.start_ms):>8}  "
                f"{clock(chapter.duration_ms):>8}  {chapter.title}  {path}"
            )
            for warning in chapter.warnings:
                typer.echo(f"      {warning}")
        made = len(library.chapters(row))
        of = f" of {row.chapters_total}" if row.chapters_total else ""
        typer.echo(f"{made}{of} chapters are there: {clock(total)}.")
        for warning in row.warnings:
            typer.echo(warning)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="All of them have to be in one sentence.")],
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
) -> None:
    """Sentences with these words, and where they are heard."""
    with Library.open(home()) as library:
        hits = library.search(" ".join(words), limit=limit)
    for hit in hits:
        typer.echo(f"{hit.book_title}, {hit.chapter_title}, {clock(hit.start_ms)}: {hit.text}")
    if not hits:
        typer.echo("No rendered sentence has all these words.", err=True)


@app.command()
def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Where everything of the demo is.")] = Path("demo"),
    voice: Voice = "joe",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again.")] = False,
) -> int:
    """Hear it: a worker renders a short book. Ctrl-C or a kill, and the same command goes on."""
    from bedside.demo import run

    return run(folder, voice=voice, fresh=fresh)


def _chapters(path: Path) -> None:
    from bedside.text import read_book

    book = read_book(path)
    typer.echo(f"{book.title}{f', by {book.author}' if book.author else ''}")
    for chapter in book.chapters:
        typer.echo(f"{chapter.number:>4}  {chapter.characters:>8,} characters  {chapter.title}")
    for warning in book.warnings:
        typer.echo(warning)


def clock(milliseconds: int) -> str:
    """A duration or a place: 1:02:03, or 2:03."""
    seconds = round(milliseconds / 1000)
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _say(error: Exception) -> None:
    sentence = str(error)
    # A sentence that begins with a file's name keeps it as it is.
    begins = sentence if "." in sentence.partition(" ")[0] else sentence[:1].upper() + sentence[1:]
    typer.echo(begins, err=True)
