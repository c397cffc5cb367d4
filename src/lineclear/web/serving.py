"""One process that serves the page of one queue: its socket, its one event loop, its end.

Called by ``python -m lineclear.web``, which ``lineclear serve`` becomes. Idle, it makes no system
call. It never works on a job: it can be restarted at any time, and costs a running job nothing.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server

from lineclear.queue import Queue

BACKLOG = 512


class _Server(Server):
    """Granian on a socket that is bound already: requests wait in it while everything loads, and
    no second server can take its port, as those that bind by themselves allow.
    """

    def __init__(self, app: object, bound: socket.socket) -> None:
        super().__init__(
            app, interface=Interfaces.ASGINL, http=HTTPModes.http1, websockets=False,
            log_enabled=False, backlog=BACKLOG,
        )  # fmt: skip
        self._bound = bound

    def _init_shared_socket(self) -> None:
        make: Any = SocketHolder  # its stub knows no arguments
        self._shd: Any = make(fd=self._bound.fileno(), uds=False, backlog=BACKLOG)


def bind(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, int(port)), family=family, backlog=BACKLOG)


def serve(
    queue: Queue,
    bound: socket.socket,
    *,
    hosts: Iterable[str] = (),
    trust_network: bool = False,
) -> int:
    """Serve until asked to stop."""
    from lineclear.web.app import create_app

    app = create_app(queue, hosts=hosts, trust_network=trust_network)
    return asyncio.run(_serve(_Server(app, bound)))


async def _serve(server: _Server) -> int:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    serving = asyncio.create_task(server.serve())
    stopping = asyncio.create_task(ended.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
        sys.stderr.write("The server ended by itself.\n")
        return 1
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait({serving}, timeout=0.3)
    return 0
