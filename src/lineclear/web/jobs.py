"""Looking at jobs: the list, one job whole, its steps, events and pace. Mounted by app.py.

It reads; the acts are in acts.py. No answer grows with the history: lists are pages, payloads in
them are cut.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from fastapi import APIRouter, Query, Response

from lineclear import shown, view, words
from lineclear.job import Event, State
from lineclear.queue import Queue
from lineclear.web import acts, bodies, models
from lineclear.web.asking import (
    JobId,
    Limit,
    Looking,
    known_lane,
    number,
    routes,
    rows,
    telling,
)
from lineclear.web.problems import Answer
from lineclear.when import ago_ms

MOST_STEPS = 1_000
Filter = Annotated[str | None, Query(min_length=1, max_length=64)]
Text = Annotated[str | None, Query(max_length=200, description="Part of a title, task or key.")]
Since = Annotated[str | None, Query(max_length=64, description="`7d`, or ISO 8601.")]
Before = Annotated[str | None, Query(max_length=100, description="The `next` of a page.")]


def router(queue: Queue) -> APIRouter:
    api = routes("jobs")
    api.routes.extend(acts.router(queue).routes)

    @api.get("/jobs", response_model=models.Jobs)
    def listing(
        *,
        asking: Looking,
        lane: Filter = None,
        task: Filter = None,
        state: bodies.StateKey | None = None,
        q: Text = None,
        since: Since = None,
        before: Before = None,
        hidden: Annotated[bool, Query(description="Cleared jobs too.")] = False,
        limit: Limit = 50,
    ) -> Response:
        """Newest first, a page at a time."""
        if lane is not None:
            known_lane(queue, lane)
        found = queue.jobs(
            lane=lane,
            task=task,
            state=None if state is None else State(state),
            text=q or None,
            since_ms=None if since is None else ago_ms(since, "since", now_ms=queue.now_ms()),
            before=None if before is None else number(before, "before"),
            hidden=hidden,
            limit=limit + 1,
        )
        more = str(found[limit - 1].id) if len(found) > limit else None
        return Answer({"jobs": rows(queue, asking, found[:limit]), "next": more})

    @api.get("/jobs/{job_id}", response_model=models.Whole)
    def whole(job_id: JobId, asking: Looking) -> Response:
        """One job with everything, arguments and result uncut."""
        with telling(asking):
            return Answer(view.whole(queue, job_id, me=asking.by))

    _parts(api, queue)
    return api


def _parts(api: APIRouter, queue: Queue) -> None:
    @api.get("/jobs/{job_id}/steps", response_model=models.Steps)
    def steps(job_id: JobId, limit: Annotated[int, Query(ge=1, le=MOST_STEPS)] = 200) -> Response:
        """The last finished steps, oldest first."""
        queue.brief(job_id)
        found = queue.steps(job_id)
        told = [
            {
                "name": step.name,
                "weight": step.weight,
                "result": shown.shortened(step.result),
                "started_ms": step.started_ms,
                "ended_ms": step.ended_ms,
                "attempt": step.attempt,
            }
            for step in found[-limit:]
        ]
        return Answer({"steps": told, "total": len(found)})

    @api.get("/jobs/{job_id}/events", response_model=models.Events)
    def events(
        job_id: JobId,
        asking: Looking,
        after: Annotated[int, Query(ge=0, lt=2**53, description="A `seq`.")] = 0,
        limit: Limit = 200,
    ) -> Response:
        """The last lines of its journal after a number, oldest first."""
        queue.brief(job_id)
        now_ms = queue.now_ms()

        def told(event: Event) -> dict[str, object]:
            return {
                "seq": event.seq,
                "at_ms": event.at_ms,
                "kind": event.kind,
                "by": event.by,
                "attempt": event.attempt,
                "text": words.happened(event, now_ms=now_ms, me=asking.by),
            }

        with telling(asking):
            found = queue.events(job_id, after=after, limit=limit)
            return Answer({"events": [told(event) for event in found]})

    @api.get("/jobs/{job_id}/pace", response_model=models.Pace)
    def pace(job_id: JobId) -> Response:
        """How far it was at each measured minute of its present try."""
        job = queue.brief(job_id)
        points = [[at_ms, done] for at_ms, done in queue.pace(job_id) if isfinite(done)]
        return Answer({"points": points, "total": shown.finite(job.total), "unit": job.unit})
