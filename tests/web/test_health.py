"""What machines ask: whether it lives, and how the queue is in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.browser.harness import Ground
from tests.helpers import wait_until
from tests.web.conftest import Page

import lineclear
from lineclear import Queue
from lineclear.web.tokens import Tokens


def numbers(page: Page, **headers: str) -> dict[tuple[str, ...], float]:
    """Each sample, by its name and the values of its labels."""
    answer = page.get("/-/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def test_health_says_how_it_is_and_names_nothing(queue: Queue) -> None:
    queue.submit("render", {"name": "The Secret"})
    Tokens(queue.files).add("phone", "view", now_ms=0)
    answer = Page(lineclear.page(queue)).get("/-/health")
    assert answer.status_code == 200
    said = answer.json()
    assert said.pop("version")
    assert said == {"status": "ok", "database": "ok", "workers": 0, "unserved": 1}


def test_health_says_why_it_is_not(queue: Queue) -> None:
    page = Page(lineclear.page(queue))
    assert page.get("/-/health").status_code == 200
    queue.close()
    queue.database.write_bytes(b"no database " * 100)
    for end in ("-wal", "-shm"):
        queue.database.with_name(queue.database.name + end).unlink(missing_ok=True)
    answer = page.get("/-/health")
    assert answer.status_code == 503
    assert answer.json()["detail"]


def test_metrics_are_the_queue_in_numbers(page: Page, queue: Queue) -> None:
    for name in ("Dune", "Emma", 'odd "name"\n'):
        queue.submit("render", {"name": name})
    queue.remove(1)
    seen = numbers(page)
    assert seen["lineclear_jobs", "render", "waiting"] == 2
    assert seen["lineclear_jobs", "render", "cancelled"] == 1
    assert seen["lineclear_jobs", "render", "running"] == 0
    assert seen["lineclear_workers", "render"] == 0
    assert seen["lineclear_changes_total",] == queue.last_seq()
    assert seen["lineclear_oldest_waiting_seconds", "render"] >= 0


def test_the_longest_waiting_is_found_far_down_the_line(page: Page, queue: Queue) -> None:
    first = queue.submit("render", {"name": "Dune"})
    with queue.store.write() as tx:
        tx.update_job(first, {"submitted_ms": first.submitted_ms - 3_600_000})
    for number in range(210):
        queue.submit("render", {"name": str(number)})
    queue.move(first.id, "bottom")
    assert numbers(page)["lineclear_oldest_waiting_seconds", "render"] >= 3_600


def test_metrics_are_not_for_everybody(queue: Queue) -> None:
    page = Page(lineclear.page(queue))
    text = Tokens(queue.files).add("grafana", "view", now_ms=0)
    assert page.get("/-/metrics").status_code == 401
    assert numbers(page, Authorization=f"Bearer {text}")


def test_durations_are_of_jobs_that_ran(serving: Callable[..., Ground]) -> None:
    ground = serving(start=False)
    page = Page(lineclear.page(ground.queue))
    ids = [ground.site.submit("quick", text=str(n)) for n in range(3)]
    running = ground.site.submit("slow", name="Dune")
    ground.site.worker()
    ground.site.ended(*ids)
    ground.site.running(running)
    wait_until(lambda: ("lineclear_beat_age_seconds", "render") in numbers(page))
    seen = numbers(page)
    assert seen["lineclear_run_seconds_gcount", "other"] == 3
    assert seen["lineclear_wait_seconds_gcount", "other"] == 3
    assert seen["lineclear_run_seconds_bucket", "other", "60.0"] == 3
    assert 0 < seen["lineclear_run_seconds_gsum", "other"] < 60
    assert seen["lineclear_jobs", "other", "done"] == 3
    assert seen["lineclear_jobs", "render", "running"] == 1
    assert seen["lineclear_workers", "render"] == 1
    health: dict[str, Any] = page.get("/-/health").json()
    assert (health["workers"], health["unserved"]) == (1, 0)


def test_rings_are_counted_while_somebody_watches(serving: Callable[..., Ground]) -> None:
    url = serving().server.url

    def rings() -> float:
        said = httpx.get(f"{url}-/metrics").text
        return float(re.search(r"^lineclear_rings_total (\S+)$", said, re.MULTILINE)[1])  # type: ignore[index]

    assert rings() == 0
    with httpx.stream("GET", f"{url}api/v1/stream") as watching:
        heard = watching.iter_bytes()
        assert next(heard)
        posted = {"task": "quick", "args": {}}
        added = httpx.post(f"{url}api/v1/jobs", json=posted, headers={"Lineclear-Request": "1"})
        assert added.status_code == 201
        wait_until(lambda: rings() > 0, what="a ring that is counted")


def test_what_the_database_refuses_is_counted(queue: Queue, page: Page) -> None:
    tokens = Tokens(queue.files)
    queue.submit("render", {"name": "Dune"})
    before = numbers(page)["lineclear_store_errors_total",]
    tokens.add("phone", "view", now_ms=0)
    tokens.path.write_text("{")
    assert page.get("/api/v1/lanes").status_code == 503
    tokens.path.unlink()
    assert numbers(page)["lineclear_store_errors_total",] == before + 1
