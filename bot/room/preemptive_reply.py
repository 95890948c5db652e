"""A head start for an answer: it is thought while the end of the question is not sure yet.

In a pause that sounds like the end, with a text that reads finished, the model is asked for what would be answered if
this is all. Nothing of it is spoken, recorded or done (its tools wait) before the question comes; then its words are
there already. Whoever goes on, or says something else, has it thrown away; what it cost is counted all the same.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bot.brain.context import ModelContext
    from bot.brain.reply import Question
    from bot.brain.responder import Responder
    from bot.clock import Clock

log = structlog.get_logger()

_FINISHED = re.compile(r"""[^.\s][.?!]["”’')\]]*$""")


class _Ahead:
    """One answer that is thought ahead."""

    def __init__(self, question: Question, begun_at: float) -> None:
        self.question = question
        self.begun_at = begun_at
        self.context: ModelContext | None = None
        # Set when the context stands, or could not be built.
        self.built = asyncio.Event()
        # Pieces of the answer, what went wrong, and None at its end.
        self.pieces: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None

    def fits(self, question: Question) -> bool:
        """Return whether it was thought for this question: the same words of the same people, as the same turn."""
        own, turn = self.question, question.turn
        return (
            own.utterance_id == question.utterance_id
            and (own.turn.seq, own.turn.kind, own.turn.parts) == (turn.seq, turn.kind, turn.parts)
            and (own.asker_id, own.reason, own.may_skip) == (question.asker_id, question.reason, question.may_skip)
        )


class PreemptiveReply:
    """Stands before a room's prompts and its responder; to the replier it is both. One answer at a time.

    *Ownership*: `run` owns what is thought ahead; before it runs nothing is.
    """

    def __init__(
        self, *, build_context: Callable[[Question], Awaitable[ModelContext]], responder: Responder, clock: Clock
    ) -> None:
        self._build_context = build_context
        self._responder = responder
        self._clock = clock
        self._tasks: asyncio.TaskGroup | None = None
        self._ahead: _Ahead | None = None
        # The one whose question has come.
        self._taken: _Ahead | None = None

    async def run(self) -> None:
        """Own what is thought ahead, for ever."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def begin(self, question: Question) -> None:
        """Think ahead for what somebody seems to ask. `question.turn` is recorded nowhere yet."""
        if self._tasks is None or (self._ahead is not None and self._ahead.fits(question)):
            return
        self.drop("superseded")
        ahead = self._ahead = _Ahead(question, self._clock.monotonic())
        ahead.task = self._tasks.create_task(self._think(ahead), name="head-start")

    def drop(self, reason: str, utterance_id: str | None = None) -> None:
        """Throw away what is thought ahead: all of it, or only for that utterance."""
        ahead = self._ahead
        if ahead is None or utterance_id not in (None, ahead.question.utterance_id):
            return
        self._ahead = None
        _end(ahead)
        log.info("head_start_dropped", reason=reason, wasted_ms=self._since_ms(ahead))

    async def context(self, question: Question) -> ModelContext:
        """Return what is sent to answer `question`, built ahead or now. Raises `CompactionError`."""
        if self._taken is not None:
            _end(self._taken)
            self._taken = None
        ahead = self._ahead
        if ahead is None or not ahead.fits(question):
            self.drop("another_question")
            return await self._build_context(question)
        self._ahead, self._taken = None, ahead
        await ahead.built.wait()
        if ahead.context is None:
            # Whatever kept it from being built is met, and told, in the usual way.
            return await self._build_context(question)
        if ahead.context.tools is not None:
            ahead.context.tools.release_calls()
        log.info("head_start_used", gained_ms=self._since_ms(ahead))
        return ahead.context

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the answer, from where it is by now if it was begun ahead. See `Responder.respond`."""
        ahead, self._taken = self._taken, None
        if ahead is None or ahead.context is not context:
            async with aclosing(self._responder.respond(context)) as stream:
                async for piece in stream:
                    yield piece
            return
        try:
            while (item := await ahead.pieces.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            _end(ahead)

    async def _think(self, ahead: _Ahead) -> None:
        try:
            context = await self._build_context(ahead.question)
            if context.tools is not None:
                context.tools.hold_calls()
            ahead.context = context
            ahead.built.set()
            async with aclosing(self._responder.respond(context)) as stream:
                async for piece in stream:
                    ahead.pieces.put_nowait(piece)
            ahead.pieces.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - whoever takes the answer gets it; if nobody does it is nobody's
            ahead.pieces.put_nowait(error)
        finally:
            ahead.built.set()

    def _since_ms(self, ahead: _Ahead) -> float:
        return round(1000 * (self._clock.monotonic() - ahead.begun_at), 1)


def _end(ahead: _Ahead) -> None:
    if ahead.task is not None:
        ahead.task.cancel()


def reads_finished(text: str) -> bool:
    """Return whether a text ends as a sentence does; dots that trail off are no end."""
    return bool(_FINISHED.search(text.strip()))
