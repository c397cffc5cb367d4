"""The program put together: global options, then one verb. The names are the buttons' names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import typer

from lineclear.cli import acts, care, follow, lanes, looks, serve, stats, stopping, watch, work
from lineclear.cli.ground import Ground
from lineclear.cli.table import wants_colour

VERBS: dict[str, Callable[..., None]] = {
    "status": looks.status,
    "watch": watch.watch,
    "add": work.add,
    "show": looks.show,
    "log": follow.log,
    "pause": acts.pause,
    "resume": acts.resume,
    "move": acts.move,
    "remove": acts.remove,
    "undo": acts.undo,
    "stop": stopping.stop,
    "kill": stopping.kill,
    "retry": acts.retry,
    "start": acts.start,
    "clear": acts.clear,
    "delay": lanes.delay,
    "slots": lanes.slots,
    "history": looks.history,
    "stats": stats.stats,
    "wait": follow.wait,
    "worker": work.worker,
    "serve": serve.serve,
    "up": serve.up,
    "open": serve.open_page,
    "token": serve.token,
    "run": work.run,
    "doctor": care.doctor,
    "completion": care.completion,
}
ALIASES = {"ls": "status", "rm": "remove", "logs": "log", "submit": "add"}
TAKES_SIGNED = ("delay", "slots")
"""``-5`` is a value here, to be refused with a sentence, not an option."""
COMPLETING = "_LINECLEAR_COMPLETE"
"""Set by a shell that asks for completions, or for the script that makes it ask."""


def start(
    ctx: typer.Context,
    *,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="FILE", help="Else LINECLEAR_DATABASE, lineclear.db."),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:QUEUE", help="Where the tasks are: LINECLEAR_APP."),
    ] = None,
    color: Annotated[Literal["auto", "always", "never"], typer.Option("--color")] = "auto",
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """The queue for slow, expensive work on a machine you own. Without a verb: status."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"lineclear {installed('lineclear')}")
        raise typer.Exit
    # Only a database named in words stands over the application's own; see Ground.loaded.
    app = app or os.environ.get("LINECLEAR_APP")
    ctx.obj = Ground(database, app, wants_colour(color))
    if ctx.invoked_subcommand is None:
        looks.overview(ctx.obj)


def command(given: Sequence[str] = ()) -> Any:
    """The click command: of the one verb that is ``given``, else of all, since making each costs
    more than most answers. Without rich's markup: so does that.
    """
    completing = COMPLETING in os.environ
    program = typer.Typer(add_completion=completing, rich_markup_mode=None)
    program.callback(invoke_without_command=True)(start)
    only = _verb(given)
    for name, verb in VERBS.items() if completing or only is None else [(only, VERBS[only])]:
        signed = {"ignore_unknown_options": True} if name in TAKES_SIGNED else {}
        program.command(name, context_settings=signed)(verb)
    for name, of in ALIASES.items() if completing or only is None else ():
        program.command(name, hidden=True)(VERBS[of])
    return typer.main.get_command(program)


def _verb(given: Sequence[str]) -> str | None:
    """The verb among the arguments; ``None`` where there is none by its own name."""
    words = iter(given)
    for word in words:
        if word in ("--database", "--app", "--color"):
            next(words, None)
        elif not word.startswith("-"):
            return word if word in VERBS else None
    return None
