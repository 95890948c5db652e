"""Thinking an answer: the responder's stream becomes whole sentences for the one who speaks.

It does not decide what is asked or how it is said aloud.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

import structlog

from bot.brain.reply_progress import elapsed_ms
from bot.brain.responder import CutOffError
from bot.brain.skip import drop_skipped
from bot.llm.port import ChatModelError
from compaction.errors import ContextOverflowError
from voice.speaking.sentences import SentenceSplitter

if TYPE_CHECKING:
    from bot.brain.context import ModelContext
    from bot.brain.reply_progress import ReplyProgress
    from bot.brain.responder import Responder
    from bot.clock import Clock

log = structlog.get_logger()

# A sentence to be spoken, what went wrong instead, or the end.
GeneratedItem: TypeAlias = str | ChatModelError | ContextOverflowError | None

# Sentences a fast model may be ahead of the voice; more would be thought in vain if people speak on.
SENTENCES_AHEAD = 4


def new_sentence_queue() -> asyncio.Queue[GeneratedItem]:
    """Return the queue between thinking and speaking."""
    return asyncio.Queue(SENTENCES_AHEAD)


class ReplyGenerator:
    """Asks the responder. One a room."""

    def __init__(self, responder: Responder, clock: Clock) -> None:
        self._responder = responder
        self._clock = clock

    async def think(
        self,
        context: ModelContext,
        thoughts: asyncio.Queue[GeneratedItem],
        progress: ReplyProgress,
        *,
        may_skip: bool = False,
    ) -> None:
        """Cut the responder's stream into sentences; a failure is handed on like one, and the end at last.

        `may_skip`: the responder may find that nothing is to be said, and nobody waits for an answer.
        """
        splitter = SentenceSplitter()
        try:
            async with (
                aclosing(self._responder.respond(context)) as stream,
                aclosing(drop_skipped(stream, on_skip=progress.skip) if may_skip else stream) as pieces,
            ):
                async for piece in pieces:
                    if progress.model_first_token_ms is None:
                        progress.model_first_token_ms = elapsed_ms(progress.begun_at, self._clock.monotonic())
                    for sentence in splitter.feed(piece):
                        await thoughts.put(sentence)
            for sentence in splitter.flush():
                await thoughts.put(sentence)
        except CutOffError as error:
            log.warning("answer_cut_off", reason=str(error))
            # Half a sentence is better than none, and none better than half a second one.
            for sentence in () if splitter.spoke else splitter.flush():
                await thoughts.put(sentence)
        except (ChatModelError, ContextOverflowError) as error:
            # What the model had begun to say is half a sentence: better left out.
            if may_skip and not splitter.spoke:
                progress.skip(str(error))
            else:
                await thoughts.put(error)
        await thoughts.put(None)
