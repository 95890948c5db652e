"""The closing segment is made beside the event loop, of what may be told when it is stored."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from structlog.testing import capture_logs

from compaction.folding import fold_input
from compaction.model import Mode, SessionId, TurnKind, TurnPart
from compaction.session import SessionMemory
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.segments import make_closing_segment
from tests.compaction.turn_store_contract import landing
from tests.fakes.clock import FakeClock
from tests.fakes.turn_store import InMemoryTurnStore
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from compaction.model import CompactionState, Segment

SESSION = SessionId("s")
ADA, BO = TurnPart("1", "Ada", "My walrus lives in Lisbon."), TurnPart("2", "Bo", "The gate code is 4411.")


class CountingStore(InMemoryTurnStore):
    """Counts how often a session is closed."""

    closed = 0

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Close it."""
        self.closed += 1
        await super().close(session_id, segment, state)


@asynccontextmanager
async def rolling_evening(turns: int = 220) -> AsyncIterator[tuple[SessionMemory, CountingStore]]:
    """Open a session in which nothing is folded before its end, after so many turns."""
    store, clock, summariser = CountingStore(), FakeClock(), ExtractiveSummariser()
    async with SessionMemory.open(
        SESSION,
        store=store,
        summariser=summariser,
        fallback=summariser,
        settings=CompactionSettings(),
        mode=Mode.ROLLING,
        clock=clock,
        log=structlog.get_logger(),
        searchable=True,
    ) as memory:
        for number in range(turns):
            part = (ADA, BO)[number % 2]
            await memory.append(TurnKind.SPEECH, (part,), started_at=clock.now(), ended_at=clock.now() + 1)
        yield memory, store


def while_it_is_made(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Coroutine[Any, Any, object]]) -> list[int]:
    """Let `happens` run in the event loop once while the closing segment is made; return the threads that make it."""
    loop, threads = asyncio.get_running_loop(), list[int]()

    def make(*args: Any, **kwargs: Any) -> Segment | None:
        threads.append(threading.get_ident())
        if len(threads) == 1:
            asyncio.run_coroutine_threadsafe(happens(), loop).result(PATIENCE_S)
        return make_closing_segment(*args, **kwargs)

    monkeypatch.setattr(fold_input, "make_closing_segment", make)
    return threads


async def _nothing() -> None:
    """Let the loop turn once."""
    await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_a_long_session_s_end_leaves_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the rolling mode everything in memory is read at the end. The loop works meanwhile, and who ends the session
    again waits for the same end.
    """
    async with rolling_evening() as (memory, store):
        threads = while_it_is_made(monkeypatch, _nothing)
        await asyncio.gather(memory.end(), memory.end())
        assert threads != [threading.get_ident()]
        assert (len(threads), store.closed) == (1, 1)
        (closing,) = (await store.load(SESSION)).segments
        assert (closing.start, closing.end, closing.closing) == (0, 220, True)


@pytest.mark.asyncio
async def test_who_opts_out_while_it_is_made_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made again, of what may be told now."""
    out = set[str]()

    async def opt_out() -> None:
        out.add(ADA.speaker_id)

    async with rolling_evening() as (memory, store):
        memory.withhold(lambda: frozenset(out))
        while_it_is_made(monkeypatch, opt_out)
        await memory.end()
        (closing,) = (await store.load(SESSION)).segments
        assert "4411" in repr(closing)
        assert "walrus" not in repr(closing)


@pytest.mark.asyncio
async def test_what_is_forgotten_while_it_is_made_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session takes over what another process left, and the segment is made again of that."""
    async with rolling_evening() as (memory, store):

        async def forget() -> None:
            state = replace(memory.state, revision=memory.state.revision + 1, last_at=1.0)
            assert await store.land(
                replace(landing(0, 0, revision=0, session_id=SESSION), expected_cursor=memory.cursor, state=state)
            )
            await memory.refresh()

        threads = while_it_is_made(monkeypatch, forget)
        await memory.end()
        stored = await store.load(SESSION)
        assert (len(threads), stored.ended, stored.state.revision) == (2, True, 1)


@pytest.mark.asyncio
async def test_a_bug_in_it_does_not_keep_the_session_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect is logged without its text, which may hold what people said. The turns are stored in any case."""

    async def broken() -> None:
        raise KeyError("walrus")

    async with rolling_evening() as (memory, store):
        while_it_is_made(monkeypatch, broken)
        with capture_logs() as logged:
            await memory.end()
        stored = await store.load(SESSION)
        assert (stored.ended, stored.segments, stored.total_turns) == (True, (), 220)
        (line,) = [each for each in logged if each["event"] == "fold_broke"]
        assert line["error_class"] == "KeyError"
