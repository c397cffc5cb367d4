"""Finished sentences of the chapter in flight, so that a stop or a crash costs one sentence and not
the chapter.

A piece is found by what it holds: the text, the voice, the voice's version, and this file's own
format. Other words, another voice or another program never meet an old piece. Each is written
beside its place and renamed into it, and carries a checksum; it is not synced to the disk, since
one that a power cut damaged is found out and made again. Used by the render only; nothing here is
audible before the chapter is whole.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedside.speech import Samples, Voice

FORMAT = "bedside piece 1"
_MAGIC = b"BSP1"
_HEADER = struct.Struct("<4sI32s")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one chapter, in a folder of their own."""

    folder: Path
    voice: Voice

    def path(self, said: str) -> Path:
        """Where the piece for what is said stands, made or not."""
        voice = self.voice
        named = "\0".join((FORMAT, voice.name, voice.version, str(voice.sample_rate), said))
        return (
            self.folder
            / f"{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()}.piece"
        )

    def read(self, said: str) -> Samples | None:
        """The samples kept for what is said; ``None`` when there are none or they are damaged."""
        import numpy as np

        try:
            data = self.path(said).read_bytes()
        except OSError:
            return None
        if len(data) < _HEADER.size:
            return None
        magic, count, digest = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if magic != _MAGIC or len(body) != 2 * count or hashlib.sha256(body).digest() != digest:
            return None
        return np.frombuffer(body, dtype="<i2").astype(np.int16)

    def write(self, said: str, samples: Samples) -> None:
        """Keep the samples, whole or not at all."""
        body = samples.astype("<i2").tobytes()
        path = self.path(said)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_bytes(_HEADER.pack(_MAGIC, len(samples), hashlib.sha256(body).digest()) + body)
        beside.replace(path)

    def forget(self) -> None:
        """Remove all pieces of the chapter: it is published, or was never begun."""
        shutil.rmtree(self.folder, ignore_errors=True)
