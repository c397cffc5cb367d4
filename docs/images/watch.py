"""Draws ``watch.svg``: ``python docs/images/watch.py DATABASE`` while ``bedside demo`` runs on it.

The picture is what ``lineclear watch`` shows of that database at this moment, drawn by the same
code. Fonts are named and never fetched: nothing in the file leads anywhere else.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from lineclear import Queue
from lineclear.cli.live import Live

WIDTH, HEIGHT = 96, 11
ELSEWHERE = re.compile(r"\s*@font-face \{.*?\}|<!--.*?-->\n?", re.DOTALL)


def main(database: str) -> None:
    queue = Queue(database)
    live = Live(queue, [], lane=None, color=True)
    console = Console(
        record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True
    )
    live.console = console
    live.look()
    console.print(live.frame())
    queue.close()
    svg = console.export_svg(title="lineclear watch", theme=DIMMED_MONOKAI, unique_id="watch")
    svg = ELSEWHERE.sub("", svg).replace("Fira Code", "ui-monospace, Menlo, Consolas")
    svg = re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
    Path(__file__).with_name("watch.svg").write_text(svg)


if __name__ == "__main__":
    main(sys.argv[1])
