"""Plays a transcript through the real memory (timeline, store, folding, payload), without audio and without waiting.

The clock follows the transcript, backoff delays included, so a replay of hours takes seconds. The result is
deterministic if the summariser is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from bot.memory.excerpt import payload_with_excerpt
from bot.memory.transcript import NoteLine, SaidLine, TranscriptLine
from compaction.budget.trim import TrimOptions
from compaction.context.build import build_payload
from compaction.events import CompactionEvent, RunFailed, RunLanded
from compaction.model import Mode, Note, NoteId, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import Coverage, PayloadPart, coverage
from compaction.session import SessionTimeline
from compaction.summary.port import FOLD_TIMEOUT_S, Summariser

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import tzinfo

    from compaction.ports import TurnStore

SESSION = SessionId("replay")
# Speakers in transcripts whose turns are the bot's, besides its own names.
ASSISTANTS = frozenset({"assistant", "bot"})


class TranscriptClock:
    """A clock that follows the transcript. `monotonic` adds the real time that work takes."""

    def __init__(self, started_at: float) -> None:
        self._at = started_at

    def advance_to(self, at: float) -> None:
        """Move the clock to `at` (epoch seconds). It never goes back."""
        self._at = max(self._at, at)

    def now(self) -> float:
        """Return the transcript's current time, UTC epoch seconds."""
        return self._at

    def monotonic(self) -> float:
        """Return monotonic seconds: real time plus the transcript's."""
        return time.monotonic() + self._at


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay: its compactions, and the payload that a model would get at the end."""

    turns: int
    notes: int
    mode: Mode
    landed: tuple[RunLanded, ...]
    failed: tuple[RunFailed, ...]
    cursor: int
    summary: str
    payload: tuple[PayloadPart, ...]
    covered: Coverage

    def report(self) -> dict[str, object]:
        """Return the result as JSON values. The keys are public: programs may read them."""
        return {
            "turns": self.turns,
            "notes": self.notes,
            "mode": self.mode.value,
            "compactions": [_values(each, _LANDED) for each in self.landed],
            "failures": [_values(each, _FAILED) for each in self.failed],
            "summary": self.summary,
            "cursor": self.cursor,
            "payload": [_values(part, _PART) for part in self.payload],
            "coverage": _values(self.covered, _COVERAGE),
        }


# The fields of the report.
_LANDED = (
    *("old_cursor", "new_cursor", "covered_through_turn", "summary_chars"),
    *("latency_ms", "folded_note_count", "unsourced"),
)
_FAILED = ("cursor", "error_class", "error", "attempt")
_PART = ("role", "kind", "seq_from", "seq_to", "tokens", "content")
_COVERAGE = ("summarised", "verbatim", "evicted", "missing")


def _values(of: object, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(of, name) for name in names}


async def replay(
    lines: Sequence[TranscriptLine],
    *,
    store: TurnStore,
    summariser: Summariser,
    mode: Mode,
    system: Sequence[str],
    max_input_tokens: int,
    zone: tzinfo,
    options: TrimOptions | None = None,
    enforced: bool = True,
    searchable: bool = True,
    own_names: Collection[str] = (),
    timeout_s: float = FOLD_TIMEOUT_S,
    on_event: Callable[[CompactionEvent], None],
    on_line: Callable[[], None],
) -> Replay:
    """Play `lines` and return the result.

    Each turn is treated as one that a model answers, so it checks whether a batch is due; the next line waits for the
    fold. `options`: how a prompt is made to fit, if that is `enforced`. `searchable`: a room would have memory search,
    without which the mode is `summary` and not `rolling`.
    `own_names`: the bot's. `timeout_s`: of a fold. `on_event` gets each compaction event, `on_line` is called after
    each line. Raises `StoreError` and `ContextOverflowError`.
    """
    clock = TranscriptClock(lines[0].at)
    own = ASSISTANTS.union(name.casefold() for name in own_names)
    seen: list[CompactionEvent] = []

    def observe(event: CompactionEvent) -> None:
        seen.append(event)
        on_event(event)

    async with SessionTimeline.open(
        SESSION,
        store=store,
        summariser=summariser,
        mode=mode,
        clock=clock,
        timeout_s=timeout_s,
        # Makes jitter and run names the same each time.
        rng=Random(0),  # noqa: S311
        on_event=observe,
        searchable=searchable,
    ) as timeline:
        build = partial(
            build_payload, system=system, options=options, enforced=enforced, zone=zone, searchable=searchable
        )
        last: Turn | None = None
        for number, line in enumerate(lines):
            clock.advance_to(line.at)
            if isinstance(line, NoteLine):
                await timeline.add_note(Note(NoteId(f"note-{number}"), line.at, line.who, line.note))
            else:
                last = await _append_turn(timeline, line, own)
                context = timeline.context(current=last, max_input_tokens=max_input_tokens)
                if timeline.mode is Mode.ROLLING:
                    # As with a real reply: turns that do not fit are evicted.
                    timeline.record_sent(context, build(context))
            await timeline.settle()
            on_line()
        context = timeline.context(current=last, max_input_tokens=max_input_tokens)
        payload = payload_with_excerpt(context, partial(build, context), options or TrimOptions())
        timeline.record_sent(context, payload)
        return Replay(
            turns=timeline.total_turns,
            notes=sum(isinstance(line, NoteLine) for line in lines),
            mode=timeline.mode,
            landed=tuple(each for each in seen if isinstance(each, RunLanded)),
            failed=tuple(each for each in seen if isinstance(each, RunFailed)),
            cursor=timeline.cursor,
            summary=timeline.summary or "",
            payload=payload,
            covered=coverage(payload, timeline.total_turns),
        )


async def _append_turn(timeline: SessionTimeline, line: SaidLine, own: Collection[str]) -> Turn:
    is_own = line.speaker.casefold() in own
    kind = TurnKind.ASSISTANT if is_own else TurnKind.SPEECH
    part = TurnPart("assistant" if is_own else line.speaker.casefold(), line.speaker, line.text)
    return await timeline.append(kind, (part,), started_at=line.at, ended_at=line.at)
