"""A job's log over HTTP: a part by cursor, the whole as text, what comes while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.streams import Server, Watcher, server
from tests.workers import Site, site

from lineclear.worker.logreader import LogReader
from lineclear.worker.logs import JobLog

TASKS = """
@queue.task(lane="render")
def talk(ctx: Context, name: str = "talk"):
    told = 0
    while not (HERE / f"{name}.end").exists():
        path = HERE / f"{name}.say"
        said = path.read_text().splitlines() if path.exists() else []
        for line in said[told:]:
            print(line, flush=True)
        told = len(said)
        time.sleep(0.01)
    sys.stdout.flush()
    os._exit(3)
"""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, TASKS) as made:
        made.queue.check_store()
        yield made


@pytest.fixture
def served(ground: Site) -> Iterator[Server]:
    with server(ground.queue.database) as made:
        yield made


def texts(part: dict[str, Any]) -> list[str]:
    return [line["text"] for line in part["lines"]]


def follow(seen: Watcher) -> list[str]:
    return [text for part in seen.of("log") for text in texts(part)]


def test_a_log_is_followed_to_its_end_and_no_longer(ground: Site, served: Server) -> None:
    job = ground.submit("talk")
    with served.watch(log=f"{job}@") as seen:
        ground.worker()
        seen.until(lambda: seen.fold.rows.get(job, {}).get("state") == "running")
        (ground.folder / "talk.say").write_text("one\ntwo\n")
        seen.until(lambda: follow(seen) == ["one", "two"])
        cursor = seen.of("log")[-1]["end"]
        assert served.get(f"api/v1/jobs/{job}/log").json()["over"] is None
    (ground.folder / "talk.say").write_text("one\ntwo\nthree\n")
    with served.watch(log=f"{job}@{cursor}") as seen:
        seen.until(lambda: follow(seen) == ["three"])
        ground.touch("talk.end")
        last = seen.until(lambda: next((d for d in seen.of("log") if d["over"]), None))
        assert last["over"].startswith("Ended \x02")
        assert "exited with code 3" in last["over"]
    part = served.get(f"api/v1/jobs/{job}/log").json()
    assert texts(part)[:3] == ["one", "two", "three"]
    assert part["over"].startswith("Ended ") and "\x02" not in part["over"]
    assert (part["try"], part["start"]) == (1, None)
    with served.watch(log=f"{job}@{part['end']}") as seen:
        assert seen.until_event("log")["over"] == last["over"]


def written(ground: Site, count: int = 1_000, **more: Any) -> tuple[int, JobLog]:
    """A job with a log of its own making: ``line 0`` and so on."""
    job = ground.submit("talk")
    path = ground.queue.log_path(job, 1)
    path.parent.mkdir(exist_ok=True)
    log = JobLog(path, **more)
    for number in range(count):
        log.feed("o", b"line %d\n" % number)
    return job, log


def test_a_log_can_be_paged_both_ways(ground: Site, served: Server) -> None:
    job, log = written(ground, limit_bytes=14_000)
    path = f"api/v1/jobs/{job}/log"
    end = served.get(path, lines=100).json()
    assert texts(end) == [f"line {number}" for number in range(900, 1_000)]
    seen, start = texts(end), end["start"]
    while start is not None:
        page = served.get(path, lines=150, before=start).json()
        seen, start = texts(page) + seen, page["start"]
    kept = [text for text in seen if text.startswith("line ")]
    assert kept == [f"line {number}" for number in range(1_000)][-len(kept) :]
    assert len(kept) > 500
    log.feed("o", b"more\n")
    more = served.get(path, after=end["end"], lines=10).json()
    assert texts(more) == ["more"]
    assert texts(served.get(path, after=more["end"]).json()) == []
    log.close()


def test_a_cursor_whose_half_is_gone_says_that_lines_are_missing(
    ground: Site, served: Server
) -> None:
    job, log = written(ground, 5, limit_bytes=2_000)
    path = f"api/v1/jobs/{job}/log"
    cursor = served.get(path).json()["end"]
    for number in range(5, 1_000):
        log.feed("o", b"line %d\n" % number)
    log.close()
    part = served.get(path, after=cursor, lines=5_000).json()
    assert part["lines"][0]["text"] == "Lines in between were dropped."
    assert texts(part)[-1] == "line 999"
    assert len(set(texts(part))) == len(part["lines"])
    assert served.get(path, before=cursor).json()["lines"] == []


def test_no_log_yet_is_no_error_and_is_followed_from_its_first_line(
    ground: Site, served: Server
) -> None:
    job = ground.submit("talk")
    part = served.get(f"api/v1/jobs/{job}/log").json()
    assert part == {"lines": [], "start": None, "end": "1.", "try": 1, "over": None}
    path = ground.queue.log_path(job, 1)
    path.parent.mkdir()
    log = JobLog(path)
    log.feed("e", b"first\n")
    log.close()
    assert texts(served.get(f"api/v1/jobs/{job}/log", after=part["end"]).json()) == ["first"]


def test_wrong_questions_are_refused(ground: Site, served: Server) -> None:
    job, log = written(ground, 3)
    log.close()
    path = f"api/v1/jobs/{job}/log"
    assert served.get("api/v1/jobs/999/log").status_code == 404
    wrong = served.get(path, **{"try": 2})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "try")
    assert served.get(path, lines=0).status_code == 422
    for cursor in ("x", "1.x", "../../etc/passwd", "1.ff-ff-99999", "1.-"):
        assert served.get(path, after=cursor).status_code == 200
    assert served.get(path, after="7.").status_code == 422
    with served.watch(log="999@") as seen:
        assert seen.until_event("log")["over"].startswith("There is no job 999")


def test_the_whole_log_is_plain_text_that_no_browser_runs(ground: Site, served: Server) -> None:
    job, log = written(ground, 2)
    log.feed("o", b"<script>alert(1)</script>\n" + b"long" * 3_000 + b"\n")
    log.feed("e", b"an error\n")
    log.close()
    answer = served.get(f"jobs/{job}/log.txt")
    assert answer.text == (
        "line 0\nline 1\n<script>alert(1)</script>\n" + "long" * 3_000 + "\nan error\n"
    )
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="job-{job}-try-1.log"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    for path in (f"jobs/{job}%2F..%2F..%2Fjobs.db/log.txt", "jobs/..%2f..%2fjobs.db/log.txt"):
        assert served.get(path).status_code in (404, 422)


def test_a_position_survives_every_change_of_halves(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = JobLog(path, limit_bytes=300)
    seen: list[str] = []
    position = ""
    for number in range(300):
        log.feed("o", b"%d\n" % number)
        with LogReader(path, at=position) as reader:
            assert not reader.dropped
            while lines := reader.read_new(1):
                seen += [line.text for line in lines if line.stream == "o"]
            position = reader.position
    log.close()
    assert seen == [str(number) for number in range(300)]
