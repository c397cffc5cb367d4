"""The command line as people type it: a process, its output, its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bedside import shelf
from bedside.library import Library
from lineclear import Queue

SAMPLE = Path(shelf.__file__).parent / "sample" / "line-clear.html"


def bedside(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("bedside")
    return subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_refusal_keeps_the_name_of_a_file_as_it_is(home: Path, tmp_path: Path) -> None:
    (tmp_path / "big.epub").mkdir()
    assert "book in big.epub, it is not a file" in bedside("add", tmp_path / "big.epub").stderr
    assert bedside("list").stderr.startswith("No book is here. Add one:")


def test_b01_add_only_submits_and_says_where_the_book_stands(home: Path) -> None:
    done = bedside("add", SAMPLE, "--voice", "tone")
    assert (done.returncode, done.stdout) == (
        0,
        'Book 1, "Line Clear", 3 chapters: job 1, number 1 in line.\n',
    )
    assert "No worker runs. Start one: lineclear --database" in done.stderr
    assert (
        bedside("list").stdout.split()
        == "1 pending 0 of 3 Line Clear (the Night Signalman)".split()
    )
    assert not (home / "audio").exists()
    again = bedside("add", SAMPLE, "--voice", "tone")
    assert (again.returncode, again.stderr) == (2, '"Line Clear" waits in line, number 1 (job 1)\n')
    with_number = bedside("add", 11)
    assert (with_number.returncode, "Project Gutenberg no. 11" in with_number.stdout) == (0, True)
    shown = bedside("show", 1)
    assert shown.returncode == 0 and "0 of 3 chapters are there: 0:00." in shown.stdout
    assert bedside("search", "kettle").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["add", "none.epub"], 2, "There is no file none.epub; say a file's path or a Project"),
        (["add", "empty.epub"], 2, "Found no readable text (empty.epub is empty)"),
        (["add", "book.txt", "--voice", "ada"], 2, 'There is no voice "ada"; there are: joe, tone'),
        (["show", "9"], 4, "There is no book 9; `bedside list` shows the books"),
        (["search", "?"], 2, "Say at least one word to search for"),
        (["add"], 2, "Missing argument"),
    ],
)
def test_e28_a_refusal_is_one_sentence_and_changes_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, code, says
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.epub").touch()
    (tmp_path / "book.txt").write_text("It was late.")
    done = bedside(*arguments)
    assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
    with Library.open(home) as library:
        assert library.books() == []


def test_case_g4_the_chapters_can_be_seen_before_anything_is_rendered(home: Path) -> None:
    listed = bedside("add", "--dry-run", SAMPLE)
    assert listed.returncode == 0 and listed.stdout.count(" characters  Chapter ") == 3
    assert not home.exists()


def test_b06_a_dead_render_can_be_asked_for_again(home: Path) -> None:
    bedside("add", SAMPLE, "--voice", "tone")
    queue = Queue(home / "lineclear.db")
    queue.cancel(1)
    again = bedside("add", SAMPLE, "--voice", "tone")
    assert again.stdout == 'Book 1, "Line Clear", 3 chapters: job 1, goes on where it ended.\n'
    queue.cancel(1)
    other = bedside("add", SAMPLE, "--voice", "joe")
    assert other.returncode == 0 and "job 2, number 1 in line" in other.stdout
    queue.close()


def test_e22_the_command_line_and_the_jobs_load_nothing_heavy() -> None:
    code = (
        "import sys, bedside.jobs, bedside.cli; "
        "heavy = {'av', 'numpy', 'lxml', 'syntok', 'httpx', 'piper', 'onnxruntime'}; "
        "print(*heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
