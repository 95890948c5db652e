"""Generates a reply: cuts the responder's stream into sentences for the speech output."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import structlog

from bot.brain.reply_progress import elapsed_ms
from bot.brain.responder import CutOffError
from bot.brain.skip import drop_skipped
from bot.llm.port import NO_WORDS, ChatModelError
from bot.texts.text import Text
from compaction.errors import ContextOverflowError
from voice.cancellation import is_being_cancelled
from voice.speaking.sentences import SentenceSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from bot.brain.reply_progress import ReplyProgress
    from bot.clock import Clock

log = structlog.get_logger()

# A sentence to speak, a failure in its place, or None at the end.
GeneratedItem: TypeAlias = str | ChatModelError | ContextOverflowError | None
SentenceQueue: TypeAlias = "asyncio.Queue[GeneratedItem]"

# How many sentences the model may be ahead of the voice. If the reply is interrupted, these sentences are wasted.
SENTENCES_AHEAD = 4
# The failure of a reply that waited for something that was cancelled elsewhere.
BROKEN_OFF = Text("My answer broke off before I could give it. Ask me again.")


def new_sentence_queue() -> SentenceQueue:
    """Return the bounded queue of the sentences of one answer."""
    return asyncio.Queue(SENTENCES_AHEAD)


@asynccontextmanager
async def sentences_of(
    answer: AsyncGenerator[str, None], progress: ReplyProgress, clock: Clock, *, may_skip: bool = False
) -> AsyncIterator[SentenceQueue]:
    """Yield the queue of an answer's sentences, with a failure in place of a sentence, and None at the end. A task
    reads `answer`, which ends with the block.

    `may_skip`: the responder may say nothing, and failures are not reported, because nobody waits for the reply.
    """
    sentences = new_sentence_queue()
    async with asyncio.TaskGroup() as tasks:
        generating = tasks.create_task(
            _generate(answer, sentences, progress, clock, may_skip=may_skip), name="generate-answer"
        )
        yield sentences
        # After a failure of the voice nothing reads the queue.
        generating.cancel()


async def _generate(
    answer: AsyncGenerator[str, None],
    sentences: SentenceQueue,
    progress: ReplyProgress,
    clock: Clock,
    *,
    may_skip: bool,
) -> None:
    splitter, failed = SentenceSplitter(), False
    try:
        async with (
            aclosing(answer) as stream,
            aclosing(drop_skipped(stream, on_skip=progress.skip) if may_skip else stream) as pieces,
        ):
            async for piece in pieces:
                if progress.model_first_token_ms is None:
                    progress.model_first_token_ms = elapsed_ms(progress.started_at, clock.monotonic())
                for sentence in splitter.feed(piece):
                    await sentences.put(sentence)
        for sentence in splitter.flush():
            await sentences.put(sentence)
    except CutOffError as error:
        log.warning("reply_cut_off", problem=error)
        # An unfinished first sentence is spoken, since there is no other; an unfinished later one is dropped.
        for sentence in () if splitter.spoke else splitter.flush():
            await sentences.put(sentence)
    except (ChatModelError, ContextOverflowError, asyncio.CancelledError) as error:
        failure = broken_off(error) if isinstance(error, asyncio.CancelledError) else error
        # The unfinished sentence is dropped.
        if may_skip and not splitter.spoke:
            progress.skip(failure)
        else:
            await sentences.put(failure)
        failed = True
    if not (splitter.spoke or may_skip or failed):
        # Thoughts, code and tool calls are never spoken. Silence would look like a question that was not heard.
        await sentences.put(ChatModelError(NO_WORDS, retryable=True))
    await sentences.put(None)


def broken_off(error: asyncio.CancelledError) -> ChatModelError:
    """Return the failure of a reply that waited for something that was cancelled elsewhere: without one, the room would
    wait for the rest of it. Raises `error` if the current task is being cancelled itself.
    """
    if is_being_cancelled():
        raise error
    return ChatModelError(BROKEN_OFF, retryable=True)
