"""The memory of one conversation, for programs that use this package alone: turns go in, messages for a model come out.

    async with ConversationMemory.open("evening", store={}, summarise=summarise) as memory:
        await memory.add("Ada", "We rent the cabin.")
        messages = memory.context(max_tokens=8_000)

It is a `SessionTimeline`, the one of the bot, with a store in a mapping and times of its own.
"""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog

from compaction.context.build import build_payload
from compaction.mapping_store import MappingStore
from compaction.model import Mode, SessionId, Turn, TurnKind, TurnPart
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.function import FunctionSummariser, SummaryFunction
from compaction.summary.port import FOLD_TIMEOUT_S, Summariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, MutableMapping

    from compaction.events import CompactionEvent, RunFailed
    from compaction.ports import SessionClock


# The end of the year 9998, so that a day more has a date.
_LATEST_S = 253_370_764_799.0


class _SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


def _logger() -> structlog.typing.FilteringBoundLogger:
    """Return structlog's logger as the program has configured it, else the standard library's logger `compaction`."""
    if structlog.is_configured():
        return structlog.get_logger()  # type: ignore[no-any-return]
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        logging.getLogger("compaction"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.filter_by_level, structlog.processors.JSONRenderer(default=str)],
    )


class ConversationMemory:
    """The memory of one conversation. Created by `open`; not thread-safe."""

    def __init__(self, timeline: SessionTimeline, clock: SessionClock) -> None:
        self._timeline = timeline
        self._clock = clock

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        name: str,
        *,
        store: MutableMapping[str, Any],
        summarise: SummaryFunction | Summariser | None = None,
        timeout_s: float = FOLD_TIMEOUT_S,
        on_event: Callable[[CompactionEvent], None] | None = None,
        clock: SessionClock | None = None,
    ) -> AsyncIterator[ConversationMemory]:
        """Open a new or stored conversation, and close it when the block is left; the store has all of it then.

        `name`: its keys in `store` begin with it. `summarise`: `async def summarise(previous, turns)`, or an
        `LlmSummariser`; by default the summary is made of quotes, without a model. `timeout_s`: how long one summary
        may take. `on_event` gets each event of compaction; it must not block. Raises StoreError; and
        TypeError if `summarise` is a plain function.
        """
        used = _SystemClock() if clock is None else clock
        summariser = FunctionSummariser(summarise) if callable(summarise) else summarise or ExtractiveSummariser()
        async with SessionTimeline.open(
            SessionId(name),
            store=MappingStore(store),
            summariser=summariser,
            mode=Mode.SUMMARY,
            clock=used,
            timeout_s=timeout_s,
            log=_logger(),
            on_event=on_event,
        ) as timeline:
            yield cls(timeline, used)

    async def add(
        self,
        speaker: str,
        text: str,
        *,
        at: float | None = None,
        speaker_id: str | None = None,
        is_assistant: bool = False,
    ) -> Turn:
        """Add and store what somebody said, and return it as a turn.

        `at`: when, UTC epoch seconds, by default now. `speaker_id`: tells people of the same name apart.
        `is_assistant`: the model said it. Raises TypeError and ValueError; and StoreError, when the turn is kept and
        stored with a later one.
        """
        when = self._clock.now() if at is None else at
        if not (isinstance(text, str) and isinstance(speaker, str)):
            raise TypeError("A turn has the name of a speaker and a text, and both are str.")
        if not 0 <= when <= _LATEST_S:
            raise ValueError(f"at is {when}, and it is a time in UTC epoch seconds, not milliseconds.")
        kind = TurnKind.ASSISTANT if is_assistant else TurnKind.SPEECH
        part = TurnPart(speaker.casefold() if speaker_id is None else speaker_id, speaker, text)
        return await self._timeline.append(kind, (part,), started_at=when, ended_at=when)

    def context(self, *, max_tokens: int = 8_000, system: str = "") -> list[dict[str, str]]:
        """Return the messages for a model's next call, and start a fold if one is due. Never waits.

        Each has `role` and `content`: `system`, the summary, then each turn that is not folded, word for word. Of more
        than `max_tokens` (estimated, not too low) the oldest turns are left out, and a note says so. Raises
        ContextOverflowError if not even `system` and the last turn fit.
        """
        context = self._timeline.context(max_input_tokens=max_tokens)
        parts = build_payload(context, system=[system] if system else [])
        return [{"role": part.role, "content": part.content} for part in parts]

    async def fold(self) -> RunFailed | None:
        """Fold all that is due now, and wait for it. Returns None if it is done, otherwise why not, and when it is
        tried again.

        Nobody has to call it: `context` starts folds in the background.
        """
        self._timeline.compactor.check()
        return await self._timeline.settle()

    @property
    def summary(self) -> str | None:
        """Return the summary of all folded turns, at most 1,200 characters; None before the first fold."""
        return self._timeline.summary

    @property
    def cursor(self) -> int:
        """Return the number of the first turn that is not folded, from 0."""
        return self._timeline.cursor
