"""Each act of the API on real jobs of a real worker: what it does, refuses and says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import python, said
from tests.web.api import Api
from tests.workers import Site, site

SOURCE = """
@queue.task(lane="render", title="{name}", key="{name}", unit="pages")
def render(ctx: Context, name: str):
    say("start", name, os.getpid())
    ctx.progress(done=1, total=10)
    with ctx.step("first", weight=4):
        pass
    until_stopped(ctx, name)
    return {"name": name}

def until_stopped(ctx, name):
    while not (HERE / f"end-{name}").exists():
        time.sleep(0.005)
        ctx.safe_point()

@queue.task(lane="stubborn", title="{name}")
def stubborn(ctx: Context, name: str):
    child = subprocess.Popen(["sleep", "600"])
    say("start", name, child.pid)
    (ctx.staging / "half").write_text("half")
    until(f"end-{name}")

@queue.task(lane="other", title="{why}")
def fail(why: str = "no voice"):
    raise RuntimeError(why)
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, SOURCE) as made:
        yield made


@pytest.fixture
def api(here: Site) -> Api:
    return Api(here.queue)


def add(api: Api, name: str, task: str = "render", **more: Any) -> int:
    answer = api.act("/jobs", {"task": task, "args": {"name": name}, **more}, status=201)
    return int(answer["job"]["id"])


def until_ended(here: Site, job_id: int) -> None:
    here.ended(job_id)


def test_e13_a_paused_lane_starts_nothing_and_what_runs_goes_on(here: Site, api: Api) -> None:
    here.worker()
    one = add(api, "one")
    here.running(one)
    lane = api.act("/lanes/render/pause", {"why": "too loud"})
    assert [(p["by"], p["why"], p["until"]) for p in lane["pauses"]] == [
        ("tester", "too loud", None)
    ]
    two = add(api, "two")
    here.touch("end-one")
    assert here.ended(one)[0].state == "done"
    waits = api.get(f"/jobs/{two}")
    assert waits["state"] == "queued"
    assert any("paused by you" in reason and "too loud" in reason for reason in waits["reasons"])
    assert api.act("/lanes/render/resume")["pauses"] == []
    here.running(two)


def test_e14_one_held_job_keeps_its_place_and_is_skipped(here: Site, api: Api) -> None:
    ids = [add(api, name) for name in ("a", "b", "c")]
    held = api.act(f"/jobs/{ids[0]}/hold", {"why": "not yet"})
    assert (held["look"], held["acts"][0]) == ("held", "release")
    here.worker()
    here.running(ids[1])
    refused = api.act(f"/jobs/{ids[1]}/hold", status=409)
    assert refused["job"]["state"] == "running"
    assert refused["detail"].startswith("Nothing was paused: it started at ")
    here.touch("end-b")
    here.running(ids[2])
    assert api.act(f"/jobs/{ids[0]}/release")["place"] == 1
    here.touch("end-c")
    here.running(ids[0])


def test_e15_p04_remove_one_and_clear_with_the_count(here: Site, api: Api) -> None:
    here.worker()
    runs = add(api, "runs")
    here.running(runs)
    ids = [add(api, str(number)) for number in range(4)]
    gone = api.act(f"/jobs/{ids[0]}/remove", {"why": "by mistake"})
    assert (gone["look"], gone["state"]) == ("removed", "cancelled")
    assert isinstance(gone["undo"], int)
    assert api.act(f"/jobs/{runs}/remove", status=409)["job"]["state"] == "running"
    wrong = api.act("/lanes/render/clear", {"expect": 4}, status=409)
    assert "3" in wrong["detail"]
    assert here.queue.lane_now("render").waiting == 3
    cleared = api.act("/lanes/render/clear", {"expect": 3})
    assert cleared["removed"] == 3
    assert here.job(runs).state == "running"
    back = api.act("/undo", {"undo": cleared["undo"]})
    assert sorted(back["ids"]) == ids[1:]
    assert back["sentence"].startswith("Undone: ")
    assert api.act("/undo", {"undo": gone["undo"]})["ids"] == [ids[0]]
    assert "undo" in api.act("/undo", {"undo": gone["undo"]}, status=409)["detail"]
    assert [job.id for job in here.queue.waiting("render")] == ids


def test_e16_p05_stop_now_only_where_something_runs(here: Site, api: Api) -> None:
    quiet = add(api, "waits", task="stubborn")
    nothing = api.act("/lanes/stubborn/stop-now")
    assert nothing["jobs"] == [] and nothing["lane"]["pauses"] == []
    assert nothing["sentence"].startswith("Nothing runs in lane stubborn")
    here.worker()
    here.running(quiet)
    here.until(lambda: any(line[1] == "start" for line in here.diary))
    child = int(here.diary[0][3])
    stopped = api.act("/lanes/stubborn/stop-now", {"why": "noise"})
    assert [job["id"] for job in stopped["jobs"]] == [quiet]
    assert "Stopping 1 job now" in stopped["sentence"]
    assert [pause["why"] for pause in stopped["lane"]["pauses"]] == ["noise"]
    here.until(lambda: here.job(quiet).state == "queued", what="the job back in line")
    assert not Path(f"/proc/{child}").exists()
    assert here.job(quiet).interruptions == 0
    here.until(lambda: not here.queue.files.staging(quiet, 1).exists(), what="no staging")


def test_e16_kill_ends_the_whole_group_as_cancelled(here: Site, api: Api) -> None:
    here.worker()
    job = add(api, "deaf", task="stubborn")
    here.running(job)
    here.until(lambda: any(line[1] == "start" for line in here.diary))
    child = int(here.diary[0][3])
    row = api.act(f"/jobs/{job}/kill", {"why": "enough"})
    assert row["look"] == "stopping_now" and row["acts"] == []
    until_ended(here, job)
    here.until(lambda: not Path(f"/proc/{child}").exists(), what="its child's end")
    whole = api.get(f"/jobs/{job}")
    assert (whole["look"], whole["ended_by"]) == ("killed", "tester")
    late = api.act(f"/jobs/{job}/kill", status=409)
    assert late["detail"].startswith("Nothing was stopped: it was killed by you at ")
    assert late["job"]["look"] == "killed"


def test_a_stop_that_comes_too_late_says_what_happened(here: Site, api: Api) -> None:
    here.worker()
    job = add(api, "quick")
    version = here.running(job).version
    here.touch("end-quick")
    until_ended(here, job)
    late = api.act(f"/jobs/{job}/stop", status=409, If_Match=str(version))
    assert late["detail"].startswith("Nothing was stopped: it ended by itself at ")
    assert late["detail"].endswith(" (Done).")
    assert late["job"]["state"] == "done"
    assert api.get(f"/jobs/{job}")["result"] == {"name": "quick"}


def test_stop_is_asked_and_happens_at_a_safe_point(here: Site, api: Api) -> None:
    here.worker()
    job = add(api, "long")
    here.running(job)
    here.until(lambda: api.get(f"/jobs/{job}")["kept"] == 4, what="its first step")
    row = api.get(f"/jobs/{job}")
    assert row["acts"] == ["stop", "kill"] and row["stakes"] == "Keeps 4 pages."
    assert api.act(f"/jobs/{job}/stop", If_Match=f'"{row["version"]}"')["wish"] == "cancel"
    until_ended(here, job)
    ended = api.get(f"/jobs/{job}")
    assert ended["look"] == "stopped" and "kept 4 pages" in ended["detail"]
    api.act("/lanes/render/pause")
    again = api.act(f"/jobs/{job}/retry", {"start_over": False})
    assert (again["state"], again["try"]) == ("queued", 1)
    assert api.act("/undo", {"undo": again["undo"]})["ids"] == [job]
    assert api.get(f"/jobs/{job}")["look"] == "stopped"


def test_e17_the_delay_is_in_force_at_once(here: Site, api: Api) -> None:
    here.worker()
    first, second = add(api, "first"), add(api, "second")
    here.running(first)
    lane = api.act("/lanes/render", {"delay_s": 600}, method="PATCH")
    assert lane["delay_s"] == 600
    here.touch("end-first")
    until_ended(here, first)
    assert api.get(f"/jobs/{second}")["detail"].startswith("1st, delay, ")
    assert api.get("/lanes/render")["next_start_ms"] > here.queue.now_ms()
    api.act("/lanes/render", {"delay_s": 0}, method="PATCH")
    here.running(second)


def test_e18_reorder_by_every_way_there_is(here: Site, api: Api) -> None:
    a, b, c, d = (add(api, name) for name in "abcd")

    def line() -> list[int]:
        return [job.id for job in here.queue.waiting("render")]

    def move(job: int, to: Any) -> list[int]:
        row = api.act(f"/jobs/{job}/move", {"to": to})
        assert line().index(job) + 1 == row["place"]
        return line()

    assert move(d, "top") == [d, a, b, c]
    assert move(d, "bottom") == [a, b, c, d]
    assert move(c, "up") == [a, c, b, d]
    assert move(a, "down") == [c, a, b, d]
    assert move(d, 2) == [c, d, a, b]
    assert move(c, {"before": b}) == [d, a, c, b]
    assert move(d, {"after": b}) == [a, c, b, d]
    undo = api.act(f"/jobs/{d}/move", {"to": "top"})["undo"]
    api.act("/undo", {"undo": undo})
    assert line() == [a, c, b, d]


def test_p07_an_act_on_what_was_just_claimed_is_refused_with_its_row(here: Site, api: Api) -> None:
    job = add(api, "grabbed")
    version = str(api.get(f"/jobs/{job}")["version"])
    here.worker()
    here.running(job)
    for act, body in (
        ("remove", {}),
        ("hold", {}),
        ("force", {}),
        ("move", {"to": "top"}),
        ("stop", {}),
    ):
        refused = api.act(f"/jobs/{job}/{act}", body, status=409, If_Match=version)
        assert refused["job"]["state"] == "running", act
        assert refused["detail"].startswith("Nothing was "), refused
    assert here.job(job).wish is None


def test_p03_what_is_added_to_a_paused_lane_waits_and_is_counted(here: Site, api: Api) -> None:
    here.worker()
    add(api, "first", paused=True)
    api.act("/pause", {"for_s": 3600})
    for name in ("b", "c"):
        add(api, name)
    (lane,) = [one for one in api.get("/lanes")["lanes"] if one["name"] == "render"]
    assert lane["waiting"] == 3
    assert "Paused by you at " in lane["sentence"] and "3 waiting" in lane["sentence"]
    assert lane["pauses"][0]["until_ms"] > here.queue.now_ms() + 3_500_000
    assert all(one["pauses"] == [] for one in api.act("/resume")["lanes"])


def test_force_starts_one_job_of_a_paused_lane(here: Site, api: Api) -> None:
    here.worker()
    api.act("/jobs", {"task": "render", "args": {"name": "a"}, "paused": True}, status=201)
    api.act("/lanes/render/pause")
    b = add(api, "b")
    c = add(api, "c")
    forced = api.act(f"/jobs/{c}/force")
    here.running(c)
    assert here.job(b).state == "queued" and "force" not in forced["acts"]


def test_retry_all_tells_which_could_not(here: Site, api: Api) -> None:
    here.worker()
    bad = [here.submit("fail", why=str(number)) for number in range(3)]
    here.ended(*bad)
    waits = add(api, "waits", paused=True)
    api.act("/lanes/other/pause")
    done = api.act("/jobs/retry", {"ids": [*bad, waits, 10_000]})
    assert [job["id"] for job in done["jobs"]] == bad
    assert [one["id"] for one in done["refused"]] == [waits, 10_000]
    assert all(one["detail"] for one in done["refused"])
    assert sorted(api.act("/undo", {"undo": done["undo"]})["ids"]) == bad
    assert [here.job(job).state for job in bad] == ["failed"] * 3
    removed = api.act("/jobs/remove", {"ids": [waits, bad[0]]})
    assert [job["id"] for job in removed["jobs"]] == [waits]
    assert [one["id"] for one in removed["refused"]] == [bad[0]]


def test_clear_hides_and_undo_shows_again(here: Site, api: Api) -> None:
    here.worker()
    bad = [here.submit("fail", why=str(number)) for number in range(2)]
    here.ended(*bad)
    assert api.act("/clear", {"states": ["done"]})["cleared"] == 0
    api.act("/clear", {"states": ["failed"], "expect": 5}, status=409)
    cleared = api.act("/clear", {"states": ["failed"], "expect": 2})
    assert cleared["cleared"] == 2
    assert api.get("/jobs", state="failed")["jobs"] == []
    hidden = api.get("/jobs", state="failed", hidden=True)["jobs"]
    assert [(job["id"], job["hidden"]) for job in hidden] == [(job, True) for job in bad[::-1]]
    api.act("/undo", {"undo": cleared["undo"]})
    assert len(api.get("/jobs", state="failed")["jobs"]) == api.get("/counts")["failed"] == 2


def test_case_c4_a_stop_touches_no_other_workers_job(here: Site, api: Api) -> None:
    workers = {"render": here.worker("render"), "stubborn": here.worker("stubborn")}
    one, two = add(api, "one"), add(api, "two", task="stubborn")
    here.running(one)
    before = here.running(two)
    owner = here.job(one).worker
    api.act(f"/jobs/{one}/stop")
    until_ended(here, one)
    after = here.job(two)
    assert (after.state, after.wish, after.version) == ("running", None, before.version)
    assert after.child_pid == before.child_pid
    ends = [event for event in here.events(one) if event.kind == "ended"]
    assert len(ends) == 1 and here.job(one).cause == "asked"
    assert owner != after.worker and all(one.process.poll() is None for one in workers.values())


PAUSER = """
import sys, time
from lineclear import Queue
queue = Queue(sys.argv[1], by="nightly backup")
until_ms = int(sys.argv[2])
queue.lane("render").pause("copying the shelf", until_ms=until_ms, source="backup")
print("paused", flush=True)
time.sleep(600)
"""


def test_case_c9_a_pause_says_who_why_and_until_after_its_maker_was_killed(
    here: Site, api: Api
) -> None:
    add(api, "waits")
    until_ms = here.queue.now_ms() + 3_600_000
    with python(PAUSER, here.queue.database, until_ms) as script:
        assert said(script) == "paused"
        script.kill()
        script.wait()
    (lane,) = api.get("/lanes")["lanes"]
    (pause,) = lane["pauses"]
    assert (pause["by"], pause["why"], pause["source"]) == (
        "nightly backup",
        "copying the shelf",
        "backup",
    )
    assert pause["until_ms"] == until_ms and pause["since_ms"] <= here.queue.now_ms()
    assert "by nightly backup" in lane["sentence"] and "copying the shelf" in lane["sentence"]
    assert [one["pauses"] for one in api.act("/resume")["lanes"]] == [[]]
    assert "aused" not in api.get("/lanes/render")["sentence"]


def test_every_act_is_in_the_journal_with_who_and_why(here: Site, api: Api) -> None:
    job = add(api, "told")
    api.act(f"/jobs/{job}/hold", {"why": "too early"})
    api.act(f"/jobs/{job}/release")
    events = api.get(f"/jobs/{job}/events")["events"]
    assert [event["kind"] for event in events] == ["added", "held", "released"]
    assert {event["by"] for event in events} == {"tester"}
    assert events[1]["text"] == "paused by you (too early)"
    assert [event["seq"] for event in api.get(
        f"/jobs/{job}/events", after=events[0]["seq"])["events"]
    ] == [event["seq"] for event in events[1:]]  # fmt: skip
    marked = api.get(f"/jobs/{job}/events", marks=1)["events"]
    assert marked[1]["text"] == "paused by \x02@tester\x03 (too early)"
