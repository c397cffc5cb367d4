"""What the guard reads of a request: where it leads, by which name, from whom, with which token.

Pure. It must never take a header's word where a browser would not vouch for it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

API = "/api/v1"
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/login", "/api/v1/login", "/-/health")
"""Answered to those who have yet to sign in, and to whoever watches whether the server lives."""


@dataclass
class Heard:
    """What this process alone can count, for ``/-/metrics``. It begins anew with each start."""

    rings: int = 0
    store_errors: int = 0


class Asked:
    """One request's head."""

    def __init__(self, scope: Scope) -> None:
        self.headers = Headers(scope=scope)
        self.method: str = scope["method"]
        self.path = path_of(scope)
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
        return self.path == "/login" or is_plain(self.path)

    @property
    def is_open(self) -> bool:
        return self.path in OPEN or (self.safe and self.path.startswith("/static/"))

    @property
    def from_here(self) -> bool:
        """From this machine, or from a socket that has no address."""
        return not self.client or is_loopback(self.client)

    @property
    def host_name(self) -> str:
        """The host without its port and an IPv6 address's brackets; empty where it is not said,
        or said twice.
        """
        if len(self.headers.getlist("host")) != 1:
            return ""
        name = self.host.partition("]")[0] if self.host[:1] == "[" else self.host.partition(":")[0]
        return name.lstrip("[").rstrip(".")

    @property
    def site(self) -> str | None:
        """Whose page sends it, by the browser's word; no script can change that word."""
        return self.headers.get("sec-fetch-site")

    @property
    def same_origin(self) -> bool | None:
        """``None`` where nothing is said, as by programs that are no browser."""
        origin = self.headers.get("origin")
        if origin is not None and _authority(origin) != self.host:
            return False
        if self.site is not None:
            return self.site == "same-origin"
        return None if origin is None else True

    @property
    def has_body(self) -> bool:
        told = self.headers.get("content-length", "0")
        return told != "0" or "transfer-encoding" in self.headers

    @property
    def body_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def body_size(self) -> int:
        """As it is announced; 0 where it is not."""
        told = self.headers.get("content-length", "0")
        return int(told) if told.isascii() and told.isdecimal() else 0

    @property
    def cookie(self) -> str:
        """Its name. Browsers send a host's cookies to every port of it: each port has its own."""
        port = self.host.rpartition("]")[2].rpartition(":")[2]
        return f"lineclear-{port}" if port.isascii() and port.isdecimal() else "lineclear"

    @cached_property
    def token(self) -> str:
        """What is given as a token; empty where nothing is."""
        scheme, _, text = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return text.strip()
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return cookie.value if cookie else ""


def path_of(scope: Scope) -> str:
    """The path below the place where this application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


def is_plain(path: str) -> bool:
    """The pages without JavaScript."""
    return path == "/plain" or path.startswith("/plain/")


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(text: str) -> bool:
    return text == "localhost" or (is_address(text) and ipaddress.ip_address(text).is_loopback)


def is_unspecified(text: str) -> bool:
    """``0.0.0.0`` and ``::``: every address of the machine."""
    return is_address(text) and ipaddress.ip_address(text).is_unspecified


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
