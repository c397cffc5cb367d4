"""The verb ``stats``: what was done, how fast, and how right the page's ranges were."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lineclear import view, words
from lineclear.cli.ground import Json, LaneName, ground, say
from lineclear.figures import iso
from lineclear.when import ago_ms


def stats(
    ctx: typer.Context,
    *,
    since: Annotated[str, typer.Option("--since", help="Such as 24h or 30d.")] = "7d",
    lane: LaneName = None,
    as_json: Json = False,
) -> None:
    """Tell what was done, how long it took and waited, and how right the ranges were."""
    queue = ground(ctx).queue
    if lane is not None:
        queue.lane(lane)
    seen = queue.stats(ago_ms(since, "--since", now_ms=queue.now_ms()), lane=lane)
    if as_json:
        say(json.dumps({"version": 1, "now": iso(seen.now_ms), **view.stats_fields(seen)}))
        return
    oldest = "" if seen.oldest is None else queue.brief(seen.oldest[0]).name
    for line in words.stats_lines(seen, oldest=oldest):
        say(line)
