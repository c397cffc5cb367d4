"""The queue and its one task. Imported by the command line, the worker's child and a page: it must
stay light.

``lineclear worker`` runs what is submitted here. What a render needs is frozen
at submit: the book and the voice. The heavy work is imported inside the task, in the child only.
"""

from __future__ import annotations

from typing import Any

from bedside.home import database
from lineclear import Context, Queue

queue = Queue(database())


@queue.task(lane="render", key="{book}", title="Render book {book}", unit="characters", nice=5)
def render(ctx: Context, book: int, voice: str = "joe") -> dict[str, Any]:
    """Render a book of the library, chapter by chapter."""
    from bedside.home import home
    from bedside.render import render_book

    return render_book(ctx, book, voice, home=home())
