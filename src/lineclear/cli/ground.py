"""What every verb stands on: which database, which jobs, may it be done, which code to end with.

Called by the verb modules; prints nothing but questions and notes, on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, cast

import typer

from lineclear import errors
from lineclear.figures import count, printable
from lineclear.job import Job, State
from lineclear.queue import Queue

DONE, FAILED, USAGE, UNREACHABLE, NO_JOB, NOT_DONE, TIMED_OUT, NOT_ALLOWED = 0, 1, 2, 3, 4, 5, 6, 7
INTERRUPTED = 130


class Ended(errors.LineClearError):
    """A command ends with this code, after this sentence (none where the output says it all)."""

    def __init__(self, code: int, sentence: str = "") -> None:
        super().__init__(sentence)
        self.code = code


def code_of(error: BaseException) -> int:
    """The exit code an error stands for."""
    match error:
        case Ended():
            return error.code
        case errors.NoSuchJob():
            return NO_JOB
        case errors.WrongState():
            return NOT_DONE
        case errors.StoreError():
            return UNREACHABLE
        case _:
            return USAGE


@dataclass
class Ground:
    """The options before the verb."""

    database: str | None
    app: str | None
    color: bool

    @cached_property
    def queue(self) -> Queue:
        """The queue whose database is there already."""
        return Queue(self._named(), create=False)

    @cached_property
    def new_queue(self) -> Queue:
        """The queue, its database made where there is none."""
        return Queue(self._named())

    @cached_property
    def loaded(self) -> Queue:
        """The application's queue: its tasks, on its own database unless another is named."""
        if self.app is None:
            raise Ended(
                USAGE, "Say where the tasks are: lineclear --app module:queue, or LINECLEAR_APP."
            )
        from lineclear.tasks import load_app

        found = cast(Queue, load_app(self.app))
        if self.database is None:
            return found
        other = Queue(self.database)
        other.tasks = found.tasks
        return other

    def _named(self) -> str | None:
        if self.database is None and self.app is not None:
            return str(self.loaded.database)
        return self.database


def plain_ground() -> Ground:
    """As without any option before the verb."""
    from lineclear.cli.table import wants_colour

    return Ground(None, os.environ.get("LINECLEAR_APP"), wants_colour("auto"))


def ground(ctx: typer.Context) -> Ground:
    found = ctx.find_object(Ground)
    assert found is not None, "the program sets it before any verb"
    return found


def complete_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids with their names, for the shell; nothing where there is no database."""
    try:
        queue = Queue(ctx.find_root().params.get("database"), create=False)
        jobs = [*queue.running(), *queue.waiting(limit=100), *queue.recent(limit=20)]
    except errors.LineClearError:
        return []
    named = [(str(job.id), printable(job.name)) for job in jobs]
    return [(job_id, name) for job_id, name in named if job_id.startswith(incomplete)]


MEANT = "An id, 'last', 'running' or the start of a name."
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help=MEANT, autocompletion=complete_id),
]
OneId = Annotated[str, typer.Argument(metavar="ID", help=MEANT, autocompletion=complete_id)]
LaneName = Annotated[str | None, typer.Option("--lane", metavar="LANE", help="Only this lane.")]
All = Annotated[bool, typer.Option("--all", help="Everything this can be done to.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print ids only.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="One JSON object a line.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the journal.")]
IfState = Annotated[
    State | None, typer.Option("--if-state", help="Only if it is in this state now.")
]


def one_job(queue: Queue, text: str) -> Job:
    """The job a person means. Ends with code 2 and the list where it could be several."""
    found = queue.find(text)
    if not found:
        what = "No job is running." if text == "running" else f"No job is called {text!r}."
        raise Ended(NO_JOB, what if text != "last" else "There is no job yet.")
    if len(found) > 1:
        named = ", ".join(f"{job.id} {printable(job.name)}" for job in found)
        raise Ended(USAGE, f"{text!r} could be {count(len(found), 'job')}: {named}. Say the id.")
    return found[0]


def pick(
    queue: Queue,
    ids: Sequence[str] | None,
    *,
    pool: Callable[[], list[Job]] | None = None,
    nothing: int = DONE,
) -> list[Job]:
    """The jobs meant, each once; ``pool`` gives them where none is named. An empty pool ends the
    command with ``nothing``: what was asked of all is so already.
    """
    if ids and pool is not None:
        raise Ended(USAGE, "Say either ids or --all or --lane, not both.")
    if not ids and pool is None:
        raise Ended(USAGE, "Say which job: an id, last, running, a name, --lane LANE or --all.")
    jobs = pool() if pool is not None else [one_job(queue, text) for text in ids or ()]
    if not jobs:
        raise Ended(nothing, "There is no such job now, so there is nothing to do.")
    return list({job.id: job for job in jobs}.values())


def ask(question: str, *, yes: bool) -> None:
    """Ask before what cannot be undone. Where nobody can answer, only ``--yes`` is an answer."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Ended(USAGE, f"{question} Nobody is here to answer: say --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Ended(USAGE, "Nothing was done.")


def naming(jobs: Sequence[Job]) -> str:
    """``41 The Hobbit, 42 Dune and 9 more``."""
    named = ", ".join(f"{job.id} {printable(job.name)}" for job in jobs[:5])
    return named + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")


def each(jobs: Iterable[Job], act: Callable[[Job], None]) -> None:
    """Do it to each; what is refused is said, the others are done, and the first refusal counts."""
    code = 0
    for job in jobs:
        try:
            act(job)
        except (errors.Refused, Ended) as error:
            note(str(error))
            code = code or code_of(error)
    if code:
        raise Ended(code)


def note(sentence: str) -> None:
    if sentence:
        sys.stderr.write(f"{printable(sentence)}\n")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
