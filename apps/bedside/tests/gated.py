"""A program for the tests: Bedside's render with voices that note what they say and wait at a gate.

``$GATE`` is a folder: ``until`` holds how many sentences may be said before a voice waits, ``said``
gets a line for each sentence begun and each finished.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from bedside import speech
from lineclear import Context, Queue

queue = Queue()


class Gated(speech.ToneVoice):
    """The tone, but short; one line when a sentence is begun and one when it is finished."""

    name = "ada"
    _SECONDS_A_CHARACTER = 0.005

    def speak(self, sentence: str) -> Any:
        gate = Path(os.environ["GATE"])
        with (gate / "said").open("a") as said:
            said.write(f"begun {self.name} {sentence}\n")
        while finished(gate) >= int((gate / "until").read_text()):
            time.sleep(0.005)
        samples = super().speak(sentence)
        with (gate / "said").open("a") as said:
            said.write(f"finished {self.name} {sentence}\n")
        return samples


class Other(Gated):
    name = "bea"


def finished(gate: Path) -> int:
    return len([line for line in (gate / "said").read_text().splitlines() if line[0] == "f"])


speech.VOICES.update(ada=Gated, bea=Other)


@queue.task(name="render", lane="render", key="{book}", unit="characters")
def render(ctx: Context, book: int, voice: str) -> dict[str, Any]:
    from bedside.home import home
    from bedside.render import render_book

    return render_book(ctx, book, voice, home=home())
