"""``/-/health`` for whoever restarts what does not answer, ``/-/metrics`` for whoever draws.

Mounted by app.py. Everything is read from the database when it is asked for, in bounded work, so
that a restart forgets nothing; only what this process itself heard and failed at begins anew.
Health is told to everybody, and so says no name of a job, a lane or a machine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from itertools import accumulate
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from pydantic import BaseModel

from lineclear.job import Job
from lineclear.queue import Queue
from lineclear.web.asked import Heard
from lineclear.web.guard import Who, asks

LAST = 1_000
"""Ended jobs of a lane whose durations are told."""
BOUNDS_S = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400)


class Health(BaseModel):
    """How the page is, and how many lanes have work that nobody does."""

    status: Literal["ok"] = "ok"
    version: str
    database: Literal["ok"] = "ok"
    workers: int
    unserved: int


def router(queue: Queue, heard: Heard) -> APIRouter:
    """Below ``/-``."""
    routes = APIRouter(tags=["machines"])

    @routes.get("/health")
    def health() -> Health:
        """Whether the database answers. Asks for no token."""
        return Health(
            version=version("lineclear"),
            workers=sum(worker.alive is not False for worker in queue.workers()),
            unserved=sum(bool(lane.waiting) and not lane.workers for lane in queue.lanes()),
        )

    @routes.get("/metrics", response_class=Response)
    def metrics(_: Annotated[Who, Depends(asks)]) -> Response:
        """The queue in numbers, as OpenMetrics."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Look(queue, heard))
        text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return routes


class _Look(Collector):
    """One look at the queue."""

    def __init__(self, queue: Queue, heard: Heard) -> None:
        self._queue, self._heard = queue, heard

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        queue = self._queue
        jobs = _gauge("jobs", "Jobs in the lists; counting stops at 10,000.", "lane", "state")
        workers = _gauge("workers", "Living workers that serve the lane.", "lane")
        run = _spread("run_seconds", "Work of the last ended jobs.")
        wait = _spread("wait_seconds", "Time until the first start, of the last ended jobs.")
        beat = _gauge("beat_age_seconds", "Since the oldest last beat of a running job.", "lane")
        for lane in queue.lanes():
            counts = queue.counts(lane.name)
            for state in ("waiting", "running", "done", "failed", "cancelled"):
                jobs.add_metric([lane.name, state], getattr(counts, state))
            workers.add_metric([lane.name], lane.workers)
            last = queue.recent(lane.name, limit=LAST)
            _add(run, lane.name, [job.worked_ms for job in last if job.started_ms is not None])
            _add(
                wait, lane.name, [wait_ms for job in last if (wait_ms := _waited(job)) is not None]
            )
            ages = [job.beat_age_ms for job in queue.running(lane.name)]
            if known := [age for age in ages if age is not None]:
                beat.add_metric([lane.name], max(known) / 1000)
        yield from (jobs, workers, run, wait, beat)
        yield CounterMetricFamily("lineclear_changes", "Lines of the journal.", queue.last_seq())
        for name, value in asdict(self._heard).items():
            yield CounterMetricFamily(
                f"lineclear_{name}", "By this process, since its start.", value=value
            )


def _gauge(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"lineclear_{name}", what, labels=labels)


def _spread(name: str, what: str) -> GaugeHistogramMetricFamily:
    return GaugeHistogramMetricFamily(f"lineclear_{name}", what, labels=("lane",))


def _add(spread: GaugeHistogramMetricFamily, lane: str, values_ms: list[int]) -> None:
    found = [0] * (len(BOUNDS_S) + 1)
    for value_ms in values_ms:
        found[bisect_left(BOUNDS_S, value_ms / 1000)] += 1
    names = [*(f"{bound:.1f}" for bound in BOUNDS_S), "+Inf"]
    spread.add_metric(
        [lane], list(zip(names, accumulate(found), strict=True)), sum(values_ms) / 1000
    )


def _waited(job: Job) -> int | None:
    """Milliseconds from the time it could start to its last start."""
    if job.started_ms is None:
        return None
    return max(0, job.started_ms - max(job.submitted_ms, job.run_at_ms or 0))
