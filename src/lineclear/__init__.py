"""Line Clear: the queue for slow, expensive work on a machine you own. These are the public names.

Resolved when they are asked for: a child that runs a task must not load the store.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lineclear.context import Context
    from lineclear.coroutine import AsyncContext
    from lineclear.errors import (
        BadInput,
        Cancelled,
        Interrupted,
        LeaseLost,
        LineClearError,
        NoSuchJob,
        Refused,
        Stopped,
        StoreBusy,
        StoreError,
        StoreFull,
        StoreRefused,
        TaskLoadError,
        TooLarge,
        UnknownLane,
        UnknownTask,
        WrongState,
    )
    from lineclear.job import Job, Lane, State
    from lineclear.queue import Queue
    from lineclear.tasks import Task
    from lineclear.web.app import page

__all__ = [
    "AsyncContext",
    "BadInput",
    "Cancelled",
    "Context",
    "Interrupted",
    "Job",
    "Lane",
    "LeaseLost",
    "LineClearError",
    "NoSuchJob",
    "Queue",
    "Refused",
    "State",
    "Stopped",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreRefused",
    "Task",
    "TaskLoadError",
    "TooLarge",
    "UnknownLane",
    "UnknownTask",
    "WrongState",
    "page",
]

_HOMES = {
    "AsyncContext": "coroutine",
    "Context": "context",
    "Job": "job",
    "Lane": "job",
    "Queue": "queue",
    "State": "job",
    "Task": "tasks",
    "page": "web.app",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'lineclear' has no attribute '{name}'")
    home = import_module(f"lineclear.{_HOMES.get(name, 'errors')}")
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
