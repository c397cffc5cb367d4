"""A real server process on a database, and readers of its live stream that fold what they hear.

For the tests of the stream, the hub and the log; ``bench/page.py`` has its own clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
from tests.helpers import SOURCES, wait_until

T = TypeVar("T")
Public = dict[str, Any]
ENDED = 10

DRIVER = """
import sys
from pathlib import Path
from lineclear import Queue
from lineclear.web import serving, hub, stream
{patch}
queue = Queue(Path(sys.argv[1]), by="tester")
serving.run(queue, bind="127.0.0.1:0")
"""


@dataclass(eq=False)
class Server:
    """One life of a server: a real process."""

    process: subprocess.Popen[str]
    url: str

    def get(self, path: str, **params: Any) -> httpx.Response:
        return httpx.get(f"{self.url}/{path}", params=params, timeout=30)

    def state(self, **params: Any) -> Public:
        answer = self.get("api/v1/state", marks=1, **params)
        assert answer.status_code == 200, answer.text
        state: Public = answer.json()
        return state

    @contextmanager
    def watch(self, **more: Any) -> Iterator[Watcher]:
        watcher = self.open(**more)
        try:
            yield watcher
        finally:
            watcher.close()

    def open(
        self, *, headers: dict[str, str] | None = None, fold: Fold | None = None, **params: Any
    ) -> Watcher:
        """``fold``: what is known from before."""
        url = f"{self.url}/api/v1/stream"
        return Watcher(url, {"marks": 1, **params}, headers or {}, fold or Fold())


@contextmanager
def server(database: Path, *, patch: str = "") -> Iterator[Server]:
    """``patch``: what the small program changes before it serves, such as a constant."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER.replace("{patch}", patch), str(database)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http")).rstrip("/.")
        made = Server(process, url)
        wait_until(lambda: _answers(made), what="the server answers")
        yield made
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def _answers(made: Server) -> bool:
    try:
        return made.get("-/health").status_code == 200
    except httpx.TransportError:
        return False


@dataclass(eq=False)
class Fold:
    """What a page knows: rows, the order of each lane, the sentences. Events replace."""

    rows: dict[int, Public] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    queue: Public = field(default_factory=dict)

    def take(self, event: str, data: Public) -> None:
        match event:
            case "snapshot":
                lists = [*data["running"], *data["waiting"], *data["ended"]]
                self.rows = {row["id"]: row for row in lists}
                self.lines = {lane["name"]: [] for lane in data["lanes"]}
                for row in data["waiting"]:
                    self.lines[row["lane"]].append(row["id"])
                self.queue = {key: data[key] for key in SENTENCES}
            case "job":
                self.rows[data["id"]] = data
            case "progress":
                self.rows[data["id"]] = {**self.rows[data["id"]], **data}
            case "gone":
                self.rows.pop(data["id"], None)
            case "order":
                self.lines = {**self.lines, **data["lanes"]}
            case "queue":
                self.queue = data

    def shown(self) -> Public:
        """Running, waiting and ended as the page lists them, and the sentences."""
        every = list(self.rows.values())
        running = [row for row in every if row["state"] == "running"]
        over = [row for row in every if row["ended_ms"] is not None and not row["hidden"]]
        over.sort(key=lambda row: (row["ended_ms"], row["id"]), reverse=True)
        return {
            "running": sorted(running, key=lambda row: (row["started_ms"], row["id"])),
            "waiting": {lane: [self.rows[job] for job in ids] for lane, ids in self.lines.items()},
            "ended": over[:ENDED],
            **self.queue,
        }


SENTENCES = ("sentence", "tone", "unserved", "lanes", "warnings")


def shown(state: Public) -> Public:
    """A fresh snapshot, listed the same way."""
    fold = Fold()
    fold.take("snapshot", state)
    return fold.shown()


class Watcher:
    """One stream, read by a thread of its own."""

    def __init__(self, url: str, params: Public, headers: dict[str, str], fold: Fold) -> None:
        self.events: list[tuple[str, str, Public]] = []
        """(event, id, data)"""
        self.fold = fold
        self.cursor = ""
        self.status = 0
        self.headers: Public = {}
        self.problem: Public = {}
        self.over = False
        self.trouble = ""
        self._closing = False
        self._client = httpx.Client(timeout=60)
        self._answer: httpx.Response | None = None
        request = self._client.build_request("GET", url, params=params, headers=headers)
        self._thread = threading.Thread(target=self._read, args=[request], daemon=True)
        self._thread.start()

    def _read(self, request: httpx.Request) -> None:
        try:
            self._answer = answer = self._client.send(request, stream=True)
            self.headers = dict(answer.headers)
            if answer.status_code != 200:
                answer.read()
                self.problem = answer.json()
                self.status = answer.status_code
                return
            self.status = 200
            event, number = "", ""
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    event, number = value, ""
                elif name == "id":
                    number = value
                elif name == "data":
                    data = json.loads(value)
                    self.fold.take(event, data)
                    self.cursor = number or self.cursor
                    self.events.append((event, number, data))
        except Exception as error:
            self.trouble = "" if self._closing else repr(error)
        finally:
            self.over = True

    def of(self, kind: str, **fields: Any) -> list[Public]:
        """The data of all events of a kind with these values."""
        return [
            data
            for event, _, data in self.events
            if event == kind and all(data.get(key) == value for key, value in fields.items())
        ]

    def until(
        self, condition: Callable[[], T | None], *, what: str = "", timeout_s: float = 15
    ) -> T:
        try:
            answer = wait_until(condition, timeout_s=timeout_s, what=what)
        except AssertionError as error:
            last = "\n".join(str(each)[:300] for each in self.events[-8:])
            raise AssertionError(f"{error}\n{self.status} {self.trouble}\n{last}") from None
        assert answer is not None
        return answer

    def until_event(self, kind: str, **fields: Any) -> Public:
        return self.until(
            lambda: next(iter(self.of(kind, **fields)), None), what=f"{kind} {fields}"
        )

    def begun(self) -> Watcher:
        """Until the state is known."""
        self.until(
            lambda: (self.fold.queue and self.fold.rows is not None) or self.over, what="a state"
        )
        return self

    def close(self) -> None:
        """Go away, as a closed tab does."""
        self._closing = True
        if self._answer is not None:
            network = self._answer.extensions.get("network_stream")
            sock = network.get_extra_info("socket") if network else None
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(2)
        self._thread.join(10)
        self._client.close()
