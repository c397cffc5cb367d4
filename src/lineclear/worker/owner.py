"""What a run and a host need of the supervisor that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lineclear.files import Files
    from lineclear.job import Job
    from lineclear.settings import Settings
    from lineclear.store.base import Tx
    from lineclear.worker.hosts import Hosts
    from lineclear.worker.writer import Writer


class Owner(Protocol):
    """What a run needs of its supervisor."""

    files: Files
    writer: Writer
    settings: Settings
    worker: str
    hosts: Hosts

    def by_memory_killer(self, oom_before: int) -> bool:
        """Whether it struck since then, other than at a run that has ended by it already."""

    def moved(self) -> None:
        """A run has something to store with the next beat."""

    def start(self, jobs: list[Job]) -> None:
        """Start what was claimed, with a run's end too."""

    def submitted(self) -> None:
        """A run has submitted a job. The bell does not tell: it skips its own listener."""

    def ended(self, tx: Tx, job: Job) -> list[Job]:
        """Inside the transaction that frees the slot: the next job of that lane, if it can start
        at once.
        """
