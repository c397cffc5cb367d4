"""Who may pass: Host, origin, token and role of every request, and the headers of every answer.

Stands before all routes of this application, and only of this: mounted in another, it guards
nothing else. It must never let through a request of another site, or one without the right.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lineclear.errors import StoreError
from lineclear.job import PAYLOAD_LIMIT
from lineclear.web import pages
from lineclear.web.asked import Asked, Heard, is_address, is_unspecified
from lineclear.web.problems import problem
from lineclear.web.tokens import Role, Tokens

LOCAL = ("localhost", "127.0.0.1", "::1")
BODY_LIMIT = 4 * PAYLOAD_LIMIT
"""Arguments at their limit fit, whichever way their text is escaped."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Who:
    """Who asks. ``name`` stands in the journal for what they do."""

    name: str
    role: Role
    signed_in: bool = False


Still = Callable[[], Awaitable[bool]]


def lasts(request: Request) -> Still:
    """The dependency of a route whose answer goes on: asked before each part of it, whether who
    asked may still have it.
    """
    still: Still = request.state.still
    return still


def asks(request: Request) -> Who:
    """The dependency of every route that acts, or answers with somebody's name."""
    who = request.state.who
    assert isinstance(who, Who), "the guard lets nobody else through to this route"
    return who


class Guard:
    """The whole page as one ASGI application: the guard before ``app``."""

    def __init__(
        self,
        app: FastAPI,
        *,
        me: str,
        tokens: Tokens,
        hosts: Iterable[str] = (),
        trust_network: bool = False,
        heard: Heard,
    ) -> None:
        """``me`` names who acts from this machine where no token is asked for."""
        self.app = app
        self._me = me
        self._tokens = tokens
        self._hosts = {*LOCAL, *(host.lower().strip("[]").rstrip(".") for host in hosts)}
        # Bound to every address, each of them is ours: another site can send its name here, but
        # cannot be asked by an address that is not its own.
        self._any_address = any(is_unspecified(host) for host in self._hosts)
        self._trusting = trust_network
        self._heard = heard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Asked(scope)
        answer = self._foreign(asked) or _cross_site(asked) or _wrong_body(asked)
        if answer is None and scope["path"] == scope.get("root_path"):
            # Without its slash the relative addresses of the page would lead beside it.
            answer = RedirectResponse(f"{scope['path'].rpartition('/')[2]}/")
        stamp = self._tokens.stamp()
        if answer is None:
            try:
                who = await self._who(asked)
                answer = _not_allowed(asked, who)
            except StoreError:
                answer = problem(503, _NO_TOKENS)
        if answer is None:
            scope["state"] = {
                **scope.get("state", {}),
                "who": who,
                "still": self._still(asked, who, stamp),
            }
            answer = self.app
        await answer(scope, _bounded(receive), self._with_headers(send, asked))

    def _foreign(self, asked: Asked) -> ASGIApp | None:
        name = asked.host_name
        if name in self._hosts or (self._any_address and is_address(name)):
            return None
        return problem(
            403,
            f"{asked.host or 'Nothing'} is no name of this server. "
            "If it should be one: lineclear serve --host NAME.",
        )

    async def _who(self, asked: Asked) -> Who | None:
        """``None`` where a token is asked for, and none that is known was brought."""
        if asked.token:
            token = await run_in_threadpool(self._tokens.find, asked.token)
            if token is not None:
                return Who(token.name, token.role, signed_in=True)
        if self._trusting or not await run_in_threadpool(self._tokens.all):
            return Who(self._me if asked.from_here else asked.client, "control")
        return None

    def _still(self, asked: Asked, who: Who | None, stamp: object) -> Still:
        async def still() -> bool:
            nonlocal stamp
            before, stamp = stamp, self._tokens.stamp()
            try:
                return stamp == before or await self._who(asked) == who
            except StoreError:
                return False

        return still

    def _with_headers(self, send: Send, asked: Asked) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                # Under no-referrer a browser does not name the origin of a form either.
                headers["referrer-policy"] = "same-origin" if asked.is_form else "no-referrer"
                headers.setdefault("cache-control", "no-store")
                self._heard.store_errors += message["status"] == HTTPStatus.SERVICE_UNAVAILABLE
            await send(message)

        return with_headers


def _cross_site(asked: Asked) -> ASGIApp | None:
    """Another site's page may link here, but neither act nor read what machines read."""
    if asked.safe:
        if asked.for_machines and asked.site not in (None, "same-origin", "none"):
            return problem(403, "Another site asks for this. Only this one's own pages may.")
        return None
    if asked.same_origin is False:
        return problem(403, "Another site sent this. Nothing was done.")
    if asked.is_form and asked.same_origin is None:
        return problem(403, "It is not known which page sent this form. Nothing was done.")
    if not asked.is_form and asked.headers.get("lineclear-request") != "1":
        return problem(403, "The header Lineclear-Request: 1 is missing. Nothing was done.")
    return None


def _wrong_body(asked: Asked) -> ASGIApp | None:
    if asked.safe or not (asked.has_body or asked.body_type):
        return None
    wanted = "application/x-www-form-urlencoded" if asked.is_form else "application/json"
    if asked.body_type != wanted:
        return problem(415, f"The body has to be {wanted}. Nothing was done.")
    if asked.body_size > BODY_LIMIT:
        return problem(413, _TOO_LARGE)
    return None


def _not_allowed(asked: Asked, who: Who | None) -> ASGIApp | None:
    leaving = asked.path in ("/login", "/api/v1/login", "/api/v1/logout")
    if who is None and not asked.is_open:
        if asked.for_machines:
            headers = {"www-authenticate": "Bearer"}
            return problem(401, "Signed out: this needs a token.", headers=headers)
        return pages.sign_in(asked.path)
    if who is not None and who.role == "view" and not (asked.safe or leaving):
        return problem(403, f"The token {who.name} may look, not act. Nothing was done.")
    return None


def _bounded(receive: Receive) -> Receive:
    """A body that does not announce its size ends too."""
    got = 0

    async def bounded() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > BODY_LIMIT:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return bounded


_NO_TOKENS = "The tokens cannot be read, so nobody is let in. Why: lineclear token list."
_TOO_LARGE = f"The body is over {BODY_LIMIT:,} bytes. Nothing was done."
