"""What stands on the pages without JavaScript: rows, lanes, forms. ``plain.py`` serves them.

Pure: everything shown is handed in. It must never build HTML other than through ``markup.tag``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lineclear import moves, words
from lineclear.figures import clock, count, duration, printable
from lineclear.job import Event, Job, Lane
from lineclear.tasks import Task
from lineclear.view import Picture, Row
from lineclear.web.markup import Child, Markup, tag
from lineclear.worker.logreader import LogLine

SHOWN = 2_000
"""Characters of arguments, results and errors that a page shows."""

MOVES = ("top", "up", "down", "bottom")


def page(title: str, *main: Child, up: str, here: str = "") -> str:
    """A whole page. ``up`` leads to where the queue is mounted, ``here`` is the page itself."""
    links = (
        ("plain", "Now"),
        ("plain/history", "History"),
        ("plain/add", "Add"),
        ("", "Live page"),
    )
    nav: list[Child] = [tag("a", "Refresh", href=up + here)] if here else []
    nav += [tag("a", name, href=up + path or ".") for path, name in links]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", printable(title)),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=f"{up}static/css/plain.css"),
    )
    header = tag(
        "header",
        tag("h1", printable(title)),
        tag("nav", *((each, " ") for each in nav), aria_label="Sections"),
        tag("p", "This page does not refresh itself."),
    )
    return "<!doctype html>" + tag("html", head, tag("body", header, tag("main", *main)), lang="en")


def button(
    path: str,
    word: str,
    about: str = "",
    *,
    hidden: Mapping[str, str | int] | None = None,
    get: bool = False,
) -> Markup:
    """A form that is one button; what is hidden goes with it."""
    fields = [tag("input", type="hidden", name=k, value=v) for k, v in (hidden or {}).items()]
    press = tag("button", word, aria_label=f"{word} {printable(about)}" if about else None)
    return tag("form", *fields, press, action=path, method="get" if get else "post")


def now(seen: Picture, *, up: str, acts: bool, me: str) -> list[Child]:
    """Lanes, what runs, what waits in order, what ended last."""
    found: list[Child] = []
    if acts:
        found.append(
            tag(
                "div",
                button(f"{up}plain/pause", "Pause all"),
                button(f"{up}plain/resume", "Resume all"),
                button(f"{up}plain/undo", "Undo the last remove, clear or move"),
                class_="acts",
            )
        )
    for title, rows in (("Running", seen.running), ("Waiting", seen.waiting)):
        size = sum(lane.waiting for lane in seen.lanes) if title == "Waiting" else len(rows)
        found.append(tag("h2", f"{title} ({size:,})"))
        found.append(tag("ol", *(line(row, up=up, acts=acts) for row in rows)))
        if size > len(rows):
            found.append(tag("p", f"{size - len(rows):,} more wait behind them."))
    found.append(tag("h2", "Ended last"))
    found.append(tag("ol", *(line(row, up=up, acts=acts) for row in seen.ended)))
    found.append(tag("h2", "Lanes"))
    now_ms = seen.now_ms
    found += [lane_part(each, up=up, acts=acts, me=me, now_ms=now_ms) for each in seen.lanes]
    return found


def line(row: Row, *, up: str, acts: bool, lane: bool = True) -> Markup:
    """One job: its name, its state in words, what can be done."""
    job = row.job
    told = f"{row.word} · {row.detail}" if row.detail else row.word
    return tag(
        "li",
        tag("a", printable(job.name), href=f"{up}plain/jobs/{job.id}"),
        tag("p", told, f" · lane {printable(job.lane)}" if lane else None),
        tag("p", row.progress) if row.progress else None,
        tag("div", *controls(job, up=up), class_="acts") if acts else None,
    )


def controls(job: Job, *, up: str) -> list[Child]:
    """A form for each act that fits the state the job is in."""
    path = f"{up}plain/jobs/{job.id}/"

    def act(name: str, word: str, **more: str) -> Markup:
        return button(path + name, word, job.name, hidden={"version": job.version, **more})

    def ask(name: str, word: str) -> Markup:
        return button(path + name, word, job.name, get=True)

    made: dict[str, list[Child]] = {
        "hold": [act("hold", "Pause")],
        "release": [act("release", "Resume")],
        "move": [act("move", f"Move {to}", to=to) for to in MOVES],
        "force": [act("force", "Start now")],
        "remove": [act("remove", "Remove")],
        "stop": [ask("stop", "Stop…")],
        "kill": [ask("kill", "Stop now…")],
        "retry": [
            act("retry", "Retry"),
            act("retry", "Retry first", first="1"),
            act("retry", "Start over", start_over="1"),
        ],
    }
    return [each for name in moves.acts(job) for each in made[name]]


def lane_part(lane: Lane, *, up: str, acts: bool, me: str, now_ms: int) -> Markup:
    """One lane with its pauses and what can be set."""
    path = f"{up}plain/lanes/{lane.name}/"
    told = [f"{lane.running} running, {lane.waiting:,} waiting, {count(lane.concurrency, 'slot')}."]
    if lane.delay_ms:
        told.append(f"{duration(lane.delay_ms, exact=True)} between jobs.")
    told += words.paused([lane], now_ms=now_ms, me=me)
    if not lane.workers:
        told.append(words.unserved(lane, now_ms=now_ms))
    name = printable(lane.name)
    label = f"lane {name}"
    setting = tag(
        "form",
        number(f"delay-{name}", "Seconds between jobs", "delay_s", lane.delay_ms / 1000),
        number(f"slots-{name}", "Slots", "slots", lane.concurrency, least=1),
        tag("button", "Set", aria_label=f"Set delay and slots of {label}"),
        action=path + "set",
        method="post",
    )
    buttons = (
        button(path + "pause", "Pause", label),
        button(path + "resume", "Resume", label),
        button(path + "stop-now", "Stop now…", label, get=True),
        button(path + "clear", "Remove all waiting…", label, get=True),
    )
    return tag(
        "section",
        tag("h3", name),
        tag("p", " ".join(told)),
        (tag("div", *buttons, class_="acts"), setting) if acts else None,
    )


def number(field: str, label: str, name: str, value: float, *, least: int = 0) -> Markup:
    shown = f"{value:g}"
    return tag(
        "p",
        tag("label", label, for_=field),
        " ",
        tag("input", id=field, type="number", name=name, min=least, step="any", value=shown),
    )


def confirm(
    path: str, verb: str, lines: Sequence[str], *, back: str, fields: Mapping[str, int]
) -> Markup:
    """The second step of what cannot be undone."""
    return tag(
        "section",
        *(tag("p", each) for each in lines),
        tag("div", button(path, verb, hidden=fields), tag("a", "Cancel", href=back), class_="acts"),
    )


def whole(
    row: Row,
    log: Sequence[LogLine],
    events: Sequence[Event],
    *,
    up: str,
    acts: bool,
    me: str,
    now_ms: int,
) -> list[Child]:
    """Everything about one job."""
    job = row.job
    facts = [
        ("Task", job.task),
        ("Lane", job.lane),
        ("Key", job.key),
        ("Added", f"{clock(job.submitted_ms, now_ms=now_ms)} by {words.who(job.submitted_by, me)}"),
        ("Tries", str(job.attempt)),
        ("Note", job.note),
    ]
    texts = (("Inputs", job.args), ("Result", job.result), ("Error", job.error))
    reasons = [words.reason(why, now_ms=now_ms, me=me) for why in row.reasons]
    return [
        tag("ul", line(row, up=up, acts=acts, lane=False), class_="one"),
        tag("ul", *(tag("li", each) for each in reasons)) if reasons else None,
        tag(
            "dl",
            *(
                (tag("dt", name), tag("dd", printable(value)))
                for name, value in facts
                if value is not None and value != ""
            ),
        ),
        *((tag("h2", name), tag("pre", shortened(text))) for name, text in texts if text),
        tag("h2", "Last lines of its log"),
        tag("pre", "\n".join(printable(each.text) for each in log) or "No output yet."),
        tag("h2", "What happened"),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    clock(each.at_ms, now_ms=now_ms),
                    " ",
                    words.happened(each, now_ms=now_ms, me=me),
                )
                for each in events
            ),
        ),
    ]


def shortened(text: str) -> str:
    cut = f"\n… {len(text):,} characters in all" if len(text) > SHOWN else ""
    return printable(text[:SHOWN]) + cut


def adding(tasks: dict[str, Task], *, up: str, once: str, typed: dict[str, str]) -> list[Child]:
    """A form for any task: which one, and its arguments as JSON."""
    if not tasks:
        return [tag("p", NO_TASKS)]
    chosen = typed.get("task")
    options = (tag("option", name, selected=name == chosen) for name in sorted(tasks))
    fields: list[Child] = [
        tag(
            "p",
            tag("label", "Task", for_="task"),
            " ",
            tag("select", *options, id="task", name="task"),
        ),
        tag("p", tag("label", "Arguments, a JSON object", for_="args")),
        tag("textarea", typed.get("args", "{}"), id="args", name="args", rows=8, cols=60),
        tag(
            "p",
            tag("input", id="first", type="checkbox", name="first", checked="first" in typed),
            tag("label", " First in line", for_="first"),
        ),
        tag(
            "p",
            tag("input", id="paused", type="checkbox", name="paused", checked="paused" in typed),
            tag("label", " Paused", for_="paused"),
        ),
        tag("input", type="hidden", name="once", value=once),
        tag("button", "Add"),
    ]
    takes = (
        (tag("dt", name), tag("dd", tag("pre", json.dumps(task.schema()["properties"], indent=1))))
        for name, task in sorted(tasks.items())
    )
    return [
        tag("form", *fields, action=f"{up}plain/add", method="post"),
        tag("h2", "What each task takes"),
        tag("dl", *takes),
    ]


NO_TASKS = "This page knows no tasks. Start it with them: lineclear --app module:queue serve"
