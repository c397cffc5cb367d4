"""How a job's process may end, and what of it is recorded, kept and wiped."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.worker.lives import SLEEPERS, is_over, name
from tests.workers import LONG_LEASE, Site

from lineclear.job import Cause, Ending, State
from lineclear.worker import linux

Make = Callable[..., Site]

ENDS = """
@queue.task(lane="one")
def raises(ctx):
    print("some output", flush=True)
    raise ValueError("x" * 2000)

@queue.task(lane="one")
def exits(ctx):
    os._exit(3)

@queue.task(lane="one")
def silent(ctx):
    os._exit(0)

@queue.task(lane="one")
def crashes(ctx):
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)

@queue.task(lane="one")
def killed(ctx):
    os.kill(os.getpid(), signal.SIGKILL)

@queue.task(lane="one", memory_mb=300)
def hungry(ctx):
    return len(bytearray(2**30))

@queue.task(lane="one", timeout_s=0.2)
def late(ctx):
    while True:
        ctx.safe_point()
        time.sleep(0.01)

@queue.task(lane="one", timeout_s=0.2)
def late_and_deaf(ctx):
    time.sleep(600)

@queue.task(lane="one")
def nonsense(ctx):
    ctx._link._descriptor and os.write(ctx._link._descriptor, b"{nonsense}\\n")
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("task", "cause", "sentence"),
    [
        ("raises", Cause.RAISED, "ValueError: xxx"),
        ("exits", Cause.EXITED, "Its process exited with code 3."),
        ("silent", Cause.EXITED, "exited with code 0 without saying how the task ended"),
        ("crashes", Cause.SIGNALLED, "signal 11 (SIGSEGV), which nobody asked for"),
        ("killed", Cause.SIGNALLED, "signal 9 (SIGKILL), which nobody asked for"),
        ("hungry", Cause.OUT_OF_MEMORY, "ran out of memory (its limit is 300 MB)"),
        ("late", Cause.TIMED_OUT, "longer than its limit of 0.2 s"),
        ("late_and_deaf", Cause.TIMED_OUT, "longer than its limit of 0.2 s"),
        ("nonsense", Cause.EXITED, "said what cannot be understood"),
    ],
)
def test_e10_e11_p23_case_c5_a_failure_is_one_sentence_and_stays_one(
    make: Make, task: str, cause: Cause, sentence: str
) -> None:
    place = make(ENDS, **LONG_LEASE | {"LINECLEAR_KILL_S": "0.3"})
    job, worker = place.submit(task), place.worker()
    (failed,) = place.ended(job)
    assert (failed.state, failed.cause, failed.attempt) == (State.FAILED, cause, 1)
    assert sentence in (failed.error or "") and len(failed.error or "") <= 500
    if task == "raises":
        log = place.queue.log_path(job, 1).read_text()
        assert "some output" in log and "x" * 2000 in log and "Traceback" in log
    assert worker.end() == 0
    place.check_idle()


def test_case_c5_killed_from_outside_is_no_cancel(make: Make) -> None:
    source = """
@queue.task(lane="one")
def waits(ctx):
    time.sleep(600)
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("waits"), place.worker()
    os.kill(place.running(job).child_pid or 0, signal.SIGKILL)
    (failed,) = place.ended(job)
    assert (failed.state, failed.cause) == (State.FAILED, Cause.SIGNALLED)
    assert worker.end() == 0
    place.check_idle()


def test_e10_what_cannot_be_started_has_failed_with_the_systems_sentence(make: Make) -> None:
    place = make(ENDS, **LONG_LEASE)
    job, after = place.submit("exits"), place.submit("raises")
    once = """
real, calls = own.spawn, []
def spawn(command, **more):
    calls.append(1)
    return real(["/no/such/python"] if len(calls) == 1 else command, **more)
own.spawn = spawn
"""
    worker = place.worker(sabotage=once)
    failed, _ = place.ended(job, after)
    assert (failed.state, failed.cause) == (State.FAILED, Cause.NOT_STARTED)
    assert "No such file or directory" in (failed.error or "")
    assert worker.end() == 0
    place.check_idle()


def test_a_failure_of_the_worker_itself_takes_no_slot_for_ever(make: Make) -> None:
    place = make("""
@queue.task(lane="one")
def quick(ctx):
    say("start", ctx.attempt, ctx.staging)
""")
    job = place.submit("quick")
    broken = """
real, calls = run.wipe, []
def wipe(*args):
    calls.append(1)
    if len(calls) == 1:
        raise RuntimeError("a mistake")
    real(*args)
run.wipe = wipe
"""
    worker = place.worker(sabotage=broken)
    (done,) = place.ended(job)
    assert done.state is State.DONE
    assert "RuntimeError: a mistake" in worker.said
    assert worker.end() == 0
    place.check_idle()


def test_e11_retries_back_off_and_a_cancel_between_them_holds(make: Make) -> None:
    source = """
@queue.task(lane="one", retries=2, retry_delay_s=0.2)
def flaky(ctx):
    say("try", ctx.attempt)
    raise ValueError("again")

@queue.task(lane="one", retries=1, retry_delay_s=3600)
def slow(ctx):
    raise ValueError("again")
"""
    place = make(source, **LONG_LEASE)
    flaky, slow = place.submit("flaky"), place.submit("slow")
    worker = place.worker()
    (failed,) = place.ended(flaky)
    assert (failed.state, failed.attempt, failed.failures) == (State.FAILED, 3, 3)
    tries = [int(line[0]) for line in place.diary]
    assert tries[1] - tries[0] > 0.2e9 and tries[2] - tries[1] > 0.4e9, "doubled each time"
    place.until(lambda: place.job(slow).run_at_ms)
    place.queue.cancel(slow)
    gone = place.job(slow)
    assert (gone.state, gone.attempt) == (State.CANCELLED, 1)
    assert worker.end() == 0
    place.check_idle()


def test_p23_a_child_that_stays_after_its_end_is_ended_and_its_result_counts(make: Make) -> None:
    source = """
@queue.task(lane="one")
def stays(ctx, ignores: bool):
    if ignores:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(600,)).start()
    return ignores
"""
    place = make(source, **LONG_LEASE | {"LINECLEAR_KILL_S": "0.3"})
    jobs = [place.submit("stays", ignores=ignores) for ignores in (False, True)]
    worker = place.worker()
    assert [job.result for job in place.ended(*jobs)] == ["false", "true"]
    assert worker.end() == 0
    place.check_idle()


def test_p11_case_c7_once_the_outcome_is_stored_no_wish_changes_it(make: Make) -> None:
    source = """
@queue.task(lane="one")
def stays(ctx):
    threading.Thread(target=until, args=("go",)).start()
    return "kept"
"""
    place = make(source, **LONG_LEASE | {"LINECLEAR_KILL_S": "60"})
    job, worker = place.submit("stays"), place.worker()
    place.until(lambda: place.job(job).outcome, what="the outcome")
    assert place.queue.cancel(job).wish is None
    assert place.queue.kill(job).wish is None
    assert place.queue.lane("one").stop_now()[0].wish is None
    place.touch("go")
    assert (place.ended(job)[0].state, place.job(job).result) == (State.DONE, '"kept"')
    assert worker.end() == 0
    place.check_idle()


def test_p25_a_resumed_parent_does_not_submit_its_children_again(make: Make) -> None:
    source = """
@queue.task(lane="children")
def child(ctx, number: int):
    say("child", number)

@queue.task(lane="parents")
def parent(ctx):
    for number in range(3):
        ctx.submit(child, number=number)
    if ctx.attempt == 1:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
"""
    place = make(source, **LONG_LEASE)
    parent = place.submit("parent")
    assert place.worker("parents").wait() == -signal.SIGKILL
    worker = place.worker()
    assert place.ended(parent)[0].attempt == 2
    children = place.queue.jobs(lane="children")
    assert len(children) == 3 and {one.parent for one in children} == {parent}
    place.ended(*(one.id for one in children))
    assert [place.said("child", number) for number in range(3)] == [1, 1, 1]
    assert worker.end() == 0
    place.check_idle()


def test_e21_a_run_without_its_lease_submits_nothing(make: Make) -> None:
    source = """
@queue.task(lane="children")
def child(ctx):
    pass

@queue.task(lane="parents")
def parent(ctx):
    say("start", ctx.attempt)
    until("go")
    ctx.submit(child)
"""
    from lineclear.store import runs

    place = make(source, **LONG_LEASE)
    job, worker = place.submit("parent"), place.worker("parents")
    place.until_said("start", 1)
    with place.queue.store.write() as tx:
        mine = runs.take_lease(tx, place.running(job))
        assert mine is not None
    place.touch("go")
    place.until(lambda: "its lease is lost" in worker.said, what="the refused submit")
    assert place.queue.jobs(lane="children") == []
    with place.queue.store.write() as tx:
        runs.finish(tx, mine, Ending("lost"), by="tester")
    assert place.ended(job)[0].attempt == 2
    assert len(place.queue.jobs(lane="children")) == 1
    assert worker.end() == 0


def test_p26_what_is_kept_survives_attempts_and_is_wiped_at_the_end(make: Make) -> None:
    source = """
@queue.task(lane="one")
def keeps(ctx):
    part = ctx.kept / "part"
    if not part.exists():
        part.write_text("half")
        (ctx.staging / "piece").write_text("x")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    return [part.read_text(), os.listdir(ctx.staging)]
"""
    place = make(source, **LONG_LEASE)
    job = place.submit("keeps")
    assert place.worker().wait() == -signal.SIGKILL
    worker = place.worker()
    assert json.loads(place.ended(job)[0].result or "") == ["half", []]
    place.until(lambda: os.listdir(place.queue.files.kept(0, 0).parent) == [])
    assert worker.end() == 0
    place.check_idle()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs a second file system")
def test_p26_a_temporary_name_beside_a_target_is_removed_by_who_takes_the_job_back(
    make: Make,
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        source = f"""
from lineclear import publishing
real = publishing.sync

def sync(path):
    if path.name.startswith(".") and once("killed"):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    real(path)

publishing.sync = sync

@queue.task(lane="one")
def crosses(ctx):
    with ctx.publish(Path({other!r}) / "target") as staged:
        staged.write_text(f"attempt {{ctx.attempt}}")
"""
        place = make(source, **LONG_LEASE)
        if os.stat(other).st_dev == os.stat(place.folder).st_dev:
            pytest.skip("the folder of the tests is on that file system too")
        job = place.submit("crosses")
        assert place.worker().wait() == -signal.SIGKILL
        assert [one.name for one in Path(other).iterdir()] == [f".target.{job}-1"]
        worker = place.worker()
        assert place.ended(job)[0].attempt == 2
        assert [one.name for one in Path(other).iterdir()] == ["target"]
        assert (Path(other) / "target").read_text() == "attempt 2"
        assert worker.end() == 0
        place.check_idle()


@pytest.mark.parametrize(
    "how",
    ["kill the child", "kill the job", "kill the supervisor", "kill the keeper and the supervisor"],
)
def test_p10_case_i2_the_whole_tree_of_a_run_goes_with_it(make: Make, how: str) -> None:
    source = f"""
@queue.task(lane="one")
def tree(ctx):
    if ctx.attempt == 1:
        exec({SLEEPERS!r})
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("tree"), place.worker()
    mine = place.running(job)
    mark = f"{mine.worker}.{job}.1"
    place.until(lambda: len(linux.marked(mark)) == 4, what="three programs")
    tree = [name(pid) for pid in linux.marked(mark)]
    if how == "kill the child":
        os.kill(mine.child_pid or 0, signal.SIGKILL)
        assert place.ended(job)[0].cause == Cause.SIGNALLED
        assert all(map(is_over, tree)), "before its slot was free"
    elif how == "kill the job":
        place.queue.kill(job)
        assert place.ended(job)[0].cause == Cause.KILLED
        assert all(map(is_over, tree)), "before its slot was free"
    elif how == "kill the supervisor":
        worker.kill()
        place.until(lambda: all(map(is_over, tree)), what="the keeper to end the tree")
        worker = place.worker()
        assert place.ended(job)[0].attempt == 2
    else:
        os.kill(place.keeper(worker), signal.SIGKILL)
        worker.kill()
        worker = place.worker()
        place.until_attempt(job, 2)
        assert all(map(is_over, tree)), "before its slot was given away"
        place.ended(job)
    assert worker.end() == 0
    place.check_idle()


def test_case_i1_a_flood_of_output_never_blocks_and_is_bounded(make: Make) -> None:
    source = """
@queue.task(lane="one")
def floods(ctx):
    line = b"\\xff" * 1000 + b"\\n"
    def flood(descriptor):
        for _ in range(20):
            os.write(descriptor, line * 1000)
    threads = [threading.Thread(target=flood, args=(one,)) for one in (1, 2)]
    for one in threads: one.start()
    for one in threads: one.join()
    os.write(1, b"y" * 5_000_000)
    os.close(1)
    os.write(2, b"\\nthe last line\\n")
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("floods"), place.worker()
    assert place.ended(job)[0].state is State.DONE
    log = place.queue.log_path(job, 1)
    halves = [log, log.with_name(log.name + ".1")]
    assert sum(half.stat().st_size for half in halves) < 17 * 2**20
    assert "the last line" in log.read_text()
    assert worker.end() == 0
    place.check_idle()


def test_case_i6_orphans_of_many_jobs_leave_no_zombies(make: Make) -> None:
    source = """
@queue.task(lane="one")
def leaves(ctx):
    for _ in range(2):
        subprocess.run(["sh", "-c", "sleep 0.01 &"])
"""
    place = make(source, **LONG_LEASE)
    jobs = [place.submit("leaves") for _ in range(15)]
    place.queue.lane("one").set_concurrency(3)
    worker = place.worker()
    assert {job.state for job in place.ended(*jobs)} == {State.DONE}

    def zombies() -> list[int]:
        seen = linux.processes().values()
        return [each.pid for each in seen if each.parent == worker.pid and each.gone]

    place.until(lambda: not zombies(), what="zombies to be reaped")
    assert worker.end() == 0
    place.check_idle()


def test_case_e6_many_reports_are_few_writes(make: Make) -> None:
    source = """
@queue.task(lane="one")
def reports(ctx):
    say("start")
    for done in range(100):
        ctx.progress(done, 100)
        ctx.safe_point()
        time.sleep(0.02)
"""
    place = make(source, **LONG_LEASE)
    jobs = [place.submit("reports") for _ in range(20)]
    place.queue.lane("one").set_concurrency(20)
    count = """
import atexit
calls = []
around(runs, "beat", before=lambda tx, beats: calls.append(len(list(beats))))
atexit.register(lambda: Path("beats").write_text(str(len(calls))))
"""
    worker = place.worker(sabotage=count)
    began = place.queue.now_ms()
    done = place.ended(*jobs)
    took_s = (place.queue.now_ms() - began) / 1000
    assert {(job.state, job.done) for job in done} == {(State.DONE, 100)}
    assert len(place.events()) == 2 + 3 * 20, "no event for a report"
    assert worker.end() == 0
    beats = int((place.folder / "beats").read_text())
    assert beats <= 20 + took_s + 2, "one an end, and one a second for all together"
    place.check_idle()


def test_the_priority_is_the_workers_and_the_tasks(make: Make) -> None:
    source = """
@queue.task(lane="one", nice=3)
def nice(ctx):
    return os.getpriority(os.PRIO_PROCESS, 0)
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("nice"), place.worker()
    own = os.getpriority(os.PRIO_PROCESS, worker.pid)
    assert place.ended(job)[0].result == str(min(own + 3, 19))
    assert worker.end() == 0
