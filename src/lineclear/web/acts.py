"""Acts on jobs: one route for each button of a row, and those on many jobs at once.

Mounted by jobs.py. Every act is one transaction that ``Idempotency-Key`` makes happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response

from lineclear import replies
from lineclear.errors import WrongState
from lineclear.figures import duration
from lineclear.job import Job, State
from lineclear.queue import Queue
from lineclear.web import bodies, models
from lineclear.web.asking import (
    Acting,
    JobId,
    Version,
    known_lane,
    on_job,
    replay,
    routes,
    rows,
    version_of,
)
from lineclear.web.problems import Answer, problem

BECAUSE = bodies.Because()
RETRYING = bodies.Retrying()
HIDING = bodies.Hiding()
UNDOING = bodies.Undoing()


def router(queue: Queue) -> APIRouter:
    api = routes("acts")
    plain: dict[str, Callable[..., object]] = {
        "hold": queue.hold,
        "release": queue.release,
        "stop": queue.cancel,
        "kill": queue.kill,
        "force": queue.force,
        "remove": queue.remove,
    }
    for act, do in plain.items():
        _add(api, queue, act, do)
    _with_particulars(api, queue)
    _on_many(api, queue)
    return api


def _add(api: APIRouter, queue: Queue, act: str, do: Callable[..., object]) -> None:
    def asked(
        job_id: JobId,
        asking: Acting,
        version: Version = None,
        given: bodies.Because = BECAUSE,
    ) -> Response:
        seen = version_of(version)
        return on_job(
            queue, asking, job_id, act,
            lambda: do(job_id, by=asking.by, why=given.why, if_version=seen), seen=seen,
        )  # fmt: skip

    api.add_api_route(
        f"/jobs/{{job_id}}/{act}",
        asked,
        methods=["POST"],
        response_model=models.JobAfter,
        name=act,
        summary=replies.BUTTONS[act],
        description=(do.__doc__ or "").strip().partition("\n")[0],
    )


def _with_particulars(api: APIRouter, queue: Queue) -> None:
    @api.post("/jobs/{job_id}/move", response_model=models.JobAfter)
    def move(
        job_id: JobId, given: bodies.Moving, asking: Acting, version: Version = None
    ) -> Response:
        """To another place in its lane's line."""
        match given.to:
            case bodies.Before(before=other):
                to: Any = ("before", other)
            case bodies.After(after=other):
                to = ("after", other)
            case place:
                to = place
        seen = version_of(version)
        return on_job(
            queue, asking, job_id, "move",
            lambda: queue.move(job_id, to, by=asking.by, why=given.why, if_version=seen),
            seen=seen,
        )  # fmt: skip

    @api.post("/jobs/{job_id}/retry", response_model=models.JobAfter)
    def retry(
        job_id: JobId,
        asking: Acting,
        version: Version = None,
        given: bodies.Retrying = RETRYING,
    ) -> Response:
        """Back in line with its finished steps; `start_over` drops them."""
        seen = version_of(version)
        return on_job(
            queue, asking, job_id, "retry",
            lambda: queue.retry(
                job_id, start_over=given.start_over, first=given.first, by=asking.by,
                why=given.why, if_version=seen,
            ),
            seen=seen,
        )  # fmt: skip


def _on_many(api: APIRouter, queue: Queue) -> None:
    def many(asking: Acting, do: Callable[[], Any]) -> Response:
        refused: list[dict[str, Any]] = []
        with queue.once(asking.key, asking.what) as once:
            refused = [{"id": job_id, "detail": told} for job_id, told in do().refused]
        jobs: list[Job] = [queue.brief(job_id) for job_id in once.jobs]
        body = {"jobs": rows(queue, asking, jobs), "refused": refused, "undo": once.undo}
        return Answer(body, headers=replay(once))

    @api.post("/jobs/retry", response_model=models.Many)
    def retry_all(given: bodies.RetryingAll, asking: Acting) -> Response:
        """Those that have ended go back in line; why not, for each of the others."""
        return many(
            asking,
            lambda: queue.retry_all(given.ids, first=given.first, by=asking.by, why=given.why),
        )

    @api.post("/jobs/remove", response_model=models.Many)
    def remove_all(given: bodies.Ids, asking: Acting) -> Response:
        """Those that wait are taken out of the line; why not, for each of the others."""
        return many(asking, lambda: queue.remove_all(given.ids, by=asking.by, why=given.why))

    @api.post("/clear", response_model=models.Cleared)
    def clear(asking: Acting, given: bodies.Hiding = HIDING) -> Response:
        """Hide ended jobs from the lists. Rows and logs stay."""
        if given.lane is not None:
            known_lane(queue, given.lane)
        try:
            with queue.once(asking.key, asking.what) as once:
                queue.clear(
                    states=[State(each) for each in given.states],
                    lane=given.lane, expect=given.expect, by=asking.by,
                )  # fmt: skip
        except WrongState as error:
            return problem(409, str(error))
        return Answer({"cleared": len(once.jobs), "undo": once.undo}, headers=replay(once))

    @api.post("/undo", response_model=models.Undone)
    def undo(asking: Acting, given: bodies.Undoing = UNDOING) -> Response:
        """Take back one remove, clear, move or retry of the last seven days."""
        done = None
        with queue.once(asking.key, asking.what) as once:
            done = queue.undo(given.undo, by=asking.by)
        if once.replayed:
            kind, sentence = "", replies.UNDONE_BEFORE
        elif done is None:
            return problem(409, replies.NOTHING_TO_UNDO)
        else:
            ago = duration(queue.now_ms() - done.at_ms)
            kind, sentence = done.kind, replies.undone(done.kind, len(done.jobs), ago)
        return Answer(
            {"kind": kind, "ids": list(once.jobs), "sentence": sentence}, headers=replay(once)
        )
