"""Lanes: how each stands, what waits in it, and everything that can be set on it.

Mounted by app.py. Its acts are one transaction each, like those on jobs.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from lineclear import replies
from lineclear.errors import BadInput, WrongState
from lineclear.queue import Queue
from lineclear.shown import fields, lane_fields
from lineclear.view import Gatherer, picture
from lineclear.web import bodies, models
from lineclear.web.asking import (
    Acting,
    Asking,
    LaneName,
    Limit,
    Looking,
    known_lane,
    replay,
    routes,
    rows,
    telling,
)
from lineclear.web.problems import Answer, problem
from lineclear.when import moment_ms

PAUSING = bodies.Pausing()
NOTHING = bodies.Nothing()
BECAUSE = bodies.Because()
After = Annotated[str | None, Query(max_length=200, description="The `next` of a page.")]


def router(queue: Queue) -> APIRouter:
    api = routes("lanes")
    _looks(api, queue)
    _settings(api, queue)
    _acts(api, queue)
    return api


def _looks(api: APIRouter, queue: Queue) -> None:
    @api.get("/lanes", response_model=models.Lanes)
    def lanes(asking: Looking) -> Response:
        """Every lane as it is now."""
        return Answer({"lanes": _told(queue, asking, None)})

    @api.get("/lanes/{lane}", response_model=models.Lane)
    def one(lane: LaneName, asking: Looking) -> Response:
        """One lane as it is now."""
        known_lane(queue, lane)
        return Answer(_told(queue, asking, lane)[0])

    @api.get("/lanes/{lane}/waiting", response_model=models.Waiting)
    def waiting(
        lane: LaneName, asking: Looking, after: After = None, limit: Limit = 50
    ) -> Response:
        """What waits, in order, a page at a time."""
        at = known_lane(queue, lane)
        page = queue.waiting_after(lane, after, limit=limit)
        get = Gatherer(queue, me=asking.by)
        running = [get.running(job) for job in queue.running(lane)]
        with telling(asking):
            jobs = [
                fields(get.waiting(job, at, running, place=place))
                for job, place in zip(page.jobs, page.places, strict=True)
            ]
        return Answer({"jobs": jobs, "next": page.next, "total": page.total})


def _settings(api: APIRouter, queue: Queue) -> None:
    @api.patch("/lanes/{lane}", response_model=models.Lane)
    def change(lane: LaneName, given: bodies.LaneChange, asking: Acting) -> Response:
        """Set the delay between two jobs, the slots, or both; in force at once."""
        delay_ms = None if given.delay_s is None else round(given.delay_s * 1000)
        handle = queue.lane(lane)
        with queue.once(asking.key, asking.what) as once:
            handle.set(delay_ms=delay_ms, slots=given.slots, by=asking.by)
        return Answer(_told(queue, asking, lane)[0], headers=replay(once))

    @api.post("/lanes/{lane}/pause", response_model=models.Lane)
    def pause(lane: LaneName, asking: Acting, given: bodies.Pausing = PAUSING) -> Response:
        """Start nothing more here; what runs finishes."""
        handle, until_ms = queue.lane(lane), until(queue, given)
        with queue.once(asking.key, asking.what) as once:
            handle.pause(given.why, until_ms=until_ms, by=asking.by)
        return Answer(_told(queue, asking, lane)[0], headers=replay(once))

    @api.post("/lanes/{lane}/resume", response_model=models.Lane)
    def resume(lane: LaneName, asking: Acting, _: bodies.Nothing = NOTHING) -> Response:
        """Clear every pause of this lane, whoever made it."""
        handle = queue.lane(lane)
        with queue.once(asking.key, asking.what) as once:
            handle.resume(by=asking.by)
        return Answer(_told(queue, asking, lane)[0], headers=replay(once))

    @api.post("/pause", response_model=models.Lanes)
    def pause_all(asking: Acting, given: bodies.Pausing = PAUSING) -> Response:
        """Start nothing more in any lane; what runs finishes."""
        until_ms = until(queue, given)
        with queue.once(asking.key, asking.what) as once:
            queue.pause_all(given.why, until_ms=until_ms, by=asking.by)
        return Answer({"lanes": _told(queue, asking, None)}, headers=replay(once))

    @api.post("/resume", response_model=models.Lanes)
    def resume_all(asking: Acting, _: bodies.Nothing = NOTHING) -> Response:
        """Clear every pause of every lane."""
        with queue.once(asking.key, asking.what) as once:
            queue.resume_all(by=asking.by)
        return Answer({"lanes": _told(queue, asking, None)}, headers=replay(once))


def _acts(api: APIRouter, queue: Queue) -> None:
    @api.post("/lanes/{lane}/clear", response_model=models.Removed)
    def clear(lane: LaneName, given: bodies.Clearing, asking: Acting) -> Response:
        """Take every waiting job out of the line, if they are as many as expected."""
        handle = queue.lane(lane)
        try:
            with queue.once(asking.key, asking.what) as once:
                handle.remove_waiting(expect=given.expect, by=asking.by)
        except WrongState as error:
            return problem(409, str(error))
        return Answer({"removed": len(once.jobs), "undo": once.undo}, headers=replay(once))

    @api.post("/lanes/{lane}/stop-now", response_model=models.StoppedNow)
    def stop_now(lane: LaneName, asking: Acting, given: bodies.Because = BECAUSE) -> Response:
        """Pause the lane and end what runs at once; it goes back in line. Says so where nothing
        runs.
        """
        handle = queue.lane(lane)
        with queue.once(asking.key, asking.what) as once:
            handle.stop_now(why=given.why, by=asking.by)
        jobs = [queue.brief(job_id) for job_id in once.jobs]
        body = {
            "lane": _told(queue, asking, lane)[0],
            "jobs": rows(queue, asking, jobs),
            "sentence": replies.stopped_now(lane, len(jobs)),
        }
        return Answer(body, headers=replay(once))


def _told(queue: Queue, asking: Asking, lane: str | None) -> list[dict[str, Any]]:
    """One lane, or every one, each with its own sentence."""
    with telling(asking):
        seen = picture(queue, waiting=0, ended=0, lane=lane, me=asking.by)
        return [
            lane_fields(each, sentence=seen.sentences[each.name], now_ms=seen.now_ms)
            for each in seen.lanes
        ]


def until(queue: Queue, given: bodies.Pausing) -> int | None:
    """When the pause is to end, by whichever way it was said."""
    if given.until is not None and given.for_s is not None:
        raise BadInput("until", "until: say either until or for_s, not both.")
    if given.for_s is not None:
        return queue.now_ms() + round(given.for_s * 1000)
    if given.until is None:
        return None
    return moment_ms(given.until, "until", now_ms=queue.now_ms())
