"""Plays a transcript through the real memory (timeline, store, folding, payload), without audio and without waiting.

The clock follows the transcript, backoff delays included, so a replay of hours takes seconds. The result is
deterministic if the summariser is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from bot.memory.transcript import NoteLine, SaidLine
from compaction.context.build import build_payload
from compaction.events import FoldFailed, FoldLanded
from compaction.model import Mode, Note, NoteId, SessionId, TurnKind, TurnPart
from compaction.payload import coverage
from compaction.session import SessionMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import tzinfo

    from bot.memory.transcript import TranscriptLine
    from compaction.events import CompactionEvent
    from compaction.model import Turn
    from compaction.payload import Coverage, PayloadPart
    from compaction.ports import TurnStore
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser

SESSION = SessionId("replay")
# Speakers in transcripts whose turns are the bot's, besides its own names.
ASSISTANTS = frozenset({"assistant", "bot"})


class TranscriptClock:
    """A clock that follows the transcript. `monotonic` adds the real time that work takes."""

    def __init__(self, started_at: float) -> None:
        self._at = started_at
        self._ahead_s = 0.0

    def advance_to(self, at: float) -> None:
        """Move the clock to `at` (epoch seconds). It never goes back."""
        if at > self._at:
            self._ahead_s += at - self._at
            self._at = at

    def now(self) -> float:
        """Return the transcript's current time, UTC epoch seconds."""
        return self._at

    def monotonic(self) -> float:
        """Return monotonic seconds: real time plus the time that the transcript skipped."""
        return time.monotonic() + self._ahead_s


@dataclass(slots=True)
class Replay:
    """The result of a replay: its compactions, and the payload that a model would get at the end."""

    turns: int
    notes: int
    mode: Mode
    landed: list[FoldLanded] = field(default_factory=list)
    failed: list[FoldFailed] = field(default_factory=list)
    cursor: int = 0
    summary: str = ""
    payload: tuple[PayloadPart, ...] = ()
    covered: Coverage | None = None

    def on_event(self, event: CompactionEvent) -> None:
        """Keep a fold that landed or failed."""
        if isinstance(event, FoldLanded):
            self.landed.append(event)
        elif isinstance(event, FoldFailed):
            self.failed.append(event)

    def finish(self, memory: SessionMemory, payload: tuple[PayloadPart, ...]) -> None:
        """Keep what the memory has at the end, and what a model would get."""
        self.payload = payload
        self.turns = memory.total_turns
        self.mode = memory.mode
        self.cursor = memory.cursor
        self.summary = memory.summary or ""
        self.covered = coverage(payload, memory.total_turns)

    def report(self) -> dict[str, object]:
        """Return the result as JSON values. The keys are public: programs may read them."""
        assert self.covered is not None, "the replay is over"
        return {
            "turns": self.turns,
            "notes": self.notes,
            "mode": self.mode.value,
            "compactions": [
                {
                    "old_cursor": each.old_cursor,
                    "new_cursor": each.new_cursor,
                    "covered_through_turn": each.covered_through_turn,
                    "summary_chars": each.summary_chars,
                    "latency_ms": round(each.latency_ms, 1),
                    "folded_note_count": each.folded_note_count,
                    "unsourced": each.unsourced,
                }
                for each in self.landed
            ],
            "failures": [
                {"cursor": each.cursor, "error_class": each.error_class, "error": each.error, "attempt": each.attempt}
                for each in self.failed
            ],
            "summary": self.summary,
            "cursor": self.cursor,
            "payload": [
                {
                    "role": part.role,
                    "kind": part.kind.value,
                    "seq_from": part.seq_from,
                    "seq_to": part.seq_to,
                    "tokens": part.tokens,
                    "content": part.content,
                }
                for part in self.payload
            ],
            "coverage": {
                "summarised": _lists(self.covered.summarised),
                "verbatim": _lists(self.covered.verbatim),
                "evicted": _lists(self.covered.evicted),
                "missing": _lists(self.covered.missing),
            },
        }


async def replay(
    lines: Sequence[TranscriptLine],
    *,
    store: TurnStore,
    summariser: Summariser,
    settings: CompactionSettings,
    mode: Mode,
    system: Sequence[str],
    max_input_tokens: int,
    zone: tzinfo,
    searchable: bool = True,
    own_names: Collection[str] = (),
    on_event: Callable[[CompactionEvent], None],
    on_line: Callable[[], None],
) -> Replay:
    """Play `lines` and return the result.

    Each turn is treated as one that a model answers, so it checks whether a batch is due; the next line waits for the
    fold. `searchable`: a room would have memory search, without which the mode is `summary` and not `rolling`.
    `own_names`: the bot's. `on_event` gets each compaction event, `on_line` is called after each line. Raises
    `StoreError` and `ContextOverflowError`.
    """
    clock = TranscriptClock(lines[0].at)
    own = ASSISTANTS.union(name.casefold() for name in own_names)
    result = Replay(0, 0, mode)

    def observe(event: CompactionEvent) -> None:
        result.on_event(event)
        on_event(event)

    async with SessionMemory.open(
        SESSION,
        store=store,
        summariser=summariser,
        settings=settings,
        mode=mode,
        clock=clock,
        # Makes jitter and run names the same each time.
        rng=Random(0),  # noqa: S311
        on_event=observe,
        searchable=searchable,
    ) as memory:
        rolling = memory.mode is Mode.ROLLING
        last: Turn | None = None
        for line in lines:
            clock.advance_to(line.at)
            if isinstance(line, NoteLine):
                result.notes += 1
                await memory.add_note(_note(line, result.notes))
            else:
                last = await _append_turn(memory, line, own)
                context = memory.context(current=last, max_input_tokens=max_input_tokens)
                if rolling:
                    # As with a real reply: turns that do not fit are evicted.
                    memory.record_sent(context, build_payload(context, system=system, zone=zone, searchable=True))
            await memory.settle()
            on_line()
        context = memory.context(current=last, max_input_tokens=max_input_tokens)
        payload = build_payload(context, system=system, zone=zone, searchable=rolling)
        memory.record_sent(context, payload)
        result.finish(memory, payload)
    return result


async def _append_turn(memory: SessionMemory, line: SaidLine, own: Collection[str]) -> Turn:
    is_own = line.speaker.casefold() in own
    kind = TurnKind.ASSISTANT if is_own else TurnKind.SPEECH
    part = TurnPart("assistant" if is_own else line.speaker.casefold(), line.speaker, line.text)
    return await memory.append(kind, (part,), started_at=line.at, ended_at=line.at)


def _note(line: NoteLine, number: int) -> Note:
    return Note(id=NoteId(f"note-{number}"), at=line.at, who=line.who, what=line.note)


def _lists(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [[first, last] for first, last in ranges]
