"""The task of a gateway process that answers tails on other machines with the lines of its own log.

It listens all the time and reads only while somebody asks. A lost connection is made again after a pause. Then nobody
is told anything before they have asked again and said which lines they have; the others wait in the log.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from bot.background_task import background_task
from bot.remote.messages.frames import MalformedError
from bot.shared_log.messages import (
    CHANNEL,
    FORGET_S,
    LogAnswer,
    LogRequest,
    answers_channel,
    origin_of,
    own_machine,
    short_name,
)
from bot.shared_log.requested_lines import RequestedLines
from bot.shared_log.sealed import Seal, answer_seal, fitting, request_seal
from compaction.errors import StoreError
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.clock import Clock
    from bot.shards import Shards
    from bot.store.dialects.port import Notifications

log = structlog.get_logger()

# Each reads the log for itself.
MOST_TAILS: Final = 4
RETRY_S: Final = 10.0
# How long to listen at once while nobody asks, and between answers.
_IDLE_S: Final = 10.0
_POLL_S: Final = 0.25
# With some 50 lines each, of one tail at once: 1,000 lines a second.
_MOST_ANSWERS: Final = 5
# Of what comes at once. More than the bot's own tails ask.
_MOST_HEARD: Final = 100
# How often the log says what was refused.
_SAY_EVERY_S: Final = 60.0


@dataclass(slots=True)
class _Asked:
    """A tail that is answered. `told`: the number of its next line. `waiting`: at most `MOST_LINES`, and some new ones
    when all of them are told.
    """

    request: LogRequest
    lines: RequestedLines
    seal: Seal
    run: str
    heard_at: float
    told: int = 0
    waiting: list[str] = field(default_factory=list)
    begun: bool = False
    # Whether to answer even without a line.
    greets: bool = True


class SharedLog:
    """Shares the log at `path`. `connect`: opens a connection for notifications; it raises `StoreError`."""

    def __init__(
        self,
        path: Path,
        connect: Callable[[], AbstractAsyncContextManager[Notifications]],
        *,
        token: str,
        shards: Shards,
        speech: bool,
        clock: Clock,
    ) -> None:
        self._path = path
        self._connect = connect
        self._token = token
        self._seal = request_seal(token)
        self._name = LogAnswer(origin_of(path.parent), own_machine(), short_name(shards), run="0" * 16)
        self._speech = speech
        self._clock = clock
        self._started = clock.now()
        self._tails: dict[str, _Asked] = {}
        self._stopping = threading.Event()
        # When each tail has asked last, by the database's clock, as long as that request would be taken again.
        self._asked_at: dict[str, float] = {}
        # The time by that clock, once it was asked for what came at once.
        self._now: float | None = None
        self._refused = self._refused_before = self._crowded = 0
        self._said_at = float("-inf")

    @property
    def queue(self) -> QueueFigures:
        """Return how many tails are answered, how many were too many, and how many requests were refused: they were not
        the bot's, or were repeated.
        """
        dropped = {"full": self._crowded, "refused": self._refused_before + self._refused}
        return QueueFigures("log_tails", len(self._tails), MOST_TAILS, dropped)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Share the log for the duration of the block. Owns the task `shared-log`."""
        try:
            async with background_task(self.run(), name="shared-log"):
                yield
        finally:
            # A thread may still read.
            self._stopping.set()

    async def run(self) -> None:
        """Answer until cancelled."""
        lost = False
        try:
            while True:
                try:
                    async with self._connect() as link:
                        await link.listen(CHANNEL)
                        if lost:
                            log.info("log_shared_again")
                        lost = False
                        await self._serve(link)
                except StoreError as error:
                    if not lost:
                        log.warning("log_not_shared", problem=error, retry_s=RETRY_S)
                    lost = True
                # Whether the last lines have arrived is not known.
                self._drop_all()
                await self._clock.sleep(RETRY_S)
        finally:
            self._drop_all()

    async def _serve(self, link: Notifications) -> None:
        while True:
            heard = await link.heard(_POLL_S if self._tails else _IDLE_S)
            self._now = None
            for text in heard[:_MOST_HEARD]:
                await self._hear(text, link)
            self._refused += len(heard[_MOST_HEARD:])
            self._forget()
            for asked in list(self._tails.values()):
                await self._answer(asked, link)
            self._say_refused()
            if heard:
                # Whoever fills the channel must not keep this process busy.
                await self._clock.sleep(_POLL_S)

    async def _hear(self, text: str, link: Notifications) -> None:
        try:
            request: LogRequest = self._seal.opened(text, LogRequest)
        except MalformedError:
            self._refused += 1
            return
        if not await self._is_new(request, link):
            self._refused += 1
            return
        now, asked = self._clock.monotonic(), self._tails.get(request.tail)
        if request.ends:
            self._drop(request.tail)
        elif asked is not None:
            asked.heard_at, asked.greets = now, True
        elif len(self._tails) >= MOST_TAILS:
            self._crowded += 1
            refusal = answer_seal(self._token, request.tail).sealed(replace(self._name, refused=True))
            assert refusal is not None, "it has no lines"
            await link.tell(answers_channel(request.tail), refusal)
        else:
            self._tails[request.tail] = self._begun(request, now)
            if request.since_s is None:
                log.info("log_shared", machine=request.machine, follow=request.follow)

    async def _is_new(self, request: LogRequest, link: Notifications) -> bool:
        """Return whether a request was made just now, and was not heard before: anybody may repeat what they heard."""
        if request.at <= self._asked_at.get(request.tail, float("-inf")):
            return False
        now = self._now = await link.time() if self._now is None else self._now
        self._asked_at = {tail: at for tail, at in self._asked_at.items() if now - at <= FORGET_S}
        if now - request.at > FORGET_S:
            return False
        self._asked_at[request.tail] = request.at
        return True

    def _begun(self, request: LogRequest, now: float) -> _Asked:
        lines = RequestedLines(
            self._path, request, after=self._after(request), speech=self._speech, pause=self._stopping.wait
        )
        return _Asked(request, lines, answer_seal(self._token, request.tail), secrets.token_hex(8), now)

    def _after(self, request: LogRequest) -> datetime | None:
        """Return the time after which lines are told."""
        seen = request.seen.get(self._name.origin)
        if seen is not None:
            try:
                moment = datetime.fromisoformat(seen)
            except ValueError:
                pass
            else:
                return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        if request.since_s is None:
            return None
        # What an earlier process wrote to this log, the tail may have had from that one.
        return datetime.fromtimestamp(max(self._started, self._clock.now() - request.since_s), UTC)

    def _forget(self) -> None:
        """Drop the tails that ask no more, and those that have all that they asked for."""
        now = self._clock.monotonic()
        for tail, asked in list(self._tails.items()):
            done = not asked.request.follow and asked.begun and not asked.waiting and not asked.greets
            if done or now - asked.heard_at > FORGET_S:
                self._drop(tail)

    def _drop_all(self) -> None:
        for tail in list(self._tails):
            self._drop(tail)

    def _drop(self, tail: str) -> None:
        asked = self._tails.pop(tail, None)
        if asked is not None:
            asked.lines.close()

    async def _answer(self, asked: _Asked, link: Notifications) -> None:
        """Send whoever asked their next lines, in a few messages at most; the next call goes on from there."""
        try:
            if not asked.begun:
                # Somebody is there: reading may take a moment.
                await self._tell(asked, link, self._filled(asked, ()))
                asked.waiting = await asyncio.to_thread(asked.lines.existing)
                asked.begun = asked.greets = True
            elif asked.request.follow and not asked.waiting:
                asked.waiting = await asyncio.to_thread(asked.lines.new)
        except OSError as error:
            log.warning("log_not_read", problem=error)
            self._drop(asked.request.tail)
            return
        for _ in range(_MOST_ANSWERS):
            if not asked.waiting:
                break
            count, text = fitting(asked.waiting, lambda lines: asked.seal.sealed(self._filled(asked, lines)))
            await link.tell(answers_channel(asked.request.tail), text)
            asked.told += count
            del asked.waiting[:count]
        if asked.greets and not asked.waiting:
            await self._tell(asked, link, self._filled(asked, ()))
            asked.greets = False

    def _filled(self, asked: _Asked, lines: tuple[str, ...]) -> LogAnswer:
        return replace(
            self._name,
            run=asked.run,
            first=asked.told,
            lines=lines,
            caught_up=asked.begun and not asked.waiting,
            older=asked.lines.older,
        )

    async def _tell(self, asked: _Asked, link: Notifications, answer: LogAnswer) -> None:
        text = asked.seal.sealed(answer)
        assert text is not None, "it has no lines"
        await link.tell(answers_channel(asked.request.tail), text)

    def _say_refused(self) -> None:
        now = self._clock.monotonic()
        if self._refused and now - self._said_at >= _SAY_EVERY_S:
            log.warning("log_requests_refused", count=self._refused)
            self._refused_before += self._refused
            self._said_at, self._refused = now, 0
