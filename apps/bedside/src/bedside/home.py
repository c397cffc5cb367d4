"""Where things are: the home folder, the queue's database, the address books are fetched from.
Environment only.
"""

from __future__ import annotations

import os
from pathlib import Path

GUTENBERG = "https://gutenberg.pglaf.org"
"""The mirror Project Gutenberg keeps for programs; its main site asks them to stay away."""


def home() -> Path:
    """``$BEDSIDE_HOME``, else the platform's folder for a user's data."""
    said = os.environ.get("BEDSIDE_HOME")
    if said:
        return Path(said).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("bedside", appauthor=False)


def database() -> Path:
    """``$BEDSIDE_DATABASE``, else beside the library."""
    said = os.environ.get("BEDSIDE_DATABASE")
    return Path(said).expanduser().absolute() if said else home() / "lineclear.db"


def gutenberg() -> str:
    """``$BEDSIDE_GUTENBERG``, else the mirror; without a slash at the end."""
    return os.environ.get("BEDSIDE_GUTENBERG", GUTENBERG).rstrip("/")
