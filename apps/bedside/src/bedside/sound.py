"""Sentences to one audio file, with an exact timeline.

Every chapter is padded to whole AAC frames of 1,024 samples, so that chapters joined end to end
start exactly where the timeline says. Gain is measured over the chapter and bounded by a ceiling.
Used by the render only; knows no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedside.speech import Samples

FRAME = 1024
BIT_RATE = 64_000
LOUDNESS = 0.1
"""Root mean square of what is spoken, of full scale: about -20 dB."""
CEILING = 0.89
"""The highest peak, of full scale: about -1 dB."""

LEAD_MS = 300
SENTENCE_MS = 250
PARAGRAPH_MS = 700
BREAK_MS = 1500
END_MS = 1800
SHORTEST_MS = 1000


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence in a chapter: ``load`` gives its samples, ``before_ms`` is the silence ahead of
    it.
    """

    text: str
    before_ms: int
    load: Callable[[], Samples]


@dataclass(frozen=True, slots=True)
class Span:
    """Where one sentence stands in its chapter, in milliseconds from the chapter's start."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """One finished chapter: its length in samples (a multiple of ``FRAME``), its rate, its
    timeline.
    """

    samples: int
    rate: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Tags:
    """What a player shows."""

    title: str
    artist: str
    album: str
    number: int
    count: int


def encode(
    path: Path,
    sentences: list[Said],
    *,
    rate: int,
    tags: Tags,
    between: Callable[[], object] = lambda: None,
) -> Encoded:
    """Write the chapter to ``path`` as m4a (AAC, mono). The samples are loaded one sentence at a
    time, twice.

    ``between`` is called at every sentence and may raise; what is at ``path`` then is of no use.
    """
    import av

    gain = _gain(said.load() for said in sentences)
    spans: list[Span] = []
    total = 0
    with av.open(str(path), "w", format="ipod", options={"movflags": "+faststart"}) as container:
        container.metadata.update(
            title=tags.title,
            artist=tags.artist,
            album=tags.album,
            track=f"{tags.number}/{tags.count}",
            genre="Audiobook",
        )
        stream = container.add_stream("aac", rate=rate, layout="mono")
        stream.bit_rate = BIT_RATE
        for at, block in enumerate(_frames(_track(sentences, rate, gain, spans, between))):
            frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), format="s16", layout="mono")
            frame.sample_rate = rate
            frame.pts = at * FRAME
            total += FRAME
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return Encoded(total, rate, tuple(spans))


def decoded_ms(path: Path) -> float:
    """How long the file really plays, found by decoding all of it."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        count = sum(frame.samples for frame in container.decode(stream))
        return count * 1000 / stream.rate


def _track(
    sentences: list[Said], rate: int, gain: float, spans: list[Span], between: Callable[[], object]
) -> Iterator[Samples]:
    """The chapter's samples in order; fills ``spans`` on the way."""
    import numpy as np

    at = 0

    def silence(milliseconds: int) -> Samples:
        return np.zeros(round(milliseconds * rate / 1000), dtype=np.int16)

    for said in sentences:
        between()
        before = silence(said.before_ms)
        samples = np.clip(said.load() * gain, -32768, 32767).astype(np.int16)
        start = at + len(before)
        at = start + len(samples)
        spans.append(Span(said.text, round(start * 1000 / rate), round(at * 1000 / rate)))
        yield before
        yield samples
    yield silence(END_MS if sentences else SHORTEST_MS)


def _frames(track: Iterable[Samples]) -> Iterator[Samples]:
    import numpy as np

    rest = np.zeros(0, dtype=np.int16)
    for part in track:
        rest = np.concatenate((rest, part))
        whole = len(rest) // FRAME * FRAME
        yield from rest[:whole].reshape(-1, FRAME)
        rest = rest[whole:]
    if len(rest):
        yield np.pad(rest, (0, FRAME - len(rest)))


def _gain(parts: Iterable[Samples]) -> float:
    import numpy as np

    energy, count, peak = 0.0, 0, 0
    for part in parts:
        loud = part.astype(np.float64)
        energy += float(np.dot(loud, loud))
        count += len(part)
        peak = max(peak, int(np.abs(loud).max(initial=0)))
    if not energy:
        return 1.0
    level = (energy / count) ** 0.5 / 32768
    return float(min(LOUDNESS / level, CEILING * 32768 / peak))
