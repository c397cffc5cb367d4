"""Every example in the README, the tutorial and the how-to pages runs as it is printed.

A page is run from top to bottom in an empty folder. A block fenced ``python`` that starts with a
comment naming a file is that file; another one is run by Python. In a block fenced ``console`` each
line after ``$`` is a command, which must succeed, and the lines below it, if any, are what it
prints (``...`` stands for anything). ``console second-terminal`` starts its command, which goes on
until the end of the page. Other blocks are for reading.
"""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted(ROOT.glob("docs/how-to/*.md"))]
FENCE = re.compile(r"^```(python|console)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.py)\n")
COMMAND_S = 60
STOP_S = 30


@dataclass(frozen=True)
class Block:
    kind: str
    second_terminal: bool
    text: str


def blocks(page: Path) -> list[Block]:
    return [
        Block(kind, "second-terminal" in info, text)
        for kind, info, text in FENCE.findall(page.read_text())
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.stem)
def test_examples_run_as_printed(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        for block in blocks(page):
            reader.follow(block)
    finally:
        reader.leave()


class Reader:
    """Somebody who types what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.terminals: list[subprocess.Popen[str]] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith("LINECLEAR_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.environment = {**kept, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}

    def follow(self, block: Block) -> None:
        if block.kind == "python":
            self.python(block.text)
            return
        for command, output in commands(block.text):
            if block.second_terminal:
                self.terminals.append(self.start(command))
            else:
                self.type(command, output)

    def python(self, text: str) -> None:
        named = NAMED.match(text)
        if named:
            (self.folder / named[1]).write_text(text)
        else:
            self.type(f"{sys.executable} -", "", typed=text)

    def type(self, command: str, wanted: str, typed: str = "") -> None:
        # To a file: what a command leaves running may hold on to a pipe.
        with (self.folder / ".printed").open("w+") as printed:
            code = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                input=typed,
                text=True,
                stdout=printed,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_S,
                check=False,
            ).returncode
            printed.seek(0)
            got = printed.read()
        assert code == 0, f"$ {command}\n{got}exit code {code}{self.said()}"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = not wanted or doctest.OutputChecker().check_output(wanted, got, flags)
        assert same, f"$ {command}\nThe page says:\n{wanted}\nIt printed:\n{got}"

    def start(self, command: str) -> subprocess.Popen[str]:
        with (self.folder / f".terminal-{len(self.terminals)}").open("w") as printed:
            return subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def said(self) -> str:
        return "".join(
            f"\n--- second terminal:\n{printed.read_text()}"
            for printed in sorted(self.folder.glob(".terminal-*"))
        )

    def leave(self) -> None:
        for terminal in self.terminals:
            terminal.send_signal(signal.SIGTERM)
        for terminal in self.terminals:
            try:
                terminal.wait(STOP_S)
            except subprocess.TimeoutExpired:
                terminal.kill()
                terminal.wait()
                pytest.fail(f"the second terminal did not end{self.said()}")


def commands(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            assert found, f"output before the first command: {line!r}"
            found[-1][1].append(line)
    return [(command, "".join(f"{line}\n" for line in lines)) for command, lines in found]
