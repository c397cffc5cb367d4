"""The live view of ``watch`` on a terminal: sentence, running with bars, waiting, last ended, keys.

Uses Rich to draw and nothing to poll: it sleeps until the bell rings or a key comes.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.text import Text

from lineclear import terms, view, words
from lineclear.cli import table
from lineclear.cli.armed import LATEST_S, Armed, press, still
from lineclear.cli.watch import LOOK_AGAIN_S, SHORTEST_S
from lineclear.errors import LineClearError, StoreError
from lineclear.figures import printable
from lineclear.job import State
from lineclear.queue import Queue
from lineclear.worker.logreader import read_lines

STYLES = {"muted": "dim", "accent": "cyan", "ok": "green", "warn": "yellow", "bad": "red"}
KEYS = "q quit · j k select · p pause · s stop · r retry · x remove · [ ] move · u undo · l log"
FEW_KEYS = "q quit · j k select · s stop · ? all keys"
BAR = 24


class Live:
    """One live view: what is selected, what is armed, what was said last."""

    def __init__(self, queue: Queue, ids: list[int], *, lane: str | None, color: bool) -> None:
        self.queue, self.ids, self.lane = queue, ids, lane
        self.console = Console(no_color=not color, highlight=False)
        self.seen: view.Picture | None = None
        self.rows: list[view.Row] = []
        self.selected: int | None = None
        self.picked = False
        self.armed: Armed | None = None
        self.message = ""
        self.log_of: int | None = ids[0] if len(ids) == 1 else None

    def run(self) -> None:
        """Until ``q``, Ctrl-C, or the end of the jobs named."""
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        try:
            tty.setcbreak(keyboard)
            with (
                self.queue.changes() as listener,
                Screen(console=self.console, screen=True, auto_refresh=False) as screen,
            ):
                while True:
                    self.look()
                    screen.update(self.frame(), refresh=True)
                    if self.ids and all(row.job.ended for row in self.rows):
                        return
                    drawn_s = time.monotonic()
                    waits = [listener.again_s, LATEST_S if self.armed else None, self._ages_s()]
                    timeout = min((wait for wait in waits if wait is not None), default=None)
                    ready, _, _ = select.select([keyboard, listener], [], [], timeout)
                    if keyboard in ready:
                        if not self._key(os.read(keyboard, 16).decode(errors="replace")):
                            return
                    elif listener in ready:
                        # What rings again meanwhile is seen in the same look.
                        time.sleep(max(0.0, SHORTEST_S - (time.monotonic() - drawn_s)))
                        listener.drain()
        finally:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

    def _ages_s(self) -> float | None:
        """When to look though nothing rang: something shown here grows older by the clock alone."""
        ages = any(
            row.job.state is State.RUNNING or any(why.at_ms for why in row.reasons)
            for row in self.rows
        )
        return LOOK_AGAIN_S if ages else None

    def look(self) -> None:
        """Read what is to be shown."""
        try:
            if self.ids:
                get = view.Gatherer(self.queue)
                self.rows = [get.row(self.queue.get(job_id)) for job_id in self.ids]
            else:
                self.seen = view.picture(self.queue, lane=self.lane)
                self.rows = self.seen.rows
        except StoreError as error:
            self.message = f"What you see is from before: {error}"
            return
        states = {row.job.id: str(row.job.state) for row in self.rows}
        self.armed = still(self.armed, states, now_s=time.monotonic())
        if self.selected not in states or not (self.picked or self.armed):
            self.selected = self.rows[0].job.id if self.rows else None

    # Drawing

    def frame(self) -> Group:
        """The whole picture, as high as the terminal at most."""
        width, height = self.console.size
        drawn = table.Table(self.rows, width=width - 2, color=False)
        lines: list[Text] = []
        if self.ids or self.seen is None:
            lists = [("", self.rows)]
        else:
            lines.append(Text(self.seen.headline, style="bold"))
            lists = table.sections(self.seen)
        for heading, rows in lists:
            lines += [Text(""), Text(heading, style="bold")] if heading else []
            for row in rows:
                lines += self._lines(row, drawn, width)
        lines += self._log(max(0, height - len(lines) - 4))
        del lines[max(1, height - 3) :]
        keys = KEYS if len(KEYS) <= width else FEW_KEYS
        foot = self.message or table.cut(keys, width)
        return Group(*lines, Text(""), Text(foot, style="dim"))

    def _lines(self, row: view.Row, drawn: table.Table, width: int) -> list[Text]:
        """A row; below it while it runs, its bar and how far it is, or what a second press does."""
        mark = "> " if row.job.id == self.selected else "  "
        runs = row.job.state is State.RUNNING
        head, word, tail = drawn.line(row, progress=not runs)
        below = Text("    ")
        if self.armed is not None and self.armed.job_id == row.job.id:
            below.append(self._stakes(row), STYLES["bad"])
        elif runs:
            part = words.share(row.job)
            if part is not None and width >= table.NARROW:
                size = min(BAR, width // 5)
                full = int(part * size)
                below.append("█" * full, STYLES["accent"]).append("░" * (size - full), "dim")
                below.append(" ")
            below.append(" · ".join(filter(None, (row.progress, printable(row.job.note)))))
        lines = [Text.assemble(mark, head, (word, STYLES[terms.WORDS[row.seen][2]]), tail)]
        lines += [below] if below.plain.strip() else []
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return lines

    def _stakes(self, row: view.Row) -> str:
        kept = row.job.kept
        stakes = words.at_stake(row.job, kept=kept, now_ms=self.queue.now_ms()) if kept else ""
        return f"Press again to stop. {stakes}".rstrip()

    def _log(self, room: int) -> list[Text]:
        row = next((row for row in self.rows if row.job.id == self.log_of), None)
        if row is None or not row.job.attempt or room < 3:
            return []
        path = self.queue.log_path(row.job.id, row.job.attempt)
        tail = [printable(line.text) for line in read_lines(path, last=min(room - 2, 15))]
        texts = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in tail]
        texts = texts or [Text("No output yet.", style="dim")]
        return [Text(""), Text(f"Log of {row.job.id}", style="bold"), *texts]

    # Keys

    def _key(self, key: str) -> bool:
        """Do what a key says; false ends the view."""
        self.message = ""
        if key in ("q", "\x04"):
            return False
        if key == "\x1b":
            self.armed = None
        elif key in ("j", "k") and self.rows:
            self._select(1 if key == "j" else -1)
        elif key == "?":
            self.message = f"{KEYS} · Esc disarm. A stop wants s twice."
        elif key == "u":
            self._do(self._undo)
        else:
            row = next((row for row in self.rows if row.job.id == self.selected), None)
            if row is not None:
                self._act(key, row)
        return True

    def _select(self, by: int) -> None:
        ids = [row.job.id for row in self.rows]
        at = ids.index(self.selected) if self.selected in ids else 0
        self.selected = ids[max(0, min(len(ids) - 1, at + by))]
        self.armed, self.picked = None, True

    def _act(self, key: str, row: view.Row) -> None:
        job, queue = row.job, self.queue
        if key == "s":
            self._stop(row)
            return
        self.armed = None
        if key == "l":
            self.log_of = None if self.log_of == job.id else job.id
        elif key == "p":
            self._do(lambda: (queue.release if job.held_ms is not None else queue.hold)(job.id))
        elif key == "r":
            self._do(lambda: queue.retry(job.id))
        elif key == "x":
            self._do(lambda: queue.remove(job.id), "Removed. Back with u.")
        elif key in ("[", "]"):
            self._do(lambda: queue.move(job.id, "up" if key == "[" else "down"))

    def _stop(self, row: view.Row) -> None:
        now_s = time.monotonic()
        if row.job.ended:
            self.message = "It has ended already."
            return
        state = str(row.job.state)
        what, self.armed = press(self.armed, "stop", job_id=row.job.id, state=state, now_s=now_s)
        if what == "go":
            self._do(lambda: self.queue.cancel(row.job.id, if_state=row.job.state))

    def _undo(self) -> None:
        done = self.queue.undo()
        self.message = "Undone." if done else "There is nothing to undo."

    def _do(self, act: Callable[[], object], said: str = "") -> None:
        try:
            act()
            self.message = self.message or said
        except LineClearError as error:
            self.message = printable(str(error))
