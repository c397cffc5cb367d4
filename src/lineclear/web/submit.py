"""Adding a job, or saying what adding it would do. Mounted by app.py.

Only registered tasks with arguments that fit can be added: no code and no path comes from a
request.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from lineclear.queue import Queue
from lineclear.web import bodies, models
from lineclear.web.asking import Acting, replay, routes, row, telling
from lineclear.web.outlook import outlook
from lineclear.web.problems import Answer
from lineclear.when import moment_ms


def router(queue: Queue) -> APIRouter:
    api = routes("submit")

    @api.post(
        "/jobs",
        status_code=201,
        response_model=models.Added,
        responses={200: {"model": models.Added | models.Estimate, "description": "Not added"}},
    )
    def add(given: bodies.Adding, asking: Acting) -> Response:
        """Put a job in line. 200 where a live job with its key is there already, or for
        `dry_run`.
        """
        run_at_ms = None
        if given.not_before is not None:
            run_at_ms = moment_ms(given.not_before, "not_before", now_ms=queue.now_ms())
        new = queue.checked(
            given.task,
            given.args,
            lane=given.lane,
            key=given.key,
            title=given.title,
            priority=given.priority,
            first=given.first,
            run_at_ms=run_at_ms,
            held=given.paused,
            by=asking.by,
        )
        if given.dry_run:
            with telling(asking):
                return Answer(outlook(queue, new, me=asking.by))
        added = None
        with queue.once(asking.key, asking.what) as once:
            added = queue.put(new)
        job = queue.brief(once.jobs[0])
        is_new = added is not None and added.new
        body = {"job": row(queue, asking, job), "new": is_new, "place": queue.place(job.id)}
        return Answer(body, status=201 if is_new else 200, headers=replay(once))

    return api
