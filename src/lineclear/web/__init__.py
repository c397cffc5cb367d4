"""The page and the HTTP API of a queue, as one ASGI application."""
