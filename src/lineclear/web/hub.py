"""Looks at the queue for all who watch it, when it changes: one look and one text for everybody.

``stream.py`` joins and leaves. The hub exists only while somebody is there: with the first it
listens to the bell, with the last it lets go. It holds no transaction across a wait, asks the store
one thing at a time, and when the store is in trouble it sends everybody away: whoever comes back
hears the reason.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field

from lineclear.bell import Listener
from lineclear.errors import StoreBusy, StoreError
from lineclear.queue import Queue
from lineclear.web import asked, state
from lineclear.web.changes import (
    SENTENCES,
    Event,
    Public,
    between,
    copied,
    encode,
    encode_all,
    order,
    row_change,
    rows,
    unmarked,
)
from lineclear.web.state import Looked
from lineclear.web.subscriber import Subscriber

SHORTEST_S, LONGEST_S = 0.05, 0.5
"""At most 20 looks a second, and no longer between two."""
PROGRESS_S, SLOW_S = 1.0, 5.0
MOST_LINES = 500
"""Lines of the journal told one by one; more at once are a snapshot."""
KEPT_LINES = 2_000
"""Lines of the journal after which somebody who was away gets a snapshot."""
OPENING_S = 5.0
FRESH_S = 1.0
"""How long a look serves those who come after it."""
STREAMS_OF_A_BROWSER = 4

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Channel:
    """What all who watch the same lane (or all lanes) at the same pace know."""

    hub: Hub
    lane: str | None
    pace_s: float
    state: Public = field(default_factory=dict)
    seen_at: float = float("-inf")
    moved_at: float = float("-inf")
    """When progress was told last."""
    dirty: bool = False
    """Progress may have been made since."""
    subscribers: list[Subscriber] = field(default_factory=list)

    def take(self, looked: Looked, *, moving: bool) -> None:
        """Know what was seen, and tell it."""
        now = _now()
        moving = moving or now >= self.moved_at + self.pace_s
        if moving:
            self.moved_at = now
        self.dirty, self.seen_at = not moving, now
        old, self.state = self.state, copied(looked.states[self.lane])
        if looked.named is None:
            for each in self.subscribers:
                each.put(self.snapshot(each.me))
        elif old:
            named = {
                job: row
                for job, row in looked.named.items()
                if row is None or self.lane in (None, row["lane"])
            }
            self.tell(between(old, self.state, named=named, moving=moving))

    def tell(self, events: list[Event]) -> None:
        cursor = self.hub.cursor
        texts: dict[str | None, bytes] = {}
        for each in self.subscribers if events else ():
            if each.me not in texts:
                told = [(name, each.words(data)) for name, data in events]
                texts[each.me] = encode_all(told, cursor)
            each.put(texts[each.me])

    def snapshot(self, me: str | None) -> bytes:
        cursor = self.hub.cursor
        whole = {**self.state, "cursor": cursor, "now_ms": self.hub.queue.now_ms()}
        return encode("snapshot", self.words(whole, me), cursor)

    def words(self, data: Public, me: str | None) -> Public:
        return self.hub.words(data, me)


class Hub:
    """All streams of one queue in one process."""

    tick_s = 10.0

    def __init__(self, queue: Queue, *, boot: str, heard: asked.Heard) -> None:
        self.queue, self.boot, self.heard, self.seq = queue, boot, heard, 0
        self._channels: dict[tuple[str | None, bool], Channel] = {}
        self._browsers: dict[str, list[Subscriber]] = {}
        self._listener: Listener | None = None
        self._run: asyncio.Task[None] | None = None
        self._rung = asyncio.Event()
        self._lock = asyncio.Lock()
        self._look_from, self._joining = float("-inf"), 0

    @property
    def cursor(self) -> str:
        return f"{self.boot}-{self.seq}"

    def words(self, data: Public, me: str | None) -> Public:
        """Without marks for ``me``, who did not ask for them."""
        if me is None:
            return data
        plain: Public = unmarked(data, now_ms=self.queue.now_ms(), me=me)
        return plain

    # Coming and going

    async def join(
        self, *, lane: str | None, slow: bool, browser: str, me: str | None, after: str
    ) -> Subscriber:
        """A stream with everything up to now in it. Raises ``StoreError``, ``UnknownLane``."""
        self._joining += 1
        try:
            async with self._lock:
                await self._listen()
                channel = self._channels.get((lane, slow)) or Channel(
                    self, lane, SLOW_S if slow else PROGRESS_S
                )
                if _now() - channel.seen_at > FRESH_S or self._rung.is_set():
                    await self._look([channel], moving=True)
                missed = await self._missed(after, channel)
                if self._listener is None:
                    raise StoreError("The database could not be read just now.")
                each = Subscriber(channel, browser=browser, me=me)
                if missed is None:
                    each.put(channel.snapshot(me))
                else:
                    told = [(name, each.words(data)) for name, data in missed]
                    each.put(encode_all(told, self.cursor))
                self._channels[lane, slow] = channel
                channel.subscribers.append(each)
        finally:
            self._joining -= 1
            self._let_go_if_alone()
        if browser:
            mine = self._browsers.setdefault(browser, [])
            mine.append(each)
            for oldest in mine[:-STREAMS_OF_A_BROWSER]:
                oldest.end(encode("replaced", {}))
                self.leave(oldest)
        return each

    def leave(self, gone: Subscriber) -> None:
        """Twice is harmless."""
        for channel in self._all():
            channel.subscribers = [each for each in channel.subscribers if each is not gone]
        if mine := self._browsers.get(gone.browser):
            mine[:] = [each for each in mine if each is not gone]
            if not mine:
                del self._browsers[gone.browser]
        self._channels = {key: each for key, each in self._channels.items() if each.subscribers}
        self._let_go_if_alone()

    async def _listen(self) -> None:
        if self._listener is not None:
            return
        store = await asyncio.to_thread(lambda: self.queue.store)
        try:
            self._listener = store.bell.listen("watch")
        except OSError as error:
            raise StoreError(f"{self.queue.files.bell} cannot be used: {error}.") from error
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._heard)
        self._rung.clear()
        self._run = asyncio.create_task(self._watch())
        self._run.add_done_callback(self._ended)
        try:  # The first look has to be a writer's, see bell/.
            async with asyncio.timeout(OPENING_S):
                await asyncio.to_thread(self._first)
        except TimeoutError:
            raise StoreBusy(f"{self.queue.database} is locked by another process.") from None
        self.seq = await asyncio.to_thread(self.queue.last_seq)

    def _first(self) -> None:
        with self.queue.store.write(durable=False):
            pass

    def _let_go_if_alone(self) -> None:
        if not self._channels and not self._joining:
            self._let_go()

    def _let_go(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        if self._run is not None:
            self._run.cancel()
            self._run = None

    def _ended(self, run: asyncio.Task[None]) -> None:
        if run.cancelled() or (error := run.exception()) is None:
            return
        log.warning("The streams were closed: %s", error, exc_info=error)
        self._let_go()
        for channel in list(self._channels.values()):
            for each in list(channel.subscribers):
                each.end()
                self.leave(each)

    # Watching

    def _heard(self) -> None:
        if self._listener is None:
            return
        if self._listener.drain():
            self.heard.rings += 1
            self._rung.set()
        if self._listener.again_s is not None:
            asyncio.get_running_loop().call_later(self._listener.again_s, self._again)

    def _again(self) -> None:
        self._heard()
        self._rung.set()

    async def _watch(self) -> None:
        tick_at = _now() + self.tick_s
        while True:
            moves_at = [each.moved_at + each.pace_s for each in self._all() if each.dirty]
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min([tick_at, *moves_at]) - _now())):
                    await self._rung.wait()
            if self._rung.is_set():
                await asyncio.sleep(max(0.0, self._look_from - _now()))
                self._rung.clear()
                async with self._lock:
                    begun = _now()
                    if await asyncio.to_thread(self.queue.last_seq) != self.seq:
                        await self._look(self._all(), moving=False)
                    else:
                        for each in self._all():
                            each.dirty = True
                    # Looking takes half of the time at most, and nobody waits long for the next.
                    took = min(_now() - begun, LONGEST_S)
                    self._look_from = max(begun + SHORTEST_S, _now() + took)
            if _now() >= tick_at:
                tick_at = _now() + self.tick_s
                async with self._lock:
                    await self._look(
                        [each for each in self._all() if ages(each.state)], moving=True
                    )
                tick = encode("tick", {"now_ms": self.queue.now_ms()})
                for each in self._all():
                    for one in each.subscribers:
                        one.put(tick)
            elif due := [
                each for each in self._all() if each.dirty and _now() >= each.moved_at + each.pace_s
            ]:
                async with self._lock:
                    await self._look_at_runs(due)

    def _all(self) -> list[Channel]:
        return list(self._channels.values())

    async def _look(self, channels: list[Channel], *, moving: bool) -> None:
        """Look at everything, and say what is new. ``moving``: progress too, at any time."""
        if not channels:
            return
        before, lanes = self.seq, {each.lane for each in [*self._all(), *channels]}
        looked = await asyncio.to_thread(state.look, self.queue, lanes, before, MOST_LINES)
        self.seq = looked.seq
        for each in {*channels, *self._all()} if looked.seq != before else channels:
            each.take(looked, moving=moving)
            if looked.seq != before:
                for one in each.subscribers:
                    one.changed.set()

    async def _look_at_runs(self, channels: list[Channel]) -> None:
        """Look only at what runs."""
        ids = {row["id"] for each in channels for row in each.state["running"]}
        seen = await asyncio.to_thread(state.running, self.queue, ids)
        for each in channels:
            each.moved_at, each.dirty = _now(), False
            events = []
            for at, old in enumerate(each.state["running"]):
                new = seen.get(old["id"], old)
                if (event := row_change(old, new)) is None:
                    continue
                if new["look"] != old["look"]:
                    self._rung.set()  # the sentences above speak of it
                each.state["running"][at] = new
                events.append(event)
            each.tell(events)

    async def _missed(self, after: str, channel: Channel) -> list[Event] | None:
        """What somebody who was here at cursor ``after`` has to hear; ``None``: a snapshot."""
        boot, _, number = after.rpartition("-")
        if boot != self.boot or not number.isdecimal() or int(number) > self.seq:
            return None
        window = rows(channel.state)
        named = await asyncio.to_thread(
            state.named_since,
            self.queue,
            int(number),
            KEPT_LINES,
            known=window,
            lane=channel.lane,
        )
        if named is None:
            return None
        told: list[Event] = [
            ("gone", {"id": job}) if row is None else ("job", row)
            for job, row in named.items()
            if job not in window
        ]
        told += [("job", row) for row in window.values()]
        told.append(("order", {"lanes": order(channel.state)}))
        told.append(("queue", {key: channel.state[key] for key in SENTENCES}))
        return told


def ages(seen: Public) -> bool:
    """Whether something there changes by the clock alone, or a worker may die unseen."""
    timed = any(
        lane["next_start_ms"] or any(pause["until_ms"] for pause in lane["pauses"])
        for lane in seen["lanes"]
    )
    return bool(seen["running"] or seen["waiting"] or timed)


def _now() -> float:
    return asyncio.get_running_loop().time()
