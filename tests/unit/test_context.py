"""What a task holds: stopping, honest progress, steps, publishing. The link is this file's own."""

import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lineclear import errors, wire
from lineclear.clock import SystemClock
from lineclear.context import Context
from lineclear.held import keep_flushing
from lineclear.tasks import make_task


class Link:
    """Keeps what was sent and answers everything ``kept``, or as told."""

    def __init__(self) -> None:
        self.moves: list[wire.Moved] = []
        self.asked: list[Any] = []
        self.answer: Callable[[Any], wire.Answer] = lambda _: wire.Answer(
            0, "kept", {"id": 9, "title": "t"}
        )
        self.sent = threading.Semaphore(0)

    def send(self, message: wire.Moved, /) -> None:
        self.moves.append(message)
        self.sent.release()

    def ask(self, question: wire.Question, /) -> wire.Answer:
        self.asked.append(question)
        return self.answer(question)

    @property
    def steps(self) -> list[str]:
        return [one.name for one in self.asked if isinstance(one, wire.StepDone)]


def context(tmp_path: Path, link: Link | None = None, **steps: str | None) -> Context:
    for name in ("staging", "kept"):
        (tmp_path / name).mkdir(exist_ok=True)
    recorded = {name: {"weight": 0, "result": result} for name, result in steps.items()}
    run = wire.Run(
        job=7,
        attempt=1,
        lane="l",
        task="t",
        app="a:t",
        args="{}",
        key=None,
        title="",
        unit="",
        steps=recorded,
        staging=str(tmp_path / "staging"),
        kept=str(tmp_path / "kept"),
        memory_mb=None,
        started_ms=0,
    )
    return Context(run, link or Link(), clock=SystemClock())


def shown(ctx: Context, link: Link) -> tuple[float | None, float | None]:
    ctx.flush()
    return link.moves[-1].done, link.moves[-1].total


@pytest.mark.parametrize(
    ("why", "error"),
    [
        ("cancel", errors.Cancelled),
        ("interrupt", errors.Interrupted),
        ("timeout", errors.Cancelled),
    ],
)
def test_e07_a_safe_point_raises_what_except_exception_lets_pass(
    tmp_path: Path, why: Any, error: type[BaseException]
) -> None:
    ctx = context(tmp_path)
    ctx.safe_point()
    assert not ctx.stopping
    ctx.stop(wire.Stop(why, "ann"))
    assert ctx.stopping
    for _ in range(2):
        with pytest.raises(error) as caught:
            ctx.safe_point()
        assert not isinstance(caught.value, Exception)


def test_p24_a_safe_point_is_one_look_at_an_attribute(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    ctx.safe_point()  # the first after a message also says that there is one to send
    called: list[str] = []
    sys.setprofile(lambda _frame, event, what: called.append(f"{event} {what}"))
    try:
        ctx.safe_point()
    finally:
        sys.setprofile(None)
    # The call itself, its return and the profile's end: no lock, no system call, nothing else.
    assert [each.split()[0] for each in called] == ["call", "return", "c_call"], called


def test_a_cancel_outranks_an_interrupt(tmp_path: Path) -> None:
    for first, second in (("cancel", "interrupt"), ("interrupt", "cancel")):
        ctx = context(tmp_path)
        ctx.stop(wire.Stop(first, "ann"))  # type: ignore[arg-type]
        ctx.stop(wire.Stop(second, "ann"))  # type: ignore[arg-type]
        with pytest.raises(errors.Cancelled):
            ctx.safe_point()


def test_case_d6_progress_is_never_above_its_total_nor_nonsense(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    ctx.progress(12, 7, "pages")
    assert shown(ctx, link) == (7, 7)
    ctx.progress(total=40)
    assert shown(ctx, link) == (12, 40)
    ctx.progress(0)
    assert shown(ctx, link) == (0, 40)
    ctx.progress(5)
    for nonsense in (math.nan, -1, math.inf, -math.inf):
        ctx.progress(nonsense, nonsense)
        ctx.safe_point(advance=nonsense)
        assert shown(ctx, link) == (5, 40)
    ctx.progress(1e9)
    assert shown(ctx, link) == (40, 40)


def test_e24_no_fraction_where_nothing_was_weighed(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    ctx.safe_point()
    assert shown(ctx, link) == (None, None)
    ctx.safe_point(advance=3)
    assert shown(ctx, link) == (3, None)
    for _ in range(3):
        ctx.safe_point(advance=1.7e308)
    assert shown(ctx, link) == (None, None), "a sum beyond any number is not sent"


def test_notes_are_one_short_line(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    ctx.progress(note="a\nb " + "x" * 100, unit="y" * 100)
    ctx.flush()
    assert link.moves[-1].note == ("a b " + "x" * 100)[:80]
    assert len(link.moves[-1].unit) == 80


def test_every_safe_point_is_a_move_and_many_are_one_message(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    threading.Thread(target=keep_flushing, args=(ctx.wake, ctx.flush), daemon=True).start()
    ctx.safe_point()
    assert link.sent.acquire(timeout=10), "the first move is sent at once"
    for _ in range(10_000):
        ctx.safe_point(advance=1)
    assert link.sent.acquire(timeout=10), "the last move does not stay unsent"
    assert link.moves[-1].done == 10_000
    assert len(link.moves) <= 3
    assert not link.sent.acquire(timeout=0.7), "and nothing is sent while nothing moves"


def test_the_last_of_many_racing_moves_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lineclear.held.MOVE_INTERVAL_S", 0)
    link = Link()
    ctx = context(tmp_path, link)
    threading.Thread(target=keep_flushing, args=(ctx.wake, ctx.flush), daemon=True).start()
    for number in range(1, 2000):
        ctx.progress(number)
        if number % 50 == 0:
            while not (link.moves and link.moves[-1].done == number):
                assert link.sent.acquire(timeout=10), f"{number} was never sent"


def test_e08_steps_are_recorded_once_each_and_recorded_ones_skipped(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link, b=None)
    seen = []
    for one in ctx.steps(["a", "b", "c"], name=str, weight=lambda _: 10, unit="characters"):
        seen.append(one)
        assert shown(ctx, link) == (10 * len(seen), 30)
        ctx.safe_point(advance=7)
    assert seen == ["a", "c"] and link.steps == ["a", "c"]
    assert shown(ctx, link) == (30, 30) and link.moves[-1].unit == "characters"


def test_a_step_that_raises_or_is_left_early_is_not_recorded(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)

    def walk() -> None:
        for _ in ctx.steps(["a"], name=str):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        walk()
    for one in ctx.steps(["b", "c"], name=str):
        if one == "c":
            break
    assert link.steps == ["b"]


def test_case_g9_a_cancel_during_a_step_keeps_it_and_stops_before_the_next(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    rendered = []

    def walk() -> None:
        for one in ctx.steps(["a", "b"], name=str):
            rendered.append(one)
            ctx.stop(wire.Stop("cancel"))

    with pytest.raises(errors.Cancelled):
        walk()
    assert rendered == ["a"] == link.steps


def test_step_names_must_differ_before_anything_runs(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    with pytest.raises(errors.BadInput, match="two steps of this job are called 'a'"):
        ctx.steps(["a", "b", "a"], name=str)
    for name in ("", "x" * 201):
        with pytest.raises(errors.BadInput, match="a step's name has 1 to 200"):
            ctx.steps([name], name=str)
    list(ctx.steps(["a"], name=str))
    with pytest.raises(errors.BadInput, match="two steps of this job are called 'a'"):
        ctx.steps(["b", "a"], name=str)
    assert link.steps == ["a"]


def test_a_step_called_returns_its_stored_result(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link, old='{"n": 1}', none=None)
    assert ctx.step("old", lambda: pytest.fail("it is done")) == {"n": 1}
    assert ctx.step("none", lambda: pytest.fail("it is done")) is None
    assert ctx.step("new", lambda: [1, 2], weight=2) == [1, 2]
    assert ctx.step("new", lambda: pytest.fail("it is done")) == [1, 2]
    (done,) = link.asked
    assert (done.name, done.weight, done.result) == ("new", 2, "[1,2]")
    assert shown(ctx, link) == (2, None)


def test_a_step_as_a_block(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link, old="5")
    with ctx.step("old") as step:
        assert step.done and step.result == 5
    with ctx.step("new") as step:
        assert not step.done
        step.result = 6
    with pytest.raises(ValueError, match="no"), ctx.step("bad"):
        raise ValueError("no")
    assert link.steps == ["new"] and link.asked[0].result == "6"


@pytest.mark.parametrize("value", [math.nan, {"a": math.inf}, object(), b"x"])
def test_a_step_result_that_is_no_json_names_the_step(tmp_path: Path, value: object) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    with pytest.raises(errors.BadInput, match="the result of step 'x' cannot be stored as JSON: "):
        ctx.step("x", lambda: value)
    assert link.steps == []


def test_e21_a_lost_lease_ends_the_task_and_a_refusal_is_a_sentence(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    link.answer = lambda _: wire.Answer(0, "lost")
    with pytest.raises(errors.LeaseLost):
        ctx.step("x", lambda: 1)
    with pytest.raises(errors.LeaseLost), ctx.publish(tmp_path / "a") as staged:
        staged.write_text("a")
    assert not (tmp_path / "a").exists()
    link.answer = lambda _: wire.Answer(0, "refused", error="the parent is being cancelled")
    with pytest.raises(errors.Refused, match="the parent is being cancelled"):
        ctx.step("x", lambda: 1)


def test_publish_replaces_the_whole_file_after_asking(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    target = tmp_path / "book.m4b"
    target.write_text("old")

    def answer(question: Any) -> wire.Answer:
        assert question == wire.Publish(0, str(target), ".book.m4b.7-1")
        assert target.read_text() == "old"
        return wire.Answer(0, "kept")

    link.answer = answer
    with ctx.publish(target) as staged:
        assert staged.parent == ctx.staging and staged.suffix == ".m4b"
        staged.write_text("new")
    assert target.read_text() == "new"
    assert len(link.asked) == 1 and list(ctx.staging.iterdir()) == []


def test_publish_publishes_nothing_where_the_block_fails(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    target = tmp_path / "book.m4b"

    def half(error: type[BaseException]) -> None:
        with ctx.publish(target) as staged:
            staged.write_text("half")
            raise error

    for error in (ValueError, errors.Cancelled):
        with pytest.raises(error):
            half(error)
    with pytest.raises(errors.BadInput, match="the block made no file"), ctx.publish(target):
        pass
    with (
        pytest.raises(errors.BadInput, match="there is no such folder"),
        ctx.publish(tmp_path / "no" / "book.m4b"),
    ):
        pytest.fail("the block must not run")
    assert link.asked == [] and not target.exists() and list(ctx.staging.iterdir()) == []


@pytest.fixture
def other_device(tmp_path: Path) -> Any:
    import tempfile

    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    with tempfile.TemporaryDirectory(dir=shm) as folder:
        yield Path(folder)


def test_publish_crosses_devices(tmp_path: Path, other_device: Path) -> None:
    ctx = context(tmp_path)
    target = other_device / "book.m4b"
    with ctx.publish(target) as staged:
        staged.write_bytes(b"x" * 100_000)
    assert target.read_bytes() == b"x" * 100_000
    assert [p.name for p in other_device.iterdir()] == ["book.m4b"]


def test_case_h7_a_disk_that_is_full_records_no_step(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    target = tmp_path / "part"

    def walk() -> None:
        for _ in ctx.steps(["a"], name=str):
            with ctx.publish(target) as staged:
                staged.symlink_to("/dev/full")
                with staged.open("wb") as file:
                    file.write(b"x")

    with pytest.raises(OSError, match="No space left"):
        walk()
    assert link.asked == [] and not target.exists()


def test_case_h7_a_failing_copy_to_another_device_leaves_the_old_file(
    tmp_path: Path, other_device: Path
) -> None:
    import resource

    link = Link()
    ctx = context(tmp_path, link)
    target = other_device / "part"
    target.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def walk() -> None:
        for _ in ctx.steps(["a"], name=str):
            with ctx.publish(target) as staged:
                staged.write_bytes(b"x" * 200_000)
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))

    try:
        with pytest.raises(OSError, match="File too large"):
            walk()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert link.steps == [] and target.read_text() == "old"
    assert [p.name for p in other_device.iterdir()] == ["part"]


def test_p25_children_have_keys_that_a_resumed_run_repeats(tmp_path: Path) -> None:
    def mail(ctx: Any, to: str) -> None:
        pass

    plain = make_task(mail, lane="post", retries=2)
    keyed = make_task(mail, key="{to}", title="Mail {to}")

    def work(ctx: Context) -> None:
        for _ in ctx.steps(["a", "b"], name=str):
            assert ctx.submit(plain, "ann") == (9, "t")
            ctx.submit(keyed, to="bob")
        ctx.submit(plain, to="eve")

    first, second = Link(), Link()
    work(context(tmp_path, first))
    work(context(tmp_path, second, a=None))
    submitted = [one for one in first.asked if isinstance(one, wire.Submit)]
    again = [one for one in second.asked if isinstance(one, wire.Submit)]
    assert [one.ordinal for one in submitted] == ["a-1", "a-2", "b-1", "b-2", "1"]
    assert again == submitted[2:]
    assert [one.key for one in again] == ["7-b-1", "bob", "7-1"]
    assert (again[0].lane, again[0].args) == ("post", '{"to":"ann"}')
    assert again[0].options.retries == 2 and again[1].title == "Mail bob"
    with pytest.raises(errors.BadInput, match="to: this argument is missing"):
        context(tmp_path).submit(plain)


def test_the_log_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context(tmp_path).log.info("chapter %d", 3)
    assert capsys.readouterr().err.endswith("INFO chapter 3\n")


def test_p23_a_forked_copy_sends_nothing(tmp_path: Path) -> None:
    link = Link()
    ctx = context(tmp_path, link)
    ctx.forked()
    ctx.safe_point(advance=1)
    assert not ctx.wake.is_set() and link.moves == [] and os.getpid()
