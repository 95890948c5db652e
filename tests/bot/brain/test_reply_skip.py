"""Replies that may be skipped, and silence requests in the middle of a reply."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.brain.responder import CutOffError
from bot.brain.speech_output import MODEL_BROKE_OFF
from bot.llm.port import ChatModelError
from compaction.errors import ContextOverflowError, StoreError
from tests.bot.brain.test_reply import FIRST, SECOND, Bench
from tests.fakes.brain import ScriptedResponder, until

DOUBTFUL = replace(FIRST, may_skip=True)


@pytest.mark.parametrize("pieces", [("SKIP",), ("SK", "IP", "."), (" skip",), ("S", CutOffError("length")), ()])
async def test_what_is_nothing_is_not_spoken(pieces: tuple[str | Exception, ...]) -> None:
    """An answer of SKIP, or a part of it, is not spoken. The reply counts as skipped and not as failed."""
    bench = Bench(ScriptedResponder(*pieces))
    reply = await bench.answered(DOUBTFUL)
    assert (reply.text, reply.failure, reply.first_audio_at, bench.voice.spoken) == ("", None, None, [])
    assert reply.skipped or isinstance(pieces[-1], CutOffError)


async def test_something_is_spoken_as_ever() -> None:
    """An answer that the model could have skipped is spoken like any other."""
    bench = Bench(ScriptedResponder("It is ", "green. SKI", "ING is fun."))
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(DOUBTFUL)
        reply = await bench.next_reply()
        assert (reply.text, reply.skipped) == ("It is green. SKIING is fun.", False)


AWAY = ChatModelError("The model is away. Start it.", retryable=True)


@pytest.mark.parametrize(
    "trouble",
    [
        AWAY,
        ContextOverflowError(current=900, maximum=512),
        StoreError("The disk is full. Make room."),
        asyncio.CancelledError(),
        TimeoutError(),
    ],
)
async def test_a_failure_that_nobody_waits_for_is_not_told(trouble: BaseException) -> None:
    """A reply that may be skipped and fails before its first word is silently skipped."""
    late = isinstance(trouble, TimeoutError)
    bench = Bench(ScriptedResponder(asyncio.Event() if late else AWAY), timeout_s=0.05 if late else 20.0)
    bench.cancelled = isinstance(trouble, asyncio.CancelledError)
    bench.overflow = trouble if isinstance(trouble, ContextOverflowError | StoreError) else None
    reply = await bench.answered(DOUBTFUL)
    assert (reply.failure, reply.skipped, bench.voice.spoken) == (None, True, [])


async def test_a_failure_in_the_middle_is_told_whoever_waits() -> None:
    """People have heard its beginning."""
    bench = Bench(ScriptedResponder("It is green. And ", AWAY))
    reply = await bench.answered(DOUBTFUL)
    assert (reply.failure, reply.skipped) == (str(AWAY), False)
    assert reply.text == f"It is green. {MODEL_BROKE_OFF}"


async def test_silenced_it_breaks_off_and_forgets_what_waits() -> None:
    """A silence request stops the reply and drops the waiting question. A later question is answered again."""
    thinking = asyncio.Event()
    responder = ScriptedResponder("Yes. ", thinking)
    bench = Bench(responder)
    async with bench.listener.listening(), bench.running():
        bench.replier.cancel_all()
        bench.replier.ask(FIRST)
        await until(lambda: bool(bench.listener.frames))
        bench.replier.ask(SECOND)
        bench.replier.cancel_all()
        assert bench.replier.waiting is None
        await bench.next_reply()
        await until(lambda: not bench.replier.busy)
        assert [reply.question for reply in bench.replies] == [FIRST]
        thinking.set()
        bench.replier.ask(SECOND)
        assert (await bench.next_reply()).question == SECOND
