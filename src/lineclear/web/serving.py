"""One process that serves the page of one queue: its socket, its one event loop, its end.

Called by ``lineclear serve`` and ``up``, and by ``python -m lineclear.web``. Idle, it makes no
system call. It works on no job: it can be restarted at any time, and costs a running job nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from lineclear.errors import BadInput, Refused
from lineclear.files import Files
from lineclear.queue import Queue
from lineclear.web import DEFAULT_BIND

BACKLOG = 512
LOCAL = ("127.0.0.1", "::1", "localhost")
UNDER_WAY_S = 0.2
"""How long requests under way have when the server ends; streams never end by themselves."""
EXIT_INTERRUPTED = 130


def address_file(files: Files) -> Path:
    """Where the page of this database was served last, for ``lineclear open``."""
    return files.folder / "address"


def run(
    queue: Queue,
    *,
    bind: str = DEFAULT_BIND,
    hosts: Iterable[str] = (),
    trust_network: bool = False,
    base_path: str = "",
    worker: Sequence[str] = (),
) -> NoReturn:
    """Serve until asked to stop, and end the process.

    Says where before anything else: requests wait in the socket while the rest is loaded.

    Args:
        queue: whose page; its tasks are those that can be added.
        bind: ``HOST:PORT``; port 0 is any that is free.
        hosts: names by which this server is asked, beyond ``HOST`` and the machine's own.
        trust_network: whoever can reach it may do everything, tokens or not.
        base_path: where a proxy shows it, such as ``/queue``.
        worker: the command of a worker that lives as long as the page does.

    Raises:
        BadInput, Refused: it cannot be served there; the sentence says what to do.
    """
    if not re.fullmatch(r"(/[\w.~-]+)*/?", base_path, re.ASCII):
        raise BadInput("--base-path", f"--base-path begins with a slash, unlike {base_path!r}.")
    base_path = base_path.rstrip("/")
    host, port = _host_and_port(bind)
    with _listen(host, port) as bound:
        port = bound.getsockname()[1]
        everywhere = host in ("0.0.0.0", "::")  # noqa: S104  only said, not asked for
        name = socket.gethostname() if everywhere else host
        address = f"http://{f'[{name}]' if ':' in name else name}:{port}{base_path}/"
        _say(f"Line Clear is at {address}")
        queue.files.make(queue.files.folder)
        here = address.replace(name, "localhost", 1) if everywhere else address
        address_file(queue.files).write_text(here)
        if trust_network:
            _say("Whoever can reach it may do everything there, as --trust-network says.")
        elif host not in LOCAL:
            _first_token(queue, address)
        app = _application(
            queue, {host, name, f"{name}.local", *hosts}, trust_network=trust_network
        )
        code = asyncio.run(_serve(app, bound, base_path, worker))
    _leave(queue, code)


def _leave(queue: Queue, code: int) -> NoReturn:
    """The server's threads may hold on to Python objects: taking the interpreter apart beneath them
    now and then aborted it.
    """
    queue.close()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _application(queue: Queue, hosts: Iterable[str], *, trust_network: bool) -> object:
    from lineclear.web.app import page

    return page(queue, hosts=hosts, trust_network=trust_network)


def _first_token(queue: Queue, address: str) -> None:
    """Beyond this machine a token is asked for; the first one is made here and said once."""
    from lineclear.web.tokens import Tokens

    tokens = Tokens(queue.files)
    if not tokens.all():
        text = tokens.add("first", "control", now_ms=queue.now_ms())
        _say(f"It asks for a token. This signs in, and is said only now: {address}login#{text}")


async def _serve(app: object, bound: socket.socket, base_path: str, command: Sequence[str]) -> int:
    from lineclear.web.listener import Server

    loop = asyncio.get_running_loop()
    asked: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.put_nowait, number)
    beside = asyncio.create_task(_beside(command, asked)) if command else None
    server = Server(app, bound, base_path)
    serving = asyncio.create_task(server.serve())
    ending = beside or asyncio.create_task(asked.get())
    await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
        raise Refused("The server has ended by itself. Start it again.")
    server.end()
    await asyncio.wait({serving}, timeout=UNDER_WAY_S)
    # What is cut off now, such as a stream, has nobody left to tell.
    loop.set_exception_handler(lambda *_: None)
    return EXIT_INTERRUPTED if ending.result() == signal.SIGINT else 0


async def _beside(command: Sequence[str], asked: asyncio.Queue[signal.Signals]) -> signal.Signals:
    """A worker in a session of its own, so that Ctrl-C reaches this process alone: the worker is
    ended first, and the page, which shows what it still does, after it.
    """
    worker = await asyncio.create_subprocess_exec(*command, start_new_session=True)
    ended = asyncio.create_task(worker.wait())
    wish = asyncio.create_task(asked.get())
    try:
        await asyncio.wait({ended, wish}, return_when=asyncio.FIRST_COMPLETED)
        if not wish.done():
            note = f"The worker has ended (code {worker.returncode}). The page goes on, but no job "
            sys.stderr.write(f"{note}starts until there is a worker: lineclear worker.\n")
            return await wish
        while not ended.done():
            worker.terminate()  # a second time: at once
            again = asyncio.create_task(asked.get())
            await asyncio.wait({ended, again}, return_when=asyncio.FIRST_COMPLETED)
        return wish.result()
    finally:
        if not ended.done():
            worker.terminate()


def _host_and_port(bind: str) -> tuple[str, int]:
    host, _, port = bind.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise BadInput("--bind", f"--bind is HOST:PORT, such as {DEFAULT_BIND}, not {bind!r}.")
    return host.strip("[]"), int(port)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Refused(
                f"Port {port} of {host} is taken, perhaps by a page that is served already. "
                f"Choose another: lineclear serve --bind {host}:{port + 1}."
            ) from error
        raise Refused(f"Nothing can be served at {host}:{port}: {error.strerror}.") from error


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()
