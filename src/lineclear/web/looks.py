"""Looks that are not of one job or lane: tasks with their forms, workers, counts, figures.

Mounted by app.py. It reads; figures grow with what ended in their window, the rest with nothing.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic.errors import PydanticUserError

from lineclear import estimate, words
from lineclear.errors import LineClearError
from lineclear.queue import Queue
from lineclear.tasks import Task
from lineclear.web import models
from lineclear.web.asking import Looking, known_lane, routes
from lineclear.web.problems import Answer
from lineclear.when import ago_ms

Lane = Annotated[str | None, Query(min_length=1, max_length=64)]
Since = Annotated[str, Query(max_length=64, description="`7d`, or ISO 8601.")]


def router(queue: Queue) -> APIRouter:
    api = routes("looks")

    @api.get("/tasks", response_model=list[models.TaskAbout])
    def tasks(_: Looking) -> Response:
        """What can be added, each with the JSON schema of its arguments."""
        return Answer([_about(queue, task) for task in queue.tasks.values()])

    @api.get("/workers", response_model=list[models.Worker])
    def workers(_: Looking) -> Response:
        """Every worker that has not stopped in order, with whether it lives."""
        told = [
            {
                "id": each.id,
                "host": each.host,
                "pid": each.pid,
                "version": each.version,
                "lanes": list(each.lanes),
                "started_ms": each.started_ms,
                "alive": each.alive,
            }
            for each in queue.workers()
        ]
        return Answer(told)

    @api.get("/counts", response_model=models.Counts)
    def counts(_: Looking, lane: Lane = None) -> Response:
        """How many jobs are in the lists, by state."""
        if lane is not None:
            known_lane(queue, lane)
        return Answer(asdict(queue.counts(lane)))

    @api.get("/metrics", response_model=models.Stats)
    def metrics(_: Looking, since: Since = "7d", lane: Lane = None) -> Response:
        """What was done, how long it took, and how often the ranges shown were right."""
        if lane is not None:
            known_lane(queue, lane)
        since_ms = ago_ms(since, "since", now_ms=queue.now_ms())
        return Answer(asdict(queue.stats(since_ms, lane=lane)))

    return api


def _about(queue: Queue, task: Task) -> dict[str, Any]:
    usual = estimate.usual(queue.usual(task.name))
    return {
        "name": task.name,
        "lane": task.lane,
        "title": task.title,
        "unit": task.options.unit,
        "doc": inspect.getdoc(task.function) or "",
        "schema": _schema(task),
        "key": task.key,
        "usual": None if usual is None else words.usually(usual),
    }


def _schema(task: Task) -> dict[str, Any]:
    try:
        return task.schema()
    except (LineClearError, PydanticUserError):
        # One that has no schema can still be submitted, and harms no other.
        return {"type": "object", "properties": {}}
