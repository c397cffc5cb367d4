"""Bad input: a sentence that says what to do, the right exit code, and nothing changed (E28)."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Place
from tests.helpers import python, said

from lineclear.store.migrate import newest


@pytest.fixture(scope="module")
def busy(shared: Place) -> Place:
    """Job 1 and 2 wait, job 3 was removed, job 4 waits in another lane."""
    shared.add(book=271)
    shared.add(book=272)
    shared.queue.remove(shared.add(book=273))
    shared.add("fail")
    return shared


def everything(place: Place) -> str:
    """All that a command could have changed."""
    jobs = place.queue.jobs(hidden=True, limit=1000)
    return repr((place.queue.last_seq(), place.queue.lanes(), jobs))


BAD = {
    "no such task": (["add", "rendr"], 2, "There is no task 'rendr'. Tasks here: "),
    "wrong type": (["add", "render", "book=x"], 2, "book: Input should be a valid integer"),
    "no such argument": (["add", "render", "book=1", "voce=ann"], 2, "voce: there is no such"),
    "argument missing": (["add", "render"], 2, "book: this argument is missing"),
    "argument twice": (["add", "render", "book=1", "book=2"], 2, "book: this argument is given"),
    "no argument at all": (["add", "render", "271"], 2, "'271' is no argument: write name=value."),
    "a lane for add": (["add", "render", "book=1", "--lane", "nix"], 2, "There is no lane 'nix'"),
    "a time": (["add", "render", "book=1", "--not-before", "soon"], 2, "--not-before is a time"),
    "no such lane": (["pause", "--lane", "nix"], 2, "There is no lane 'nix'. Lanes here: other"),
    "lane to look at": (["status", "--lane", "nix"], 2, "There is no lane 'nix'."),
    "negative delay": (["delay", "-5s", "--lane", "render"], 2, "The delay cannot be negative"),
    "no duration": (["delay", "5 parsecs", "--lane", "render"], 2, "The delay is a duration such"),
    "which lane": (["delay", "5s"], 2, "Say which lane, with --lane, or --all."),
    "no slots": (["slots", "0", "--lane", "render"], 2, "A lane has 1 to 1000 slots, not 0."),
    "negative slots": (["slots", "-1", "--lane", "render"], 2, "A lane has 1 to 1000 slots"),
    "slots in words": (["slots", "two", "--lane", "render"], 2, "is a whole number, not 'two'"),
    "no such id": (["stop", "99", "-y"], 4, "There is no job 99."),
    "id beyond numbers": (["show", "9" * 40], 4, "No job is called"),
    "no such name": (["remove", "Dune"], 4, "No job is called 'Dune'."),
    "nothing runs": (["stop", "running", "-y"], 4, "No job is running."),
    "ambiguous name": (["show", "Render 27"], 2, "'Render 27' could be 3 jobs: "),
    "nothing named": (["pause"], 2, "Say which job"),
    "ids and lane": (["remove", "1", "--lane", "render"], 2, "Say either ids or"),
    "wrong state": (["retry", "1"], 5, "Job 1 is queued; only an ended job can be tried again."),
    "removed twice": (["remove", "3"], 5, "Job 3 is cancelled, so it cannot be removed."),
    "all or none": (["remove", "1", "3"], 5, "Job 3 is cancelled, so it cannot be removed."),
    "paused when ended": (["pause", "3"], 5, "Job 3 is cancelled, so it cannot be paused."),
    "changed meanwhile": (["pause", "1", "--if-state", "running"], 5, "has changed: it is queued"),
    "no place": (["move", "1", "0"], 2, "0 is no place in line: the first is 1."),
    "place in words": (["move", "1", "soon"], 2, "Say where to: top, bottom"),
    "beside an ended one": (["move", "1", "before", "3"], 5, "Job 3 does not wait in lane render"),
    "no try of that number": (["log", "1", "--try", "3"], 4, "so there is no try 3."),
    "pause in the past": (["pause", "--all", "--until", "2020-01-01T10:00"], 2, "over before it"),
    "more than one, unasked": (["start", "1", "2"], 2, "Nobody is here to answer: say --yes."),
    "stop unasked": (["stop", "1"], 2, "Nobody is here to answer: say --yes."),
    "clear failed unasked": (["clear", "--failed"], 2, "say --yes."),
    "run an ended one": (["run", "3"], 5, "Job 3 is cancelled, so it cannot be started."),
    "wait for nothing": (["wait", "--all", "--lane", "other", "--timeout", "0"], 6, "Not all have"),
    "unknown field": (["status", "--format", "{nix}"], 2, "'nix' is none of id, title"),
    "unknown verb": (["cancel", "1"], 2, "No such command 'cancel'"),
    "unknown option": (["status", "--nix"], 2, "No such option: --nix"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_e28_bad_input_is_a_sentence_and_changes_nothing(busy: Place, case: str) -> None:
    args, code, sentence = BAD[case]
    before = everything(busy)
    told = busy.call(*args)
    assert sentence in told.err
    assert (told.code, told.out) == (code, "")
    assert "Traceback" not in told.err
    assert everything(busy) == before


@pytest.mark.parametrize("case", ["no such task", "negative delay", "no such id", "wrong state"])
def test_e28_a_real_process_ends_with_that_code(busy: Place, case: str) -> None:
    args, code, sentence = BAD[case]
    told = busy.run(*args)
    assert sentence in told.err
    assert (told.code, told.out, told.err.count("\n")) == (code, "", 1)


def test_e28_a_payload_over_the_limit_names_the_argument(busy: Place) -> None:
    before = everything(busy)
    text = "x" * (17 * 1024 * 1024)
    told = busy.call("add", "say", f"text={text}")
    assert told.code == 2
    assert told.err.startswith("text: ") and "the limit is 16,777,216" in told.err
    assert len(told.err) < 300
    assert everything(busy) == before


def test_e28_no_application_named(busy: Place) -> None:
    told = busy.run("--database", busy.database, "add", "render", bare=True)
    assert (told.code, told.err) == (
        2,
        "Say where the tasks are: lineclear --app module:queue, or LINECLEAR_APP.\n",
    )


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        ("nix:queue", "'nix:queue' cannot be loaded: No module named 'nix'"),
        ("{app}:nix", "has no 'nix'"),
        ("{app}:render", "is no Queue but a Task"),
        ("broken.py:queue", "cannot be loaded: ZeroDivisionError: division by zero"),
    ],
)
def test_e28_an_application_that_cannot_be_loaded(busy: Place, app: str, sentence: str) -> None:
    (busy.folder / "broken.py").write_text("1 / 0\n")
    named = app.format(app=busy.app)
    told = busy.run("--app", named, "--database", busy.database, "add", "render", bare=True)
    assert (told.code, told.out) == (2, "")
    assert sentence in told.err and "Traceback" not in told.err


def test_e26_no_database_yet(busy: Place) -> None:
    missing = busy.folder / "missing.db"
    for verb in (["status"], ["pause", "--all"], ["doctor"]):
        told = busy.run("--database", missing, *verb, bare=True)
        assert told.code == (1 if verb == ["doctor"] else 3)
        assert f"There is no database {missing}." in told.err + told.out
    assert not missing.exists()


def test_e28_a_file_that_is_no_database(busy: Place) -> None:
    other = busy.folder / "notes.txt"
    other.write_text("My notes, " * 500)
    told = busy.run("--database", other, bare=True)
    assert told.code == 3
    assert str(other) in told.err and told.err.count("\n") == 1
    assert other.read_text() == "My notes, " * 500


def test_e28_a_database_of_another_program(busy: Place) -> None:
    other = busy.folder / "other.db"
    with sqlite3.connect(other) as made:
        made.execute("CREATE TABLE account (name TEXT)")
    made.close()
    told = busy.run("--database", other, "add", "say", "--lane", "other", bare=True,
                    env=busy.environment | {"LINECLEAR_APP": f"{busy.app}:queue"})  # fmt: skip
    assert told.code == 3 and str(other) in told.err
    with sqlite3.connect(other) as seen:
        assert seen.execute("SELECT name FROM sqlite_schema").fetchall() == [("account",)]
    seen.close()


def test_e28_a_database_of_a_newer_version(place: Place) -> None:
    place.add(book=1)
    place.queue.close()
    with sqlite3.connect(place.database) as made:
        made.execute(f"PRAGMA user_version = {newest() + 1}")
    made.close()
    told = place.run("status")
    assert told.code == 3
    assert "newer" in told.err and told.err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/sys is Linux's")
def test_e28_a_folder_that_cannot_be_written_to(busy: Place) -> None:
    """Not even root makes files in /sys."""
    database = Path("/sys/line.db")
    told = busy.run("--database", database, "add", "render", "book=1", bare=True,
                    env=busy.environment | {"LINECLEAR_APP": f"{busy.app}:queue"})  # fmt: skip
    assert told.code in (3, 7)
    assert "/sys" in told.err and told.err.count("\n") == 1


def test_e26_a_disk_that_takes_no_more(place: Place) -> None:
    """A limit on the size of files stands for the full disk: the write is refused midway."""
    place.add(book=1)
    before = everything(place)
    limit = (place.database.stat().st_size // 4096 + 30) * 4096
    code = (
        "import resource, sys; from lineclear.cli import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.exit(main([*sys.argv[1:], 'text=' + 'x' * 3_000_000]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *place.given(("add", "say"))],
        capture_output=True, text=True, env=place.environment, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1
    place.queue.close()
    assert everything(place) == before


def test_what_belongs_to_somebody_else_is_not_allowed(
    busy: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may do everything, so the refusal itself is made here."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "line.db.d/bell")

    monkeypatch.setattr("lineclear.view.picture", refuse)
    told = busy.call("status")
    assert told.code == 7
    assert told.err.startswith("Not allowed: ") and told.err.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_fault(busy: Place) -> None:
    with busy.start("history") as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == ""


def test_case_d1_a_row_that_cannot_be_read_takes_no_other_with_it(place: Place) -> None:
    bad, good = place.add(book=1), place.add(book=2)
    place.queue.close()
    with sqlite3.connect(place.database) as made:
        made.execute(
            "UPDATE job SET args = ?, title = ?, total = 9e999, done = 1, result = 'NaN',"
            " run_at_ms = ? WHERE id = ?",
            ('{"book": \\ud800', "evil \x1b[2J \u202e", 2**60, bad),
        )
    made.close()
    told = place.call("status")
    assert told.code == 0 and "Render 2" in told.out
    assert "\x1b" not in told.out and "\\x1b[2J" in told.out
    document = json.loads(place.call("status", "--json").out)
    assert {job["id"] for job in document["jobs"]} == {bad, good}
    shown = place.call("show", bad)
    assert shown.code == 0 and 'cannot show the arguments: {"book": \\ud800' in shown.out
    assert place.call("history", "--json").code == 0


def test_case_h4_every_acknowledged_add_is_there_after_a_kill(place: Place) -> None:
    looped = (
        "import sys\nfrom lineclear.cli import main\n"
        "for book in range(500):\n"
        "    try: main([*sys.argv[1:], 'add', 'say', f'text={book}', '-q'])\n"
        "    except SystemExit: pass\n"
    )
    with python(looped, *place.given(())) as process:
        acknowledged = [int(said(process)) for _ in range(10)]
        process.kill()
        assert process.stdout
        acknowledged += [int(line) for line in process.stdout if line.strip().isdecimal()]
    listed = {job.id for job in place.queue.jobs(limit=1000)}
    assert set(acknowledged) <= listed
    assert place.queue.check() == []
