"""Voices, pieces and the encoder: what is written is what is heard, to the millisecond."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bedside.pieces import Pieces
from bedside.sound import CEILING, FRAME, Said, Tags, decoded_ms, encode
from bedside.speech import ToneVoice, VoiceError, load_voice

TAGS = Tags("The Lamp", "Nobody", "A Small Book", 2, 3)


def said(voice: ToneVoice, *sentences: str) -> list[Said]:
    return [Said(text, 250, partial(voice.speak, text)) for text in sentences]


@pytest.mark.parametrize("count", [0, 1, 9, 60])
def test_b02_the_file_plays_as_long_as_the_timeline_says(tmp_path: Path, count: int) -> None:
    path = tmp_path / "01.m4a"
    voice = ToneVoice()
    sentences = [f"sentence number {at} of the night" for at in range(count)]
    made = encode(path, said(voice, *sentences), rate=voice.sample_rate, tags=TAGS)
    assert made.samples % FRAME == 0 and made.samples >= voice.sample_rate - FRAME
    assert abs(decoded_ms(path) - made.samples * 1000 / made.rate) <= 50
    assert [span.text for span in made.spans] == sentences
    at = 0
    for span in made.spans:
        assert span.start_ms - at == pytest.approx(250, abs=1) and span.end_ms > span.start_ms
        at = span.end_ms


def test_b02_the_sentence_is_heard_where_the_timeline_says(tmp_path: Path) -> None:
    import av

    path = tmp_path / "01.m4a"
    voice = ToneVoice()
    made = encode(path, said(voice, "one", "two two two two"), rate=voice.sample_rate, tags=TAGS)
    with av.open(str(path)) as container:
        heard = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
        tags = container.metadata
    assert (tags["title"], tags["artist"], tags["album"], tags["track"]) == (
        "The Lamp",
        "Nobody",
        "A Small Book",
        "2/3",
    )
    loud = np.flatnonzero(np.abs(heard) > 0.02) * 1000 / made.rate
    assert loud[0] == pytest.approx(made.spans[0].start_ms, abs=30)
    assert loud[-1] == pytest.approx(made.spans[-1].end_ms, abs=30)
    gap = loud[(loud > made.spans[0].end_ms + 30) & (loud < made.spans[1].start_ms - 30)]
    assert not len(gap)
    assert np.abs(heard).max() <= CEILING + 0.05


def test_b02_quiet_and_loud_voices_come_out_alike(tmp_path: Path) -> None:
    import av

    levels = []
    for loudness in (0.02, 0.9):
        tone = (np.sin(np.arange(22_050) / 12) * 32767 * loudness).astype(np.int16)
        path = tmp_path / "x.m4a"
        encode(path, [Said("x", 0, tone.copy)], rate=22_050, tags=TAGS)
        with av.open(str(path)) as container:
            heard = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
        levels.append(float(np.sqrt(np.mean(heard[2000:20_000] ** 2))))
    assert levels[0] == pytest.approx(levels[1], rel=0.05) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("damage", ["cut", "zeroed", "one bit", "empty", "wrong length"])
def test_case_g6_a_damaged_piece_is_found_out(tmp_path: Path, damage: str) -> None:
    voice = ToneVoice()
    pieces = Pieces(tmp_path / "chapter-1", voice)
    samples = voice.speak("Line clear.")
    assert pieces.read("Line clear.") is None
    pieces.write("Line clear.", samples)
    pieces.write("Another.", samples)
    kept = pieces.read("Line clear.")
    assert kept is not None and np.array_equal(kept, samples)
    path = pieces.path("Line clear.")
    data = path.read_bytes()
    path.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "zeroed": bytes(len(data)),
            "one bit": data[:-1] + bytes([data[-1] ^ 1]),
            "empty": b"",
            "wrong length": data + b"\0\0",
        }[damage]
    )
    assert pieces.read("Line clear.") is None
    assert pieces.read("Another.") is not None
    assert sorted(each.suffix for each in path.parent.iterdir()) == [".piece", ".piece"]


def test_case_g5_a_piece_belongs_to_its_text_voice_and_version(tmp_path: Path) -> None:
    class Newer(ToneVoice):
        version = "2"

    class Other(ToneVoice):
        name = "other"

    pieces = Pieces(tmp_path, ToneVoice())
    pieces.write("Line clear.", ToneVoice().speak("Line clear."))
    assert pieces.read("Line clear!") is None
    assert Pieces(tmp_path, Newer()).read("Line clear.") is None
    assert Pieces(tmp_path, Other()).read("Line clear.") is None


def test_e28_an_unknown_voice_is_a_sentence() -> None:
    with pytest.raises(VoiceError, match='there is no voice "ada"; there are: joe, tone'):
        load_voice("ada")
