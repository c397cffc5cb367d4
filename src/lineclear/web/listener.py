"""Granian on a socket that is bound already, in the event loop of its caller: serving.py.

Requests wait in that socket while everything loads, and no second server can share its port, as
two can that are left to bind by themselves.
"""

from __future__ import annotations

import socket
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server import embed

CONNECTIONS = 512


class Server(embed.Server):
    """One application on one socket."""

    def __init__(self, app: object, bound: socket.socket, base_path: str) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            log_enabled=False,
            backlog=CONNECTIONS,
            url_path_prefix=base_path or None,
        )
        self._bound = bound

    def _init_shared_socket(self) -> None:
        make: Any = SocketHolder  # its stub knows no arguments
        self._shd: Any = make(fd=self._bound.detach(), uds=False, backlog=CONNECTIONS)

    def end(self) -> None:
        """Take no more requests; ``serve`` returns once those under way are answered."""
        self.stop()  # type: ignore[no-untyped-call]
