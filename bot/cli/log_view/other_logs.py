"""Asks the other gateway processes of the bot for their logs, in a thread of its own.

So `roomtone tail` goes on showing its own log whatever the database and the network do. Only its beginning waits for
the others, for as long as they tell what they have, so that all lines are in the order of their times.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bot.remote.messages.frames import MalformedError
from bot.shared_log.asked_logs import AskedLogs
from bot.shared_log.messages import (
    CHANNEL,
    MOST_SESSION_CHARS,
    RENEW_S,
    LogAnswer,
    LogRequest,
    answers_channel,
    own_machine,
)
from bot.shared_log.sealed import answer_seal, request_seal
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from bot.logs.reader import Event
    from bot.store.dialects.port import Notifications

# How long to wait at the beginning for the next process, for the next lines of one that reads its log, and for all.
ANSWER_S: Final = 5.0
SLOW_S: Final = 15.0
MOST_WAIT_S: Final = 60.0
# After which somebody at a terminal is told what is waited for.
TELL_WAIT_S: Final = 1.0
# When to try again, and when to look again whether there are other processes.
RETRY_S: Final = 10.0
LOOK_S: Final = 30.0
_POLL_S: Final = 0.25
_END_S: Final = 3.0
# Lines that the terminal has not taken yet. What is more is dropped and counted.
MOST_WAITING: Final = 50_000
POOLED: Final = (
    "The logs of the bot's other processes are not shown: what is sent through {place} does not come back. Name the "
    "database itself in ROOMTONE_DATABASE_URL, or a pooler in session mode."
)
AWAY: Final = "The logs of the bot's other processes, if it has some, are not shown: {why}"


class OtherLogs:
    """The lines of other processes. `own`: the origin of the log that is read here. `connect`: opens a connection for
    notifications; it raises `StoreError`. The rest is what is asked, as in `LogRequest`.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Notifications]],
        token: str,
        own: str,
        *,
        session: str | None = None,
        patterns: tuple[str, ...] = (),
        last: int | None = None,
        follow: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._token = token
        self._seal = request_seal(token)
        self._begin_tail()
        self._request = LogRequest(
            self._tail,
            own_machine(),
            0.0,
            None if session is None else session[:MOST_SESSION_CHARS],
            patterns,
            last,
            follow,
        )
        self._asked = AskedLogs(own)
        self._monotonic = monotonic
        self._began_at: float | None = None
        self._lock = threading.Lock()
        self._lines: deque[tuple[str, Event]] = deque()
        self._sentences: list[str] = []
        self._dropped = 0
        self._complained = self._had_answers = False
        self._ready, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="other-logs", daemon=True)

    def first(self, on_wait: Callable[[], None] = lambda: None) -> list[tuple[str, Event]]:
        """Ask, wait for what the logs have already, and return it. `on_wait`: called once if that takes long."""
        self._thread.start()
        if not self._ready.wait(TELL_WAIT_S):
            on_wait()
            self._ready.wait(MOST_WAIT_S + ANSWER_S)
        return self.more()

    def more(self) -> list[tuple[str, Event]]:
        """Return the lines that have come since."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
        return lines

    def take_sentences(self) -> list[str]:
        """Return what people should know of it, since the last time."""
        with self._lock:
            sentences, self._sentences = self._sentences, []
            if self._dropped:
                sentences.append(f"Lines of other processes that came too fast to be shown: {self._dropped:,}.")
                self._dropped = 0
        return sentences

    def close(self) -> None:
        """Ask for no more, and wait a moment for the end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._ask_until_stopped())
        finally:
            self._ready.set()

    def _begin_tail(self) -> None:
        """Ask as another tail: each process goes on after the last line that has come from it, whatever it told the
        connection before.
        """
        self._tail = secrets.token_hex(16)
        self._answers = answer_seal(self._token, self._tail)

    async def _ask_until_stopped(self) -> None:
        while not self._stopping.is_set():
            pause_s = RETRY_S
            try:
                async with self._connect() as link:
                    if await self._ask(link):
                        return
                    pause_s = LOOK_S
            except StoreError as error:
                self._complain(str(error))
            self._begin_tail()
            self._ready.set()
            if not self._request.follow:
                return
            await self._pause(pause_s)

    async def _ask(self, link: Notifications) -> bool:
        """Return True when there is nothing more to ask, and False if there are no other processes now."""
        running = await link.serving()
        if not any(each.is_divided for each in running):
            return False
        await link.listen(answers_channel(self._tail))
        if not await self._comes_back(link):
            self._say(POOLED.format(place="ROOMTONE_DATABASE_URL"))
            return True
        if self._complained:
            self._complained = False
            self._say("The logs of the bot's other processes are shown again.")
        self._asked.was_away(self._monotonic())
        total = max(each.total for each in running)
        ours = [each for each in running if each.total == total]
        try:
            return await self._listen(link, lambda: self._asked.has_all_of(ours), total)
        finally:
            with suppress(StoreError):
                await self._tell(link, ends=True)

    async def _comes_back(self, link: Notifications) -> bool:
        """Return whether this connection hears what is told on its channel."""
        echo = f"echo {secrets.token_hex(8)}"
        await link.tell(answers_channel(self._tail), echo)
        until = self._monotonic() + ANSWER_S
        while self._monotonic() < until:
            if echo in await link.heard(_POLL_S):
                return True
        return False

    async def _listen(self, link: Notifications, is_complete: Callable[[], bool], total: int) -> bool:
        began = heard_at = self._monotonic()
        asked_at = float("-inf")
        while not self._stopping.is_set():
            now = self._monotonic()
            # Also without `follow`: who was just connecting has not heard it, and who reads for long would forget it.
            if now - asked_at >= RENEW_S:
                await self._tell(link)
                asked_at = now
            for text in await link.heard(_POLL_S):
                if self._hear(text):
                    heard_at = self._monotonic()
            now = self._monotonic()
            if not self._had_answers:
                patience_s = ANSWER_S if self._asked.absent(total) else SLOW_S
                if is_complete() or now - heard_at >= patience_s or now - began >= MOST_WAIT_S:
                    self._had_answers = True
                    self._say_absent(total, complete=is_complete())
                    self._ready.set()
            elif self._request.follow:
                self._asked.look_for_silence(now)
            self._say(*self._asked.take_sentences())
            if self._had_answers and not self._request.follow:
                break
        return True

    def _say_absent(self, total: int, *, complete: bool) -> None:
        absent = self._asked.absent(total)
        if absent:
            self._say(f"Not shown: the log of shards {absent}. No process has answered for them.")
        elif not complete:
            self._say("The other processes did not tell all of their logs in time, so lines may be missing.")

    async def _tell(self, link: Notifications, *, ends: bool = False) -> None:
        now = self._monotonic()
        # Until the logs are read, who answers late tells all of its own.
        since = None if self._began_at is None or not self._had_answers else now - self._began_at
        asked = self._request
        request = LogRequest(
            self._tail,
            asked.machine,
            await link.time(),
            asked.session,
            asked.patterns,
            asked.last,
            asked.follow,
            since_s=since,
            seen=self._asked.seen(),
            ends=ends,
        )
        text = self._seal.sealed(request)
        assert text is not None, "its parts are short"
        await link.tell(CHANNEL, text)
        if self._began_at is None:
            self._began_at = now

    def _hear(self, text: str) -> bool:
        """Take an answer. Return whether it is one."""
        try:
            answer: LogAnswer = self._answers.opened(text, LogAnswer)
        except MalformedError:
            return False
        lines = self._asked.hear(answer, self._monotonic())
        with self._lock:
            self._lines.extend(lines)
            # The oldest go first, as in a terminal.
            while len(self._lines) > MOST_WAITING:
                self._lines.popleft()
                self._dropped += 1
        return True

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._say(AWAY.format(why=why))
        self._complained = True

    def _say(self, *sentences: str) -> None:
        with self._lock:
            self._sentences.extend(sentences)

    async def _pause(self, seconds: float) -> None:
        await asyncio.to_thread(self._stopping.wait, seconds)
