"""The folder beside the database: what is where, and with whose rights."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse.sshfs", "afs", "ceph"}
"""File systems on which SQLite's locks or shared memory are not to be trusted."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths beside ``database``."""

    database: Path

    @property
    def folder(self) -> Path:
        return self.database.with_name(self.database.name + ".d")

    @property
    def bell(self) -> Path:
        return self.folder / "bell"

    @property
    def workers(self) -> Path:
        return self.folder / "workers"

    def lock(self, worker: str) -> Path:
        return self.workers / f"{worker}.lock"

    def staging(self, job: int, attempt: int) -> Path:
        return self.folder / "staging" / f"{job}-{attempt}"

    def kept(self, job: int, revision: int) -> Path:
        return self.folder / "kept" / f"{job}-{revision}"

    @property
    def mode(self) -> int:
        """The database file's rights: what lies beside it has the same."""
        return self.database.stat().st_mode & 0o777

    def make(self, folder: Path) -> Path:
        """Make a folder beside the database, open to those who may open the database."""
        if not folder.is_dir():
            self.folder.mkdir(exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            for each in (self.folder, *self._between(folder)):
                with suppress(PermissionError):  # somebody else's, and as they made it
                    each.chmod(self.mode | (self.mode & 0o444) >> 2)
        return folder

    def _between(self, folder: Path) -> list[Path]:
        return [folder, *(p for p in folder.parents if self.folder in p.parents)]

    @property
    def of_jobs(self) -> tuple[Path, Path]:
        """Where the folders of single jobs are made, by their processes."""
        return self.folder / "staging", self.folder / "kept"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def log(self, job: int, attempt: int) -> Path:
        return self.logs / f"{job}-{attempt}.log"

    def host_log(self, lane: str) -> Path:
        """What a lane's host process prints that no job of it can be told for."""
        return self.logs / f"host-{lane}.log"


def network_file_system(folder: Path) -> str:
    """The kind of network file system ``folder`` is on; empty where it is local or unknown."""
    try:
        kind = kind_of(Path("/proc/self/mounts").read_text("utf-8", "replace"), folder.resolve())
    except OSError:
        return ""
    return kind if kind in NETWORK else ""


def kind_of(mounts: str, folder: Path) -> str:
    """The kind of file system at ``folder`` by the text of ``/proc/self/mounts``."""
    best, kind = -1, ""
    for _, point, this_kind, *_ in (line.split(" ") for line in mounts.splitlines()):
        mount = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point))
        if folder.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), this_kind  # the last of two at one place is on top
    return kind
