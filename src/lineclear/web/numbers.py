"""The queue in numbers, as OpenMetrics: one look at the database, in bounded work.

Called by health.py at each scrape. Nothing is counted in memory, so a restart forgets nothing;
only what this process itself heard and failed at begins anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from lineclear.job import Job
from lineclear.queue import Queue
from lineclear.web.asked import Heard

CONTENT_TYPE = CONTENT_TYPE_LATEST
STATES = ("waiting", "running", "done", "failed", "cancelled")
LAST = 1_000
"""Ended jobs of a lane whose durations are told."""
BOUNDS_S = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400)


def text(queue: Queue, heard: Heard) -> bytes:
    """The whole answer."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Look(queue, heard))
    found: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return found


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
        oldest = _gauge(
            "oldest_waiting_seconds", "Since the longest waiting job was added.", "lane"
        )
        for lane in queue.lanes():
            counts = queue.counts(lane.name)
            for state in STATES:
                jobs.add_metric([lane.name, state], getattr(counts, state))
            workers.add_metric([lane.name], lane.workers)
            now_ms = queue.now_ms()
            if first := queue.stats(now_ms, lane=lane.name).oldest:
                oldest.add_metric([lane.name], (now_ms - first[1]) / 1000)
            last = queue.recent(lane.name, limit=LAST)
            _add(run, lane.name, [job.worked_ms for job in last if job.started_ms is not None])
            _add(
                wait, lane.name, [wait_ms for job in last if (wait_ms := _waited(job)) is not None]
            )
            ages = [job.beat_age_ms for job in queue.running(lane.name)]
            if known := [age for age in ages if age is not None]:
                beat.add_metric([lane.name], max(known) / 1000)
        yield from (jobs, workers, run, wait, oldest, beat)
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
