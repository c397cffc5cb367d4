"""A run's log: what goes in, what is kept, what is read, with real pipes and real files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineclear.worker.logreader import LogLine, LogReader, read_lines
from lineclear.worker.logs import LINE_LIMIT, TAIL_LINES, JobLog


class Clock:
    """Counts, so that each call has its own time."""

    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def tick_ms(self) -> int:
        return self.ms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "7-1.log"


def texts(path: Path, *, last: int | None = None) -> list[str]:
    return [line.text for line in read_lines(path, last=last)]


def fed(path: Path, *chunks: bytes) -> list[str]:
    """The texts of a log that was fed these chunks of standard output."""
    log = JobLog(path)
    for chunk in chunks:
        log.feed("o", chunk)
    log.close()
    return texts(path)


def test_the_form_of_a_record(path: Path) -> None:
    log = JobLog(path, clock=Clock())
    log.feed("o", b"out\nmo")
    log.feed("e", b"err\n")
    log.note("Attempt 1 begins")
    log.feed("o", b"re\n")
    log.close()
    log.close()
    log.feed("o", b"too late\n")
    assert path.read_bytes() == b"1001 o out\n1002 e err\n1003 l Attempt 1 begins\n1004 o more\n"
    assert list(read_lines(path))[1] == LogLine(1002, "e", "err")
    assert log.tail() == ["out", "err", "more"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\n\nb"], ["a", "", "b"]),
        ([b"gr\xc3", b"\xbcn\n"], ["grün"]),
        ([b"\xff\xfe bad\n"], ["�� bad"]),
        ([b"cut \xc3"], ["cut �"]),
        ([b"nul\0 esc\x1b[1m tab\t del\x7f\n"], ["nul\\x00 esc\\x1b[1m tab\t del\\x7f"]),
        ([b"c1 \xc2\x85 stays a line\n"], ["c1 \\x85 stays a line"]),
        ([b" leading  and trailing \n"], [" leading  and trailing "]),
        ([b"dos\r\nfile\r", b"\n"], ["dos", "file"]),
        ([b" 10%\r 20%\r", b" 30%\r", b" 40%\ndone\n"], [" 40%", "done"]),
        ([b" 10%\r", b" 20%\r"], [" 20%"]),
        ([b"\r\r\r"], []),
        ([b""], []),
    ],
)
def test_what_a_line_becomes(path: Path, chunks: list[bytes], expected: list[str]) -> None:
    assert fed(path, *chunks) == expected


def test_a_long_line_is_cut_and_says_so(path: Path) -> None:
    log = JobLog(path)
    log.feed("o", b"a" * (LINE_LIMIT + 1))
    log.feed("e", b"between\n")
    log.feed("o", b"b" * LINE_LIMIT + b"\nnext\n" + b"c" * LINE_LIMIT + b"\n")
    log.close()
    seen = [(line.stream, line.continued, len(line.text)) for line in read_lines(path)]
    assert seen == [
        ("o", False, LINE_LIMIT),
        ("e", False, 7),
        ("o", True, LINE_LIMIT),
        ("o", True, 1),
        ("o", False, 4),
        ("o", False, LINE_LIMIT),
    ]


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_chunks_make_no_difference(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    apart = fed(folder / "apart", *chunks)
    assert apart == fed(folder / "whole", b"".join(chunks))
    assert all("\n" not in text and "\0" not in text for text in apart)


def test_the_tail_is_the_last_lines_the_run_printed(path: Path) -> None:
    log = JobLog(path)
    for number in range(100):
        log.feed("e", b"line %d\n" % number)
    log.feed("e", b"Killed")
    log.note("not the run's")
    log.close()
    assert log.tail() == [*(f"line {number}" for number in range(81, 100)), "Killed"]
    assert len(log.tail()) == TAIL_LINES


def halves(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(path.name + "*"))


def test_case_i1_the_log_keeps_the_newest_and_says_what_it_dropped(path: Path) -> None:
    log = JobLog(path, limit_bytes=2_000)
    log.feed("o", b"".join(b"line %03d\n" % number for number in range(120)))
    assert not any("dropped" in text for text in texts(path)), "nothing is dropped so far"
    assert len(texts(path)) == 120
    for number in range(120, 1_000):
        log.feed("o", b"line %03d\n" % number)
        assert halves(path) <= 4_000
    log.close()
    kept = list(read_lines(path))
    printed = [line.text for line in kept if line.stream == "o"]
    assert printed == [f"line {number:03}" for number in range(1_000 - len(printed), 1_000)]
    assert len(printed) >= 80
    notes = [line.text for line in kept if line.stream == "l"]
    assert len(notes) == 2
    assert notes[1].startswith("Earlier output was dropped (")
    assert notes[1].endswith("bytes): this log keeps its last 4,000 bytes")


def test_a_record_larger_than_a_half_is_kept(path: Path) -> None:
    log = JobLog(path, limit_bytes=500)
    for letter in b"abc":
        log.feed("o", bytes([letter]) * 1_000 + b"\n")
    log.close()
    assert [text[0] for text in texts(path)] == ["b", "E", "c"]


def test_case_e26_a_full_disk_is_counted_and_said_and_never_raised(path: Path) -> None:
    log = JobLog(path, clock=Clock())
    log.feed("o", b"before\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, hard))
    try:
        log.feed("o", b"lost one\nlost two\n")
        log.feed("e", b"lost three\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.lost == 3
    assert texts(path) == ["before"], "no torn record is left"
    log.feed("o", b"after\nthat\n")
    log.close()
    said = texts(path)
    assert said[0] == "before"
    assert said[1].startswith("3 lines could not be written here: ")
    assert said[2:] == ["after", "that"]
    assert log.tail() == ["before", "lost one", "lost two", "lost three", "after", "that"]


def test_case_e26_a_missing_folder_is_no_error_and_a_new_one_is_used(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "7-1.log"
    log = JobLog(path)
    log.feed("o", b"one\n")
    assert list(read_lines(path)) == []
    path.parent.mkdir()
    log.close()
    assert not path.exists()
    log = JobLog(path)
    log.feed("o", b"two\n")
    log.close()
    assert texts(path) == ["two"]


@pytest.mark.parametrize("last", [0, 1, 3, 50, 99, 100, 101, 5_000])
def test_the_last_lines_are_read_over_both_halves(path: Path, last: int) -> None:
    log = JobLog(path, limit_bytes=1_100)
    log.feed("o", b"".join(b"%d\n" % number for number in range(100)))
    log.close()
    assert path.with_name(path.name + ".1").exists()
    assert texts(path, last=last) == [str(number) for number in range(100)][-last or 100 :]


def test_a_reader_follows_over_every_change_of_halves(path: Path) -> None:
    log = JobLog(path, limit_bytes=300)
    seen: list[str] = []
    with LogReader(path, most_bytes=64) as reader:
        assert reader.read_new() == []
        for number in range(200):
            log.feed("o", b"%d\n" % number)
            while lines := reader.read_new():
                seen += [line.text for line in lines if line.stream == "o"]
    log.close()
    assert seen == [str(number) for number in range(200)]


def test_what_is_written_just_before_the_halves_change_is_read(path: Path) -> None:
    log = JobLog(path, limit_bytes=300)

    class Overtaken(LogReader):
        """Between its look for more lines and its look for a new half, the halves change."""

        def _next(self) -> Path | None:
            if self._descriptor >= 0 and not path.with_name(path.name + ".1").exists():
                log.feed("o", b"2\n" + b"3" * 290 + b"\n")
            return super()._next()

    log.feed("o", b"1\n")
    with Overtaken(path) as reader:
        seen = [line.text[0] for lines in iter(reader.read_new, []) for line in lines]
    log.close()
    assert seen == ["1", "2", "3"]


def test_a_reader_that_was_away_too_long_goes_on_with_what_is_kept(path: Path) -> None:
    log = JobLog(path, limit_bytes=300)
    with LogReader(path) as reader:
        log.feed("o", b"first\n")
        assert [line.text for line in reader.read_new()] == ["first"]
        for number in range(200):
            log.feed("o", b"%d\n" % number)
        seen: list[LogLine] = []
        while lines := reader.read_new():
            seen += lines
    log.close()
    printed = [int(line.text) for line in seen if line.stream == "o"]
    assert printed[-1] == 199
    assert len(set(printed)) == len(printed)
    assert any(line.stream == "l" for line in seen)


def test_a_reader_begins_with_the_last_lines_and_goes_on(path: Path) -> None:
    log = JobLog(path)
    log.feed("o", b"1\n2\n3\n4\n")
    with LogReader(path, last=2) as reader:
        assert [line.text for line in reader.read_new()] == ["3", "4"]
        with path.open("ab") as torn:
            torn.write(b"1 o half")
            torn.flush()
            assert reader.read_new() == []
            torn.write(b" whole\n")
        assert [line.text for line in reader.read_new()] == ["half whole"]
    log.close()


def test_what_is_no_record_is_shown_as_it_is(path: Path) -> None:
    path.write_bytes(b"by hand\n12 x y\n\n7 o fine\n" + b"z" * 100_000 + b"\n")
    lines = list(read_lines(path))
    assert lines[:3] == [
        LogLine(0, "l", "by hand"),
        LogLine(0, "l", "12 x y"),
        LogLine(7, "o", "fine"),
    ]
    with LogReader(path, most_bytes=1_000) as reader:
        pieces = [line.text for lines in iter(reader.read_new, []) for line in lines]
    assert sum(piece.count("z") for piece in pieces) == 100_000


FLOOD = """
import os, select, sys, resource
from pathlib import Path
from lineclear.worker import processes
from lineclear.worker.logs import JobLog, pump

writer = '''
import os, sys, threading
def all_of(fd, data):
    while data:
        data = data[os.write(fd, data):]
line = b"frame=  100 fps= 25 q=28.0 size=    1024kB time=00:00:04.00" + bytes([10])
def errors():
    for _ in range(60):
        all_of(2, line * (1000000 // len(line)))
thread = threading.Thread(target=errors)
thread.start()
for _ in range(60):
    all_of(1, line * (1000000 // len(line)))
all_of(1, b"x" * 50000000)
all_of(1, os.urandom(1000000) + bytes([10]))
os.close(1)
thread.join()
all_of(2, b"the last words" + bytes([10]))
'''
log = JobLog(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
child = processes.spawn([sys.executable, "-c", writer], env=os.environ, mark=sys.argv[2])
open_ones = {child.stdout: "o", child.stderr: "e"}
while open_ones:
    for source in select.select(list(open_ones), [], [])[0]:
        if not pump(source, log, open_ones[source]):
            del open_ones[source]
assert processes.has_ended(child.pidfd, timeout_s=20)
assert child.reap() == processes.Exit(code=0)
child.close()
log.close()
assert log.lost == 0
assert len(log.tail()) == 20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_case_i1_a_flood_on_both_streams_never_blocks_and_stays_bounded(path: Path) -> None:
    command = [sys.executable, "-c", FLOOD, str(path), uuid.uuid4().hex]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=90)
    assert int(done.stdout) < 32_000, "kilobytes of memory for 170 MB of output"
    assert halves(path) <= 16 * 1024 * 1024 + 200
    first = next(iter(read_lines(path)))
    assert "Earlier output was dropped" in first.text
    assert "the last words" in texts(path)
    assert os.path.exists(path.with_name(path.name + ".1"))
