"""A folder with an application and its database, and the command line in it: as a real process
(``run``), or quicker in this one (``call``)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from tests.helpers import SOURCES, wait_until

from lineclear import Queue
from lineclear.cli import main

PROGRAM = "import sys; from lineclear.cli import main; sys.exit(main())"
APP = """
import time
from lineclear import Context, Queue

queue = Queue()

@queue.task(lane="render", key="{book}", title="Render {book}", unit="pages")
def render(ctx: Context, book: int, voice: str = "joe", pages: int = 2, pause_s: float = 0.0):
    for page in ctx.steps(range(pages), name=str, weight=lambda page: 1, unit="pages"):
        print("page", page, flush=True)
        time.sleep(pause_s)
    return {"pages": pages}

@queue.task(lane="other")
def fail(ctx: Context, why: str = "voice file missing"):
    print("so it ends")
    raise RuntimeError(why)

@queue.task(lane="other", title="{text}")
def say(ctx: Context, text: str = ""):
    print(text)
"""


@dataclass
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


class Place:
    """One folder, its queue, and the command line there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Under a name of its own: a module is loaded once in a process.
        self.app = folder / f"books_{token_hex(4)}.py"
        self.app.write_text(APP)
        self.database = folder / "line.db"
        self.queue = Queue(self.database)

    def given(self, args: tuple[object, ...]) -> list[str]:
        return ["--app", f"{self.app}:queue", "--database", str(self.database), *map(str, args)]

    @property
    def environment(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if "LINECLEAR" not in name}
        return plain | {"PYTHONPATH": str(SOURCES), "LINECLEAR_KILL_S": "1"}

    def run(self, *args: object, bare: bool = False, env: dict[str, str] | None = None) -> Said:
        """A real process; ``bare``: without the options before the verb."""
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *(map(str, args) if bare else self.given(args))],
            capture_output=True, text=True, cwd=self.folder, timeout=60, check=False,
            env=env or self.environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def call(self, *args: object) -> Said:
        """The same in this process; nobody is there to answer a question."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(self.given(args))
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
        return Said(code, out.getvalue(), err.getvalue())

    @contextmanager
    def start(self, *args: object, **more: Any) -> Iterator[subprocess.Popen[str]]:
        """A command that stays, ended and reaped with the block."""
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *self.given(args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=self.environment, **more,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def worker(self, *args: object) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that serves, stopped in order and reaped with the block."""
        log = self.folder / "worker.log"
        with log.open("w") as heard:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self.given(("worker", *args))],
                stdin=subprocess.DEVNULL, stdout=heard, stderr=heard,
                cwd=self.folder, env=self.environment,
            )  # fmt: skip
            try:
                wait_until(
                    lambda: any(each.alive for each in self.queue.workers()),
                    timeout_s=30, what="a worker that serves",
                )  # fmt: skip
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(30)
                finally:
                    process.kill()
                    process.wait()

    def add(self, task: str = "render", **args: Any) -> int:
        said = self.call("add", task, *(f"{name}={value}" for name, value in args.items()), "-q")
        assert said.code == 0, said.err
        return int(said.out)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.queue.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One place for all tests of a module that change nothing in it."""
    made = Place(tmp_path_factory.mktemp("shared"))
    yield made
    made.queue.close()
