"""Every error Line Clear raises on purpose. The sentence in it is what a person reads.

LineClearError
├── Refused               what was asked is not possible; nothing has changed
│   ├── BadInput          a field is wrong (carries ``field``)
│   │   ├── UnknownTask
│   │   ├── UnknownLane
│   │   └── TooLarge
│   ├── NoSuchJob
│   ├── WrongState        the act does not fit the state the job is in now
│   └── Replayed          the same request again; ``Queue.once`` turns it into an answer
├── StoreError            the database cannot be used; says what to do
│   ├── StoreBusy         still locked after the stated wait
│   ├── StoreFull         no space left for the database
│   └── StoreRefused      not ours, newer than this program, on a network drive, read-only ...
└── TaskLoadError         the application that holds the tasks cannot be loaded

Stopped (BaseException)   raised inside a task, so that ``except Exception`` cannot swallow it
├── Cancelled             somebody asked to stop this job
├── Interrupted           the worker stops; the job will be taken up again
└── LeaseLost             this run is no longer the job's run; nothing it writes counts
"""


class LineClearError(Exception):
    """Base of all errors raised on purpose."""


class Refused(LineClearError):
    """What was asked is not possible. Nothing has changed."""


class BadInput(Refused):
    """A field of what was asked is wrong. ``field`` names it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


class UnknownTask(BadInput):
    """No task of that name is registered."""


class UnknownLane(BadInput):
    """No lane of that name exists."""


class TooLarge(BadInput):
    """A payload is over its stated limit."""


class NoSuchJob(Refused):
    """No job has that id."""


class WrongState(Refused):
    """The act does not fit the state the job is in now. ``state`` is that state's key."""

    def __init__(self, state: str, sentence: str) -> None:
        super().__init__(sentence)
        self.state = state


class Replayed(Refused):
    """A request with this key was done already: what it touched, and its number for ``undo``."""

    def __init__(self, jobs: tuple[int, ...], undo: int | None) -> None:
        super().__init__("This request was done already. Nothing was done again.")
        self.jobs = jobs
        self.undo = undo


class StoreError(LineClearError):
    """The database cannot be used."""


class StoreBusy(StoreError):
    """Another process kept the database locked for longer than the stated wait."""


class StoreFull(StoreError):
    """There is no space left for the database. Nothing of the change was kept."""


class StoreUnsafe(StoreError):
    """The disk did not confirm a write. Nothing after that is acknowledged."""


class StoreRefused(StoreError):
    """The file is not a database of ours, or not one this program may use."""


class TaskLoadError(LineClearError):
    """The application that holds the tasks cannot be loaded."""


class Stopped(BaseException):
    """A task is asked to stop here. Let it pass; clean up with ``finally``."""


class Cancelled(Stopped):
    """Somebody asked to stop this job."""


class Interrupted(Stopped):
    """The worker stops. The job goes back to its place and is taken up again."""


class LeaseLost(Stopped):
    """This run is no longer the job's run. Nothing it writes counts any more."""
