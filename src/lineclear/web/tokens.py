"""The tokens of one database: who may look, and who may act. Kept beside it, in a file only its
owner can read, and only as hashes.

Called by the guard at each request that brings one, and by ``lineclear token``. A file that
cannot be read is an error, never an empty list: that would open the door.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from lineclear.errors import BadInput, StoreRefused
from lineclear.files import Files
from lineclear.tasks import check_name

Role = Literal["control", "view"]


@dataclass(frozen=True, slots=True)
class Token:
    """One token as it is kept. ``name`` stands in the journal as the one who acted."""

    name: str
    role: Role
    sha256: str
    added_ms: int


class Tokens:
    """The tokens beside one database."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def path(self) -> Path:
        return self._files.folder / "tokens.json"

    def all(self) -> list[Token]:
        """Every token, in the order in which they were added. Raises ``StoreRefused``."""
        try:
            kept = json.loads(self.path.read_bytes())
            return [Token(**one) for one in kept["tokens"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreRefused(
                f"The tokens cannot be read ({error}). Nobody is let in. Mend {self.path}, or "
                f"remove it and make new ones with `lineclear token add`."
            ) from error

    def stamp(self) -> tuple[int, int] | None:
        """Another one after each change. One system call."""
        try:
            now = self.path.stat()
        except OSError:
            return None
        return now.st_ino, now.st_mtime_ns

    def find(self, text: str) -> Token | None:
        """The token that ``text`` is. Takes as long for a wrong one as for a right one."""
        given = _hash(text)
        found = [one for one in self.all() if hmac.compare_digest(one.sha256, given)]
        return found[0] if found else None

    def add(self, name: str, role: Role, *, now_ms: int) -> str:
        """Make one; answers its text, which is kept nowhere. Raises ``BadInput``."""
        check_name("name", name)
        text = secrets.token_urlsafe(32)

        def added(tokens: list[Token]) -> list[Token]:
            if any(one.name == name for one in tokens):
                raise BadInput("name", f"There is a token {name!r} already. Remove it first.")
            return [*tokens, Token(name, role, _hash(text), now_ms)]

        self._change(added)
        return text

    def remove(self, name: str) -> None:
        """It opens nothing from now on. Raises ``BadInput`` where there is none."""

        def left(tokens: list[Token]) -> list[Token]:
            others = [one for one in tokens if one.name != name]
            if len(others) == len(tokens):
                raise BadInput("name", f"There is no token {name!r}.")
            return others

        self._change(left)

    def _change(self, change: Callable[[list[Token]], list[Token]]) -> None:
        self._files.make(self._files.folder)
        with self._alone():
            tokens = change(self.all())
            text = json.dumps({"tokens": [asdict(one) for one in tokens]}, indent=1)
            new = self.path.with_name(".tokens.json.new")
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        folder = os.open(self._files.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
