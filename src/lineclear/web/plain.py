"""The page without JavaScript: what is so now, and a form for every act, in plain HTML.

``app.py`` mounts ``router(queue)``; the guard has asked who it is, and whether a form comes from
here, before anything below runs. It must never act on a GET, and writes no HTML itself: sheets.py
does.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from lineclear import errors, words
from lineclear.figures import count, printable
from lineclear.job import Job, State
from lineclear.queue import Queue
from lineclear.view import Gatherer, picture
from lineclear.web import sheets
from lineclear.web.guard import Who, asks
from lineclear.web.markup import Child, tag
from lineclear.worker.logreader import LogLine, LogReader

NO_PAGE = "There is no such page."
WAITING, ENDED, EVENTS, LOG_LINES, HISTORY = 50, 10, 50, 40, 50

Asking = Annotated[Who, Depends(asks)]


async def typed(request: Request) -> dict[str, str]:
    """The fields of a form; the last value counts."""
    try:
        text = (await request.body()).decode()
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise errors.BadInput("form", "This form cannot be read.") from error
    return {name: values[-1] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(typed)]


def router(queue: Queue) -> APIRouter:
    """Every page below ``/plain`` of one queue."""
    pages = APIRouter(prefix="/plain", include_in_schema=False, route_class=_Route)
    looks, acts = Looks(queue), Acts(queue)
    for path, page in (
        ("", looks.now),
        ("/history", looks.history),
        ("/add", looks.adding),
        ("/jobs/{job_id}", looks.job),
        ("/jobs/{job_id}/{act}", looks.ask),
        ("/lanes/{name}/{act}", looks.ask_lane),
    ):
        pages.add_api_route(path, page, methods=["GET", "HEAD"])
    for path, act in (
        ("/add", acts.add),
        ("/jobs/{job_id}/{act}", acts.on_job),
        ("/lanes/{name}/{act}", acts.on_lane),
        ("/{act}", acts.on_all),
    ):
        pages.add_api_route(path, act, methods=["POST"])
    return pages


class _Route(APIRoute):
    """What is refused is a page too, with the sentence that says why."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except errors.LineClearError as error:
                return answer(request, str(error), status=status_of(error))
            except RequestValidationError:
                return answer(request, NO_PAGE, status=404)

        return handled


@dataclass(frozen=True)
class Looks:
    """The pages that show. They act on nothing."""

    queue: Queue

    def now(self, request: Request, who: Asking) -> Response:
        seen = picture(self.queue, waiting=WAITING, ended=ENDED, me=who.name)
        main = sheets.now(seen, up="", acts=who.role == "control", me=who.name)
        return answer(request, seen.headline, *main)

    def history(self, request: Request, who: Asking, before: int | None = None) -> Response:
        jobs = self.queue.jobs(before=before, limit=HISTORY)
        get, acts = Gatherer(self.queue, me=who.name), who.role == "control"
        rows = [sheets.line(get.row(job), up="../", acts=acts) for job in jobs]
        more = f"../plain/history?before={jobs[-1].id}" if len(jobs) == HISTORY else None
        older = tag("a", "Older", href=more) if more else None
        return answer(request, "History", tag("ol", *rows), older)

    def adding(self, request: Request) -> Response:
        once = secrets.token_urlsafe(12)
        main = sheets.adding(self.queue.tasks, up="../", once=once, typed={})
        return answer(request, "Add a job", *main)

    def job(self, request: Request, who: Asking, job_id: int) -> Response:
        found = known(self.queue, job_id)
        log: list[LogLine] = []
        if found.attempt:
            path = self.queue.log_path(job_id, found.attempt)
            with LogReader(path, last=LOG_LINES) as reader:
                log = reader.read_new()
        get = Gatherer(self.queue, me=who.name)
        main = sheets.whole(
            get.row(found),
            log,
            self.queue.events(job_id, limit=EVENTS),
            up="../../",
            acts=who.role == "control",
            me=who.name,
            now_ms=get.now_ms,
        )
        return answer(request, found.name, *main)

    def ask(self, request: Request, job_id: int, act: str) -> Response:
        """The first of two steps: what stopping this job keeps or loses."""
        if act not in ("stop", "kill"):
            raise errors.NoSuchJob(NO_PAGE)
        found = known(self.queue, job_id)
        keeps = words.at_stake(found, kept=found.kept, now_ms=self.queue.now_ms())
        verb, how = {
            "stop": ("Stop", "It ends at its next safe point."),
            "kill": ("Stop now", "Its processes are ended at once."),
        }[act]
        lines = [f"{how} {keeps}"] if found.state is State.RUNNING else ["It is not running now."]
        main = sheets.confirm(
            act, verb, lines, back=f"../{job_id}", fields={"version": found.version}
        )
        return answer(request, f"{verb} {found.name}?", main)

    def ask_lane(self, request: Request, name: str, act: str) -> Response:
        lane = self.queue.lane(name).get()
        fields: dict[str, int] = {}
        if act == "stop-now":
            verb = "Stop now"
            lines = [
                "The lane is paused, and the processes of what runs are ended at once.",
                f"{count(lane.running, 'job')} would go back in line, keeping finished steps.",
            ]
        elif act == "clear":
            verb, fields = f"Remove {count(lane.waiting, 'job')}", {"expect": lane.waiting}
            few = [printable(job.name) for job in self.queue.waiting(name, limit=5)]
            more = f" and {lane.waiting - len(few):,} more" if lane.waiting > len(few) else ""
            lines = [f"{', '.join(few)}{more}" if few else "Nothing waits here."]
        else:
            raise errors.NoSuchJob(NO_PAGE)
        main = sheets.confirm(act, verb, lines, back="../../../plain", fields=fields)
        return answer(request, f"Lane {name}: {verb.lower()}?", main)


@dataclass(frozen=True)
class Acts:
    """What the forms do. Each leads back to a page that shows what is so then."""

    queue: Queue

    def add(self, request: Request, who: Asking, form: Form) -> Response:
        """Once for each form that was handed out, however often it is sent."""
        once = form.get("once") or None
        given = json.dumps({**form, "once": ""}, sort_keys=True)
        try:
            args = arguments(form.get("args", ""))
            first, held = "first" in form, "paused" in form
            with self.queue.once(once, f"plain/add {given}") as done:
                self.queue.add(form.get("task", ""), args, first=first, held=held, by=who.name)
        except errors.Refused as error:
            main = sheets.adding(
                self.queue.tasks, up="../", once=secrets.token_urlsafe(12), typed=form
            )
            return answer(request, str(error), *main, status=status_of(error))
        return back(request, f"plain/jobs/{done.jobs[0]}")

    def on_job(self, request: Request, who: Asking, job_id: int, act: str, form: Form) -> Response:
        known(self.queue, job_id)
        asked: dict[str, Any] = {"by": who.name, "if_version": whole_number(form, "version")}
        simple: dict[str, Callable[..., object]] = {
            "hold": self.queue.hold,
            "release": self.queue.release,
            "stop": self.queue.cancel,
            "kill": self.queue.kill,
            "force": self.queue.force,
            "remove": self.queue.remove,
        }
        match act:
            case "move":
                self.queue.move(job_id, one_of(form, "to", sheets.MOVES), **asked)
            case "retry":
                first, over = "first" in form, "start_over" in form
                self.queue.retry(job_id, first=first, start_over=over, **asked)
            case _ if act in simple:
                simple[act](job_id, **asked)
            case _:
                raise errors.NoSuchJob(NO_PAGE)
        return back(request, "plain" if act in ("move", "remove") else f"plain/jobs/{job_id}")

    def on_lane(self, request: Request, who: Asking, name: str, act: str, form: Form) -> Response:
        lane = self.queue.lane(name)
        match act:
            case "pause":
                lane.pause(form.get("why", ""), by=who.name)
            case "resume":
                lane.resume(by=who.name)
            case "set":
                delay_s, slots = (amount(form, name) for name in ("delay_s", "slots"))
                lane.set(delay_ms=round(delay_s * 1000), slots=round(slots), by=who.name)
            case "stop-now":
                lane.stop_now(by=who.name)
            case "clear":
                lane.remove_waiting(expect=whole_number(form, "expect"), by=who.name)
            case _:
                raise errors.NoSuchJob(NO_PAGE)
        return back(request)

    def on_all(self, request: Request, who: Asking, act: str) -> Response:
        match act:
            case "pause":
                self.queue.pause_all(by=who.name)
            case "resume":
                self.queue.resume_all(by=who.name)
            case "undo":
                self.queue.undo(by=who.name)
            case _:
                raise errors.NoSuchJob(NO_PAGE)
        return back(request)


def answer(request: Request, title: str, *main: Child, status: int = 200) -> Response:
    path = path_of(request)
    here = path.lstrip("/") if request.method != "POST" and status == 200 else ""
    html = sheets.page(title, *main, up=up(path), here=here)
    # Without its own address sent along, a browser calls the origin of a form "null".
    return HTMLResponse(html, status, headers={"Referrer-Policy": "same-origin"})


def back(request: Request, to: str = "plain") -> Response:
    return RedirectResponse(up(path_of(request)) + to, 303)


def path_of(request: Request) -> str:
    """The path below where the queue is mounted."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", ""))


def known(queue: Queue, job_id: int) -> Job:
    if not 0 < job_id < 2**62:
        raise errors.NoSuchJob(f"There is no job {job_id}.")
    return queue.get(job_id)


def up(path: str) -> str:
    """From a page at ``path`` to where the queue is mounted."""
    return "../" * (path.count("/") - 1)


def status_of(error: Exception) -> int:
    match error:
        case errors.NoSuchJob() | errors.UnknownLane() | RequestValidationError():
            return 404
        case errors.WrongState():
            return 409
        case errors.TooLarge():
            return 413
        case errors.StoreError():
            return 503
        case _:
            return 422


def arguments(text: str) -> dict[str, Any]:
    try:
        args = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise errors.BadInput("args", f"The arguments are no JSON: {error}.") from error
    if not isinstance(args, dict):
        raise errors.BadInput("args", 'The arguments are a JSON object, such as {"book": 1}.')
    return args


def amount(form: dict[str, str], name: str) -> float:
    try:
        value = float(form.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value < 10**9:
        raise errors.BadInput(name, f"{name} is a number from 0, not {form.get(name)!r:.50}.")
    return value


def whole_number(form: dict[str, str], name: str) -> int | None:
    text = form.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def one_of(form: dict[str, str], name: str, known: tuple[str, ...]) -> Any:
    if form.get(name) not in known:
        raise errors.BadInput(name, f"{name} is one of {', '.join(known)}.")
    return form[name]
