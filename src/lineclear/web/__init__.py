"""The page and the HTTP API of a queue, as one ASGI application."""

from lineclear.web.app import create_app

__all__ = ["create_app"]
