"""The render in this process, where a test holds the voice: odd sentences and chapters, cancels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bedside import speech
from bedside.library import Library
from bedside.render import FAILURES_IN_A_ROW, render_book
from bedside.shelf import take_in
from bedside.sound import decoded_ms
from bedside.speech import ToneVoice, VoiceError
from lineclear import Cancelled, Context, wire
from lineclear.clock import SystemClock


@dataclass
class Desk:
    """Stands for the supervisor: keeps every step it is told of."""

    steps: dict[str, Any] = field(default_factory=dict)
    runs: int = 0

    def send(self, _: wire.Moved) -> None:
        pass

    def ask(self, question: wire.Question) -> wire.Answer:
        if isinstance(question, wire.StepDone):
            self.steps[question.name] = {"weight": question.weight, "result": question.result}
        return wire.Answer(1, "kept")

    def context(self, folder: Path) -> Context:
        self.runs += 1
        for name in ("staging", "kept"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        run = wire.Run(
            1, self.runs, "render", "render", "bedside.jobs:render", "{}", "1", "Render",
            "characters", dict(self.steps), str(folder / "staging"), str(folder / "kept"), None, 0,
        )  # fmt: skip
        return Context(run, self, clock=SystemClock())


class Noted(ToneVoice):
    name = "noted"
    _SECONDS_A_CHARACTER = 0.001
    said: ClassVar[Counter[str]] = Counter()

    def speak(self, sentence: str) -> Any:
        self.said[sentence] += 1
        return super().speak(sentence)


@pytest.fixture
def voices(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    Noted.said = Counter()
    monkeypatch.setattr(speech, "VOICES", {"noted": Noted})
    return speech.VOICES


@pytest.fixture
def library(home: Path):
    with Library.open(home) as opened:
        yield opened


def book_file(folder: Path, *chapters: list[str]) -> str:
    path = folder / "book.html"
    path.write_text(
        "".join(
            f"<h2>Chapter {at}</h2>" + "".join(f"<p>{sentence}</p>" for sentence in sentences)
            for at, sentences in enumerate(chapters, 1)
        )
    )
    return str(path)


def test_case_g9_cancelled_at_the_end_of_each_sentence_none_is_said_twice(
    library, voices, tmp_path: Path
) -> None:
    chapters = [[f"Sentence {at} of {n}." for at in range(49)] for n in range(1, 5)]
    take_in(library, book_file(tmp_path, *chapters))
    desk = Desk()
    times: dict[str, int] = {}
    holder: list[Context] = []

    class Cancelling(Noted):
        def speak(self, sentence: str) -> Any:
            samples = super().speak(sentence)
            holder[-1].stop(wire.Stop("cancel", "a test"))
            return samples

    voices["noted"] = Cancelling
    cancelled = 0
    while True:
        holder.append(desk.context(tmp_path / "run"))
        try:
            render_book(holder[-1], 1, "noted", home=library.home)
        except Cancelled:
            cancelled += 1
        else:
            break
        for path in (library.home / "audio").rglob("*.m4a"):
            assert times.setdefault(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert cancelled == 200
    assert set(Noted.said.values()) == {1} and len(Noted.said) == 200
    assert len(times) == 3 and len(library.chapters(library.get(1))) == 4


def test_b14_a_sentence_the_voice_cannot_say_is_a_silence_and_a_warning(
    library, voices, tmp_path: Path
) -> None:
    class Odd(Noted):
        def speak(self, sentence: str) -> Any:
            if "dreadful" in sentence:
                raise RuntimeError("no such phoneme")
            if "nothing" in sentence:
                return np.zeros(0, dtype=np.int16)
            return super().speak(sentence)

    voices["noted"] = Odd
    take_in(
        library, book_file(tmp_path, ["It was late.", "A dreadful thing.", "For nothing.", "Done."])
    )
    made = render_book(Desk().context(tmp_path / "run"), 1, "noted", home=library.home)
    assert made["warnings"] == 2
    (chapter,) = library.chapters(library.get(1))
    assert "Not spoken: A dreadful thing. (RuntimeError: no such phoneme)" in chapter.warnings[0]
    spans = {hit.text: hit.end_ms - hit.start_ms for hit in library.passages(library.get(1))}
    assert spans["A dreadful thing."] == 500 and len(spans) == 5


def test_b14_a_voice_that_fails_at_everything_fails_the_render(
    library, voices, tmp_path: Path
) -> None:
    class Broken(Noted):
        def speak(self, sentence: str) -> Any:
            raise RuntimeError("no model")

    voices["noted"] = Broken
    take_in(library, book_file(tmp_path, [f"Sentence {at}." for at in range(30)]))
    with pytest.raises(VoiceError, match=f"failed at {FAILURES_IN_A_ROW} sentences in a row"):
        render_book(Desk().context(tmp_path / "run"), 1, "noted", home=library.home)
    assert library.get(1).done_ms is None and library.chapters(library.get(1)) == []


def test_b02_a_chapter_with_nothing_to_say_is_a_short_silence(
    library, voices, tmp_path, make_epub
) -> None:
    pages = {
        "a.xhtml": "<h2>1</h2><p>One.</p>",
        "b.xhtml": '<div id="x"><img src="x.png"/></div>',
        "c.xhtml": "<h2>\N{CAT FACE}</h2><hr/>",
        "d.xhtml": "<h2>4</h2><p>Four.</p>",
    }
    path = make_epub(
        pages,
        contents={"a.xhtml": "1", "b.xhtml": "\N{CAT FACE}", "c.xhtml": "* * *", "d.xhtml": "4"},
    )
    take_in(library, str(path))
    render_book(Desk().context(tmp_path / "run"), 1, "noted", home=library.home)
    chapters = library.chapters(library.get(1))
    assert [chapter.number for chapter in chapters] == [1, 2, 3, 4]
    for silent in chapters[1:3]:
        assert silent.duration_ms == pytest.approx(1000, abs=50)
        assert decoded_ms(library.home / silent.file) == pytest.approx(silent.duration_ms, abs=1)


def test_b05_a_chapter_that_went_missing_is_made_again_though_its_step_is_recorded(
    library, voices, tmp_path: Path
) -> None:
    take_in(library, book_file(tmp_path, ["One."], ["Two."], ["Three."]))
    desk = Desk()
    render_book(desk.context(tmp_path / "run"), 1, "noted", home=library.home)
    before = [hit.start_ms for hit in library.passages(library.get(1))]
    (library.home / library.chapters(library.get(1))[1].file).unlink()
    render_book(desk.context(tmp_path / "run"), 1, "noted", home=library.home)
    row = library.get(1)
    assert [hit.start_ms for hit in library.passages(row)] == before and row.done_ms is not None
    assert all((library.home / chapter.file).exists() for chapter in library.chapters(row))
    assert Noted.said["Two."] == 2 and Noted.said["One."] == 1


def test_b05_a_crash_between_file_and_row_changes_nothing(
    library, voices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Died

    take_in(library, book_file(tmp_path, ["One.", "And more."]))
    desk = Desk()
    with monkeypatch.context() as patch:
        patch.setattr(Library, "publish_chapter", dies)
        with pytest.raises(Died):
            render_book(desk.context(tmp_path / "run"), 1, "noted", home=library.home)
    assert (library.home / "audio/1/noted/01.m4a").exists()
    assert library.chapters(library.get(1)) == [] and desk.steps == {}
    render_book(desk.context(tmp_path / "run"), 1, "noted", home=library.home)
    assert len(library.chapters(library.get(1))) == 1 and set(Noted.said.values()) == {1}
