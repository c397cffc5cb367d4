"""The messages: what survives, what is refused, and what no peer can do to the other."""

import json

import pytest

from lineclear import wire
from lineclear.job import Cause, Options, Outcome

RUN = wire.Run(
    job=7,
    attempt=2,
    lane="render",
    task="render",
    app="books:render",
    args='{"book":271}',
    key="271",
    title="Render 271",
    unit="characters",
    steps={"chapter 1": {"weight": 12.5, "result": None}},
    staging="/s",
    kept="/k",
    memory_mb=None,
    started_ms=1_700_000_000_000,
)
MESSAGES: list[wire.Message] = [
    RUN,
    wire.Stop("cancel", "ann"),
    wire.Answer(3, "kept", {"id": 4, "title": ""}),
    wire.Answer(4, "refused", None, "the parent is being cancelled"),
    wire.Ready(123),
    wire.Moved(1.5, None, "", "reading"),
    wire.StepDone(1, "chapter 1", 2, "null", 5),
    wire.Publish(2, "/shelf/a.m4b", ".a.m4b.7"),
    wire.Submit(5, "mail", "a:mail", "{}", "post", "7-1", "", "1", Options(timeout_s=3, unit="x")),
    wire.Ended(6, Outcome("failed", error="ValueError: no", cause=Cause.RAISED)),
    wire.Ended(7, Outcome("done", result="{}")),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_every_message_arrives_as_it_was_sent(message: wire.Message) -> None:
    line = wire.encode(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and line.isascii()
    (arrived,) = wire.Reader().feed(line)
    assert arrived == message and type(arrived) is type(message)


def test_messages_come_out_of_any_pieces() -> None:
    stream = b"".join(wire.encode(one) for one in MESSAGES)
    for size in (1, 2, 7, 100, len(stream)):
        reader = wire.Reader()
        pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
        assert [m for piece in pieces for m in reader.feed(piece)] == MESSAGES


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "line\nline", "\u2028", "𝄞"])
def test_p21_odd_text_survives(text: str) -> None:
    (arrived,) = wire.Reader().feed(wire.encode(wire.Moved(None, None, text, text)))
    assert isinstance(arrived, wire.Moved) and (arrived.unit, arrived.note) == (text, text)


def test_not_a_number_is_neither_written_nor_accepted() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        wire.encode(wire.Moved(float("nan"), None, "", ""))
    with pytest.raises(wire.WireError, match="NaN"):
        wire.decode(b'{"t":"moved","done":NaN,"total":null,"unit":"","note":""}')
    for large in (b"1e999", b"-1e999", b"1" + b"0" * 400):
        with pytest.raises(wire.WireError, match=r"Moved\.done"):
            wire.decode(b'{"t":"moved","done":' + large + b',"total":null,"unit":"","note":""}')


def test_p23_a_long_line_passes_and_an_endless_one_has_a_named_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert wire.LINE_LIMIT == 64 * 1024 * 1024
    long = wire.StepDone(1, "long", 0, "x" * 5_000_000, 0)
    assert wire.Reader().feed(wire.encode(long)) == [long]
    monkeypatch.setattr(wire, "LINE_LIMIT", 1000)
    with pytest.raises(wire.MessageTooLarge, match="the limit is 1000"):
        wire.encode(long)
    reader = wire.Reader()
    for _ in range(9):
        reader.feed(b"x" * 100)
    with pytest.raises(wire.MessageTooLarge):
        reader.feed(b"x" * 100)
    with pytest.raises(wire.MessageTooLarge):
        wire.Reader().feed(b"x" * 2000 + b"\n")


def test_another_version_is_a_sentence() -> None:
    line = wire.encode(RUN._replace(version=wire.WIRE_VERSION + 1))
    with pytest.raises(wire.WireError, match="start the worker again"):
        wire.decode(line)


@pytest.mark.parametrize(
    "change",
    [
        {"t": "nonsense"},
        {"re": "1"},
        {"re": True},
        {"name": None},
        {"weight": "heavy"},
        {"surplus": 1},
        {"result": 5},
    ],
)
def test_a_broken_peer_raises_one_kind_of_error(change: dict[str, object]) -> None:
    good = json.loads(wire.encode(wire.StepDone(1, "a", 0, None, 0)))
    with pytest.raises(wire.WireError):
        wire.decode(json.dumps(good | change).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"t":["run"]}',
        b'{"t":"ready"}',
        b'{"t":"ended","re":1,"outcome":3}',
        b'{"t":"ended","re":1,"outcome":{"kind":"perhaps"}}',
        b'{"t":"ended","re":1,"outcome":{"kind":"done","cause":"magic"}}',
        b'{"t":"stop","why":"because"}',
    ],
)
def test_what_is_no_message_raises_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(line)
