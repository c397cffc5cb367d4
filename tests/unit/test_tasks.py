"""Tasks: what may be registered, how arguments are checked, and how a task is found again."""

import datetime
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

import lineclear
from lineclear import errors
from lineclear.job import PAYLOAD_LIMIT
from lineclear.tasks import Task, app_of, load_app, load_task, make_task, register

if TYPE_CHECKING:
    from lineclear import Context


def render(ctx: "Context", book: int, voice: str = "joe", *, speed: float | None = None) -> None:
    """Render a book."""


def dated(ctx: Any, path: Path, day: datetime.date, mode: Literal["a", "b"] = "a") -> None:
    pass


def anything(ctx: Any, value: Any = None, names: list[str] = []) -> None:  # noqa: B006
    pass


RENDER = make_task(render)


def test_public_names_are_a_tested_list() -> None:
    assert dir(lineclear) == sorted(lineclear.__all__)
    for name in lineclear.__all__:
        assert getattr(lineclear, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lineclear.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import lineclear, sys; print([m for m in sys.modules if m.startswith('lineclear.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_arguments_become_canonical_json_with_defaults() -> None:
    assert RENDER.check({"book": 271}) == '{"book":271,"voice":"joe","speed":null}'
    assert RENDER.check({"speed": 1, "book": "271"}) == '{"book":271,"voice":"joe","speed":1.0}'
    assert RENDER.arguments.named((271, "amy"), {"speed": 2.0}) == {
        "book": 271,
        "voice": "amy",
        "speed": 2.0,
    }


@pytest.mark.parametrize(
    ("args", "field", "sentence"),
    [
        ({}, "book", "book: this argument is missing"),
        ({"book": 1, "colour": 2}, "colour", "colour: there is no such argument"),
        ({"book": 1, "voice": 5}, "voice", "voice: Input should be a valid string"),
        ({"book": "x"}, "book", "book: Input should be a valid integer"),
        ({"book": None}, "book", "book: Input should be a valid integer"),
        ({"book": 1, "speed": math.nan}, "speed", "speed: this value cannot be stored as JSON"),
        ({"book": 1, "speed": math.inf}, "speed", "speed: this value cannot be stored as JSON"),
    ],
)
def test_e28_bad_arguments_name_the_field(args: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        RENDER.check(args)
    assert caught.value.field == field
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("value", [object(), {1: "a"}, b"\xff", {1, 2}, (1, 2), [math.nan]])
def test_e28_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises(errors.BadInput) as caught:
        make_task(anything).check({"value": value})
    assert caught.value.field == "value"


def test_e28_an_oversized_payload_is_refused_naming_the_largest_argument() -> None:
    half = "x" * (PAYLOAD_LIMIT * 2 // 3)
    for args in ({"value": "x" * PAYLOAD_LIMIT}, {"value": half, "names": [half + "y"]}):
        with pytest.raises(errors.TooLarge, match="the limit is") as caught:
            make_task(anything).check(args)
        assert caught.value.field == list(args)[-1]


def test_too_many_and_doubled_arguments_are_refused() -> None:
    with pytest.raises(errors.BadInput, match="3 arguments are too many"):
        RENDER.arguments.named((1, "a", 2), {})
    with pytest.raises(errors.BadInput, match="book: this argument is given twice"):
        RENDER.arguments.named((1,), {"book": 2})


def test_plain_arguments_need_no_pydantic_and_keep_odd_text() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from lineclear.tasks import make_task\n"
        "def f(ctx, a: str, b: list[int] | None = None, c: dict[str, float] = {}): pass\n"
        "t = make_task(f)\n"
        "text = t.check({'a': '\\ud800\\0', 'b': [1]})\n"
        "assert t.bind(text) == {'a': '\\ud800\\0', 'b': [1], 'c': {}}, text\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(Path.cwd() / "src")], check=True)


def test_other_types_travel_as_json_and_come_back_as_themselves() -> None:
    task = make_task(dated)
    text = task.check({"path": Path("/a/b"), "day": "2026-12-01"})
    assert json.loads(text) == {"path": "/a/b", "day": "2026-12-01", "mode": "a"}
    assert task.bind(text) == {
        "path": Path("/a/b"),
        "day": datetime.date(2026, 12, 1),
        "mode": "a",
    }
    with pytest.raises(errors.BadInput, match="mode: Input should be 'a' or 'b'"):
        task.check({"path": "x", "day": "2026-12-01", "mode": "c"})
    with pytest.raises(errors.BadInput, match="day: "):
        task.bind('{"path":"x","day":"never"}')


def test_nested_errors_say_where() -> None:
    with pytest.raises(
        errors.BadInput, match=r"names\.1: Input should be a valid string"
    ) as caught:
        make_task(anything).check({"names": ["a", 2]})
    assert caught.value.field == "names"


def test_a_default_of_none_makes_the_argument_optional() -> None:
    def loose(ctx: Any, voice: str = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
        pass

    assert make_task(loose).check({}) == '{"voice":null}'


def test_an_annotation_that_does_not_exist_is_a_sentence() -> None:
    def lost(ctx: Any, book: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    class Strange:
        pass

    def strange(ctx: Any, book: Strange) -> None:
        pass

    with pytest.raises(errors.Refused, match="Nowhere"):
        make_task(lost).check({"book": 1})
    with pytest.raises(errors.BadInput, match="book: its type cannot be checked"):
        make_task(strange).check({"book": 1})


def test_the_schema_is_what_a_form_needs() -> None:
    schema = RENDER.schema()
    assert schema["required"] == ["book"] and schema["additionalProperties"] is False
    assert schema["properties"]["book"] == {"type": "integer"}
    assert schema["properties"]["voice"] == {"type": "string", "default": "joe"}
    assert make_task(dated).schema()["properties"]["mode"]["enum"] == ["a", "b"]


def test_a_task_without_context_gets_none() -> None:
    def bare(book: int) -> None:
        pass

    def typed(context: "lineclear.Context", book: int) -> None:
        pass

    assert not make_task(bare).arguments.takes_context
    assert make_task(typed).arguments.takes_context
    assert make_task(typed).check({"book": 1}) == make_task(bare).check({"book": 1})


def test_keys_and_titles_are_filled_in() -> None:
    task = make_task(render, key="{book}-{voice}", title="{{Render}} {book} {speed}")
    text = task.check({"book": 3, "voice": "{book.__class__}"})
    assert task.render_key(text) == "3-{book.__class__}"
    assert task.render_title(text) == "{Render} 3 null"
    assert RENDER.render_key(text) is None and RENDER.render_title(text) == ""
    with pytest.raises(errors.BadInput, match="the key has 501 characters"):
        task.render_key(task.check({"book": 3, "voice": "x" * 499}))


@pytest.mark.parametrize(
    "template", ["{book.real}", "{book[0]}", "{}", "{0}", "{nothing}", "{book!r}", "{book:>9}", "{"]
)
def test_templates_take_plain_names_only(template: str) -> None:
    with pytest.raises(errors.BadInput, match="cannot be filled in") as caught:
        make_task(render, key=template)
    assert caught.value.field == "key"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("retries", -1),
        ("retry_delay_s", -0.1),
        ("retry_delay_s", math.nan),
        ("timeout_s", 0),
        ("timeout_s", math.nan),
        ("memory_mb", 0),
        ("nice", 20),
        ("max_interruptions", -1),
        ("lane", ""),
        ("lane", "a b"),
        ("lane", "x" * 65),
        ("lane", "../x\n"),
        ("name", "a/b"),
    ],
)
def test_e28_bad_options_name_the_field(option: str, value: Any) -> None:
    with pytest.raises(errors.BadInput, match=option) as caught:
        make_task(render, **{option: value})
    assert caught.value.field == option


def test_what_cannot_be_a_task_is_refused() -> None:
    def several(ctx: Any) -> Any:
        yield 1

    def many(ctx: Any, *books: int) -> None:
        pass

    with pytest.raises(errors.Refused, match="'several' yields: a task returns its result"):
        make_task(several)
    with pytest.raises(errors.Refused, match="must have a name of its own"):
        make_task(many)


def test_where_a_task_runs_is_decided_when_it_is_registered() -> None:
    async def later(ctx: Any) -> None:
        pass

    def now(ctx: Any) -> None:
        pass

    assert make_task(now).options.runs_in == "own"
    assert make_task(now, runs_in="own").options.runs_in == "own"
    assert make_task(now, runs_in="thread").options.runs_in == "thread"
    assert make_task(later).options.runs_in == "coroutine"
    with pytest.raises(errors.BadInput, match="'later' is a coroutine, which runs in its lane's"):
        make_task(later, runs_in="own")
    with pytest.raises(errors.BadInput, match="runs_in must be 'own' or 'thread', not 'host'"):
        make_task(now, runs_in="host")  # type: ignore[arg-type]
    with pytest.raises(errors.BadInput, match="memory_mb cannot hold for 'later': it shares its"):
        make_task(later, memory_mb=100)
    with pytest.raises(errors.BadInput, match="nice cannot hold for 'now': it shares its process"):
        make_task(now, runs_in="thread", nice=5)


def test_two_tasks_of_one_name_are_refused() -> None:
    tasks: dict[str, Task] = {}
    register(tasks, RENDER)
    register(tasks, make_task(render))
    with pytest.raises(errors.BadInput, match="two tasks are called 'render'"):
        register(tasks, make_task(dated, name="render"))


def test_a_task_is_still_its_function_and_submits_through_its_queue() -> None:
    sent: list[Any] = []

    class Queue:
        def submit(self, task: Task, args: Any, /) -> Any:
            sent.append((task.name, args))

    def double(number: int) -> int:
        return 2 * number

    task = make_task(double, queue=Queue())
    assert task(4) == 8
    task.submit(4)
    assert sent == [("double", {"number": 4})]
    with pytest.raises(errors.Refused, match="belongs to no queue"):
        RENDER.submit(1)


APPLICATION = """
import sys
from lineclear.tasks import make_task, app_of
class Q:
    tasks = {}
queue = Q()
def plain(ctx): pass
other = make_task(plain, name="other")
@make_task
def work(ctx): pass
three = 3
if __name__ == "__main__":
    print(work.app)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "appl.py").write_text(APPLICATION)
    (tmp_path / "broken.py").write_text("raise ValueError('no luck')")
    (tmp_path / "leaves.py").write_text("import sys; sys.exit('bye')")
    (tmp_path / "needy.py").write_text("import not_there_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return tmp_path


def test_applications_and_tasks_are_found_again(folder: Path) -> None:
    assert load_app("appl:queue") is load_app("appl")
    assert load_task("appl:work").name == "work"
    assert load_task("appl:plain").name == "other"
    path = folder / "appl.py"
    task = load_task(f"{path}:work")
    assert task.app == f"{path}:work", "found by path, it stays known by path"
    assert load_task(f"{path}:work") is task
    assert app_of(render).endswith(":render")


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        ("work", "not of the form module:attribute"),
        ("nowhere:work", "'nowhere:work' cannot be loaded: No module named 'nowhere'; looked in"),
        ("needy:work", "'needy:work' cannot be loaded: No module named 'not_there_at_all'"),
        ("appl:lost", "appl has no 'lost'"),
        ("appl:three", "'appl:three' is no task but a int"),
        ("broken:work", "'broken:work' cannot be loaded: ValueError: no luck"),
        ("leaves:work", "'leaves:work' cannot be loaded: SystemExit: bye"),
        ("/nowhere/file.py:work", "FileNotFoundError"),
        ("appl:f.<locals>.g", "defined inside a function"),
        ("__main__:work", "defined at a prompt"),
    ],
)
def test_what_cannot_be_loaded_is_a_sentence(folder: Path, app: str, sentence: str) -> None:
    with pytest.raises(errors.TaskLoadError) as caught:
        load_task(app)
    assert sentence in str(caught.value)


def test_an_application_that_is_no_queue_is_a_sentence(folder: Path) -> None:
    with pytest.raises(errors.TaskLoadError, match="'appl:work' is no Queue but a Task"):
        load_app("appl:work")


@pytest.mark.parametrize("how", [["appl.py"], ["-m", "appl"]])
def test_a_script_names_itself_so_that_a_child_finds_it(folder: Path, how: list[str]) -> None:
    app = subprocess.check_output([sys.executable, *how], text=True, cwd=folder).strip()
    assert app == ("appl:work" if "-m" in how else f"{folder / 'appl.py'}:work")
    assert load_task(app).name == "work"


def test_nothing_is_submitted_while_a_child_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Queue:
        def submit(self, task: Task, args: Any, /) -> Any:
            raise AssertionError

    monkeypatch.setitem(os.environ, "LINECLEAR_LOADING", "1")
    with pytest.raises(errors.Refused, match="__main__"):
        make_task(render, queue=Queue()).submit(1)
