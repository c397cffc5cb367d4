"""The verbs on what waits and what has ended: no worker needed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest
from tests.cli.conftest import PROGRAM, Place

from lineclear.job import State
from lineclear.tasks import load_app


def order(place: Place) -> list[int]:
    return [job.id for job in place.queue.waiting("render")]


def test_add_says_the_id_and_the_place(place: Place) -> None:
    assert place.run("add", "render", "book=271").out == "Added 1, 1st\n"
    assert place.call("add", "render", "book=272", "--first").out == "Added 2, 1st\n"
    assert place.call("add", "render", "book=271").out == "Already there: 1, 2nd\n"
    assert place.call("add", "render", "book=273", "-q").out == "3\n"
    assert order(place) == [2, 1, 3]


def test_values_are_json_where_they_read_as_json(place: Place) -> None:
    place.call("add", "render", "book=7", "voice=1984", "pages=3", "pause_s=0.5")
    assert json.loads(place.queue.get(1).args) == {
        "book": 7, "voice": "1984", "pages": 3, "pause_s": 0.5,
    }  # fmt: skip
    place.call("add", "say", "text=NaN")
    place.call("add", "say", "text=")
    assert [json.loads(place.queue.get(id_).args) for id_ in (2, 3)] == [
        {"text": "NaN"}, {"text": ""}
    ]  # fmt: skip


def test_add_takes_what_a_job_can_have(place: Place) -> None:
    said = place.call(
        "add", "say", "--lane", "other", "--key", "k", "--title", "Dune", "--priority", "3",
        "--paused", "--not-before", "2h", "--json",
    )  # fmt: skip
    document = json.loads(said.out)
    (job,) = document["jobs"]
    assert (document["new"], job["title"], job["key"], job["priority"]) == (True, "Dune", "k", 3)
    assert (job["state"], job["look"], job["word"]) == ("queued", "held", "Paused")
    assert job["not_before"]["at"] is not None


def test_the_json_document_is_whole_and_unknown_is_null(place: Place) -> None:
    place.add(book=1)
    document = json.loads(place.run("status", "--json").out)
    assert (document["version"], document["queue"]["lanes"][0]["name"]) == (1, "render")
    assert document["queue"]["sentence"].startswith("Nobody serves lane render.")
    (job,) = document["jobs"]
    assert job["left_s"] is None and job["done"] is None and job["percent"] is None
    assert job["added"]["at"][:2] == "20" and job["added"]["at"][-6] in "+-"
    assert job["added"]["words"]


def test_e25_nobody_serves_the_lane(place: Place) -> None:
    place.add(book=1)
    said = place.call("status")
    assert said.out.splitlines()[0] == ("Nobody serves lane render. No worker ever has. 1 waiting.")
    assert "no worker serves its lane" in said.out
    doctor = place.call("doctor")
    assert doctor.code == 1
    assert "Start one: lineclear worker --lane render" in doctor.out


def test_no_verb_is_status(place: Place) -> None:
    place.add(book=1)
    env = place.environment | {"LINECLEAR_DATABASE": str(place.database)}
    short = place.run(bare=True, env=env)
    assert short.code == 0
    assert short.out == place.run("status", bare=True, env=env).out == place.call().out
    assert place.call("ls").out == short.out


def test_move_gives_another_place(place: Place) -> None:
    for book in range(1, 6):
        place.add(book=book)
    assert place.call("move", 4, "top").out == "Moved 4 Render 4, now 1st.\n"
    assert order(place) == [4, 1, 2, 3, 5]
    place.call("move", 4, 1, "bottom")
    assert order(place) == [2, 3, 5, 4, 1]
    place.call("move", 5, 4, "before", 2)
    assert order(place) == [5, 4, 2, 3, 1]
    place.call("move", 5, 4, "after", 1)
    assert order(place) == [2, 3, 1, 5, 4]
    place.call("move", 5, 4, "1")
    assert order(place) == [5, 4, 2, 3, 1]
    place.call("move", "Render 1", "up")
    assert order(place) == [5, 4, 2, 1, 3]
    assert place.call("undo").out.startswith("Undone: the move of 1 job, ")
    assert order(place) == [5, 4, 2, 3, 1]


def test_remove_and_undo(place: Place) -> None:
    for book in (1, 2, 3):
        place.add(book=book)
    said = place.call("rm", 1, "Render 2")
    assert said.out == "Removed 1 Render 1.\nRemoved 2 Render 2.\n"
    assert said.err == "2 jobs removed. Back with: lineclear undo\n"
    assert order(place) == [3]
    assert place.call("undo", "-q").out == "1\n2\n"
    assert order(place) == [1, 2, 3]
    assert place.call("remove", "--lane", "render").code == 0
    assert order(place) == []
    assert place.call("show", 1).out.splitlines()[1].startswith("Removed · by you ")


def test_pause_and_resume_one_job(place: Place) -> None:
    place.add(book=1)
    place.add(book=2)
    assert place.call("pause", 1).out == "Paused 1 Render 1.\n"
    assert place.call("pause", 1).out == "Paused 1 Render 1, as it was already.\n"
    assert "Paused · 1st when resumed, by you" in place.call("status", 1).out
    assert place.call("resume", 1).out == "Resumed 1 Render 1, now 1st.\n"


def test_case_c9_a_pause_says_who_when_why_and_until_when(place: Place) -> None:
    place.add(book=1)
    place.queue.lane("render").pause("reading scans", source="scanner", by="photo reader")
    said = place.call("status").out.splitlines()[0]
    assert "Paused by photo reader at " in said and "(reading scans)" in said
    assert place.call("resume", "--all").out == (
        "Resumed lane render, paused by photo reader. 1 job waiting.\n"
    )
    mine = place.call("pause", "--all", "--for", "1h", "--reason", "quiet hours")
    assert mine.out.startswith("Paused lane render until ")
    assert "Paused by you at " in place.call("status").out
    assert "(quiet hours), until " in place.call("status").out


def test_delay_and_slots_are_shown_and_set(place: Place) -> None:
    place.add(book=1)
    assert place.call("delay", "90s").out == "Delay of lane render: 1 min 30 s.\n"
    assert place.call("delay").out == "render: 1 min 30 s\n"
    assert place.call("slots", "2").out == "Slots of lane render: 2.\n"
    assert place.call("slots").out == "render: 2, 0 running\n"


def test_case_c7_stopping_what_does_not_run(place: Place) -> None:
    """Waiting, held, due later: it ends at once. Ended: a clear sentence."""
    waits, held, later = place.add(book=1), place.add(book=2), place.add(book=3)
    place.call("pause", held)
    place.call("add", "say", "--not-before", "2h")
    for job_id in (waits, held, later, later + 1):
        said = place.call("stop", job_id, "-y")
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith(f"Stopped {job_id} ")
        job = place.queue.get(job_id)
        assert (job.state, job.attempt) == (State.CANCELLED, 0)
    again = place.call("stop", waits, "-y")
    assert again.code == 0 and "It had ended already (Stopped, by you " in again.err


def test_clear_hides_and_undo_shows(place: Place) -> None:
    place.add(book=1)
    place.call("stop", 1, "-y")
    assert place.call("clear").out == "0 jobs cleared from the lists. Rows and logs stay.\n"
    assert place.call("clear", "--all", "-y").out.startswith("1 job cleared")
    assert place.call("history", "-q").out == ""
    assert place.call("history", "--all", "-q").out == "1\n"
    assert place.call("undo").out.startswith("Undone: the clearing of 1 job")
    assert place.call("history", "-q").out == "1\n"


def test_retry_and_the_retry_of_all_failed(place: Place) -> None:
    for book in (1, 2):
        place.add(book=book)
        place.call("stop", book, "-y")
    assert place.call("retry", 2).out == "Added again 2 Render 2, now 1st.\n"
    assert place.call("retry", 1, "--first").out == "Added again 1 Render 1, now 1st.\n"
    none = place.call("retry", "--failed")
    assert (none.code, none.err) == (0, "There is no such job now, so there is nothing to do.\n")
    assert place.call("stop", "--now", "--lane", "render", "-y").code == 0


def test_case_d2_every_count_is_the_number_of_rows(place: Place) -> None:
    """101 failures with text of every kind, some cleared: what is counted can be paged through."""
    place.queue.tasks = load_app(f"{place.app}:queue").tasks
    for number in range(101):
        place.queue.add("say" if number % 2 else "fail", {})
    place.queue.close()
    with sqlite3.connect(place.database) as made:
        for number, text in enumerate(("voilà ☃", "\x00\x1b[31m", "\\udcff", "x" * 500)):
            made.execute(
                "UPDATE job SET state = 'failed', cause = 'raised', ended_ms = id, error = ?"
                " WHERE id % 4 = ?",
                (text, number),
            )
    made.close()

    def paged() -> int:
        seen, before = 0, 10**6
        while ids := place.call(
            "history", "--state", "failed", "-q", "--limit", 30, "--before", before
        ).out.split():
            seen, before = seen + len(ids), int(ids[-1])
        return seen

    assert paged() == 101
    early = "1970-01-01T00:00:00.021+00:00"
    said = place.call("clear", "--failed", "--before", early, "-y")
    assert said.out == "20 jobs cleared from the lists. Rows and logs stay.\n"
    assert paged() == 81
    assert "and 76 more" in place.call("retry", "--failed").err
    assert place.call("retry", "--failed", "-y", "-q").out.count("\n") == 81
    assert " 81 waiting." in place.call("status").out
    assert len(json.loads(place.call("status", "--all", "--json").out)["jobs"]) == 81


def test_history_goes_page_by_page(place: Place) -> None:
    for book in range(1, 6):
        place.add(book=book)
    said = place.call("history", "--limit", 2)
    assert said.out.splitlines()[-1] == "Older: lineclear history --before 4"
    assert place.call("history", "--before", 4, "-q").out == "3\n2\n1\n"
    assert place.call("history", "--state", "done", "--since", "7d").out == "No job matches.\n"


def test_format_has_the_names_of_the_document(place: Place) -> None:
    place.add(book=1)
    said = place.call("status", "--format", "{id}\\t{state}\\t{title}")
    assert said.out == "1\tqueued\tRender 1\n"


def test_colour_only_where_it_is_wanted(place: Place) -> None:
    place.add(book=1)
    assert "\x1b" not in place.run("status").out
    always = place.run("--color", "always", "--database", place.database, "status", bare=True)
    assert "\x1b[2mWaiting\x1b[0m" in always.out


def test_a_job_started_now_says_what_still_holds_it(place: Place) -> None:
    place.add(book=1)
    said = place.call("start", 1)
    assert said.out == "Starting now 1 Render 1.\n"
    assert said.err.startswith("Nobody serves its lane.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(place: Place, shell: str) -> None:
    said = place.run("completion", shell)
    assert said.code == 0
    assert "_LINECLEAR_COMPLETE" in said.out and "lineclear" in said.out


def test_ids_are_completed_from_the_database(place: Place) -> None:
    place.add(book=1)
    place.add(book=2)
    asked = {
        "_LINECLEAR_COMPLETE": "complete_bash",
        "COMP_WORDS": f"lineclear --database {place.database} stop ",
        "COMP_CWORD": "4",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, env=place.environment | asked, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["1", "2"], done.stderr


def test_status_leaves_out_what_is_slow_to_import(place: Place) -> None:
    """What makes it answer at once; the figure itself is bench's."""
    place.add(book=1)
    code = (
        "import sys; from lineclear.cli import main; main([])\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, check=True,
        env=place.environment | {"LINECLEAR_DATABASE": str(place.database)},
    )  # fmt: skip
    loaded = set(done.stderr.split())
    assert "Render 1" in done.stdout
    assert not loaded & {"pydantic", "rich", "asyncio", "lineclear.cli.program"}


def test_doctor_finds_a_sound_installation(place: Place) -> None:
    place.queue.lanes()
    said = place.run("doctor")
    assert said.code == 0, said.out
    verdicts = {line.split()[0] for line in said.out.splitlines()}
    assert verdicts <= {"ok", "warn"}
    for sentence in ("can be written to", "free on its disk", "is sound", "Importing "):
        assert sentence in said.out


def test_doctor_measures_the_import_of_the_application(place: Place) -> None:
    place.queue.lanes()
    place.app.write_text("import time; time.sleep(0.8)\n" + place.app.read_text())
    said = place.call("doctor")
    assert "s: move heavy imports into the task." in said.out
    place.app.write_text("import nix\n")
    broken = place.call("doctor")
    assert broken.code == 1 and "cannot be loaded" in broken.out


def test_stats_tells_people_and_programs(place: Place) -> None:
    place.add(book=1)
    assert "waits longest" in place.call("stats").out
    told = json.loads(place.call("stats", "--since", "24h", "--json").out)
    assert told["version"] == 1
    assert told["oldest"]["id"] == 1
    assert (told["tasks"], told["ranges"]["shown"], told["capped"]) == ([], 0, False)
    assert told["every_s"] == 3600
    assert place.call("stats", "--lane", "nowhere").code == 2
    assert place.call("stats", "--since", "soon").code == 2
