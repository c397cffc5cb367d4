"""The verbs of the page: ``serve`` and ``up``, which show it, ``open`` and ``token``."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer

from lineclear.cli.ground import UNREACHABLE, USAGE, Ended, Ground, ground, note, say
from lineclear.figures import clock
from lineclear.queue import Queue
from lineclear.web import DEFAULT_BIND

Bind = Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Port 0: any free one.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="A name it is asked by; may be repeated."),
]
Trusting = Annotated[
    bool, typer.Option("--trust-network", help="Whoever can reach it may do everything.")
]
BasePath = Annotated[
    str, typer.Option("--base-path", metavar="/PATH", help="Where a proxy shows it.")
]


def serve(
    ctx: typer.Context,
    *,
    bind: Bind = DEFAULT_BIND,
    host: Hosts = None,
    base_path: BasePath = "",
    trust_network: Trusting = False,
) -> None:
    """Show the page, until stopped with Ctrl-C or SIGTERM. Jobs go on without it."""
    queue = _queue(ground(ctx))
    from lineclear.web import serving

    serving.run(
        queue, bind=bind, hosts=host or (), base_path=base_path, trust_network=trust_network
    )


def up(
    ctx: typer.Context,
    *,
    bind: Bind = DEFAULT_BIND,
    host: Hosts = None,
    trust_network: Trusting = False,
) -> None:
    """A worker and the page in one terminal, until stopped with Ctrl-C or SIGTERM."""
    queue = _queue(ground(ctx))
    from lineclear.web import serving

    worker = [sys.executable, "-m", "lineclear.worker", str(queue.database)]
    serving.run(queue, bind=bind, hosts=host or (), trust_network=trust_network, worker=worker)


def _queue(at: Ground) -> Queue:
    """With the tasks that can be added from the page, where it is known where they are."""
    queue = at.new_queue if at.app is None else at.loaded
    queue.check_store()
    return queue


def open_page(ctx: typer.Context) -> None:
    """Print where the page is served, and open it where there is a display."""
    from lineclear.web.serving import address_file

    try:
        address = address_file(ground(ctx).queue.files).read_text()
        at = urlsplit(address)
        socket.create_connection((at.hostname or "", at.port or 80), timeout=1).close()
    except OSError:
        raise Ended(UNREACHABLE, "The page is not served. Start it: lineclear serve.") from None
    say(address)
    if "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ:
        webbrowser.open(address)


def token(
    ctx: typer.Context,
    what: Literal["add", "list", "remove"],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Stands in the journal.")] = "",
    *,
    view: Annotated[bool, typer.Option("--view", help="It may look, not act.")] = False,
) -> None:
    """Who may use the page: once there is a token, nobody comes in without one."""
    from lineclear.web.tokens import Tokens

    queue = ground(ctx).new_queue
    tokens = Tokens(queue.files)
    if (name == "") != (what == "list"):
        raise Ended(USAGE, f"Write: lineclear token {what}{'' if what == 'list' else ' NAME'}.")
    match what:
        case "add":
            queue.check_store()
            note("It is kept nowhere and shown only now. Sign in with it on the page:")
            say(tokens.add(name, "view" if view else "control", now_ms=queue.now_ms()))
        case "remove":
            tokens.remove(name)
            note("It opens nothing any more.")
        case "list":
            for one in tokens.all():
                say(f"{one.name}  {one.role}  added {clock(one.added_ms, now_ms=queue.now_ms())}")
