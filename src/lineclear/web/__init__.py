"""The page and the HTTP API of a queue, as one ASGI application: ``app.page``."""

DEFAULT_BIND = "127.0.0.1:8765"
