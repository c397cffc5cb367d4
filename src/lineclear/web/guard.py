"""Who may pass: Host, origin, token and role of every request, and the headers of every answer.

Stands before all routes, of this application alone: mounted in another, it guards nothing else.
It must never let a request from another site, or one without the right, reach a route.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lineclear.errors import StoreError
from lineclear.job import PAYLOAD_LIMIT
from lineclear.web import pages
from lineclear.web.tokens import Role, Tokens

COOKIE = "lineclear"


def problem(status: int, detail: str, *, headers: dict[str, str] | None = None) -> Response:
    from http import HTTPStatus

    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return JSONResponse(body, status, headers, media_type="application/problem+json")


ALWAYS = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/login", "/api/v1/login", "/-/health")
BODY_LIMIT = 4 * PAYLOAD_LIMIT
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Who:
    """Who asks. ``name`` stands in the journal for what they do."""

    name: str
    role: Role
    by_token: bool = False


def asks(request: Request) -> Who:
    """The dependency of every route that acts or answers with somebody's name."""
    who = request.state.who
    assert isinstance(who, Who), "the guard lets nobody else pass to this route"
    return who


class Guard:
    """Middleware around one page."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        me: str,
        tokens: Tokens,
        hosts: Iterable[str] = (),
        trust_network: bool = False,
    ) -> None:
        """``me`` names who acts where no token is asked for: who started this process."""
        self._app = app
        self._me = me
        self._tokens = tokens
        self._hosts = {*ALWAYS, *(host.lower().strip("[]") for host in hosts)}
        self._any_address = any(_is_unspecified(host) for host in self._hosts)
        self._trusting = trust_network

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Asked(scope)
        send = _with_headers(send)
        if refusal := self._foreign(asked) or _cross_site(asked):
            await refusal(scope, receive, send)
            return
        try:
            who = await self._who(asked)
        except StoreError as error:
            await problem(503, str(error))(scope, receive, send)
            return
        if refusal := _not_allowed(asked, who):
            await refusal(scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "who": who}
        await self._app(scope, _bounded(receive), send)

    def _foreign(self, asked: Asked) -> ASGIApp | None:
        """A name that leads here but is not ours: another site's, given our address."""
        if len(asked.headers.getlist("host")) == 1:
            name = _host_name(asked.host)
            if name in self._hosts or (self._any_address and _is_address(name)):
                return None
        return problem(
            403,
            f"{asked.host or 'No name'} is not a name of this server. "
            "Where it is one: lineclear serve --host NAME.",
        )

    async def _who(self, asked: Asked) -> Who | None:
        """Who asks; ``None`` where a token is asked for and none that is known was brought."""
        text = asked.token
        if text:
            token = await run_in_threadpool(self._tokens.find, text)
            if token is not None:
                return Who(token.name, token.role, by_token=True)
        if self._trusting or not await run_in_threadpool(self._tokens.all):
            return Who(self._me if asked.from_here else asked.client, "control")
        return None


class Asked:
    """What the guard reads of a request."""

    def __init__(self, scope: Scope) -> None:
        self.headers = Headers(scope=scope)
        self.method: str = scope["method"]
        self.root: str = scope.get("root_path", "")
        self.path: str = scope["path"].removeprefix(self.root) or "/"
        self.host = self.headers.get("host", "").lower()
        self.client: str = (scope.get("client") or ("",))[0]

    @property
    def safe(self) -> bool:
        return self.method in SAFE

    @property
    def for_machines(self) -> bool:
        return self.path.startswith(("/api/", "/-/"))

    @property
    def is_form(self) -> bool:
        """Posted by a page without JavaScript, which can send no header of its own."""
        return self.path == "/login" or self.path.partition("/plain")[:2] == ("", "/plain")

    @property
    def is_open(self) -> bool:
        return self.path in OPEN or (self.safe and self.path.startswith("/static/"))

    @property
    def from_here(self) -> bool:
        return not self.client or (
            _is_address(self.client) and ipaddress.ip_address(self.client).is_loopback
        )

    @property
    def token(self) -> str:
        scheme, _, text = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return text.strip()
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return cookie.value if cookie else ""

    @property
    def same_origin(self) -> bool | None:
        """By the browser's own word; ``None`` where it says nothing, as other programs do."""
        site, origin = self.headers.get("sec-fetch-site"), self.headers.get("origin")
        words = []
        if site is not None:
            words.append(site == "same-origin")
        if origin is not None:
            words.append(urlsplit(origin).netloc.lower() == self.host)
        return all(words) if words else None


def _cross_site(asked: Asked) -> ASGIApp | None:
    """Another site's request: to act, or to read what only a page of ours has a use for."""
    site = asked.headers.get("sec-fetch-site", "none")
    if asked.safe:
        if asked.for_machines and site not in ("same-origin", "none"):
            return problem(403, "Another site asked for this. Only this page's own may.")
        return None
    if asked.same_origin is False:
        return problem(403, "Another site sent this. Nothing was done.")
    if asked.is_form:
        if asked.same_origin is None:
            return problem(403, "It is not known which page sent this form. Nothing was done.")
        wanted = "application/x-www-form-urlencoded"
    else:
        if asked.headers.get("lineclear-request") != "1":
            return problem(403, "The header Lineclear-Request: 1 is missing. Nothing was done.")
        wanted = "application/json"
    kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    empty = asked.headers.get("content-length", "0") == "0"
    if kind != wanted and not (empty and not kind and "transfer-encoding" not in asked.headers):
        return problem(415, f"The body has to be {wanted}. Nothing was done.")
    length = asked.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_LIMIT:
        return problem(413, _too_large())
    return None


def _not_allowed(asked: Asked, who: Who | None) -> ASGIApp | None:
    if who is None:
        if asked.is_open:
            return None
        if asked.for_machines:
            return problem(
                401, "Signed out: a token is needed here.", headers={"www-authenticate": "Bearer"}
            )
        return pages.sign_in(asked.path)
    leaving = asked.path in ("/login", "/api/v1/login", "/api/v1/logout")
    if who.role == "view" and not asked.safe and not leaving:
        return problem(403, f"The token {who.name} may look, not act. Nothing was done.")
    return None


def _bounded(receive: Receive) -> Receive:
    """A body that says no length is not read for ever either."""
    got = 0

    async def bounded() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > BODY_LIMIT:
            raise HTTPException(413, _too_large())
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["content-security-policy"] = POLICY
            headers["x-content-type-options"] = "nosniff"
            headers["cross-origin-resource-policy"] = "same-origin"
            headers.setdefault("referrer-policy", "no-referrer")
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return with_headers


def _too_large() -> str:
    return f"The body is over {BODY_LIMIT:,} bytes. Nothing was done."


def _host_name(host: str) -> str:
    """``host`` without its port and an IPv6 address's brackets."""
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return name.rstrip(".")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_unspecified(text: str) -> bool:
    """Bound to every address, so each of them is ours. No other site can take one: only a name
    can be led here.
    """
    return _is_address(text) and ipaddress.ip_address(text).is_unspecified
