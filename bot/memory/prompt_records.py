"""Finds in the log what models were sent in a session, without the words; `bot.memory.explain` adds those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from bot.local_zone import LocalZone
from bot.logs.reader import LogReader, parse_event
from compaction.context.record import CallRecord, ContextRecord, read_call, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MARKS = (b'"model_context_built"', b'"model_call_sent"')


@dataclass(frozen=True, slots=True)
class ReplyRecords:
    """The last prompt that was built to answer a turn, and the calls that were made with it.

    `earlier`: prompts built for the turn before it, oldest first, with their calls: a reply that was begun before the
    turn had ended is given up when the person goes on, and its calls have left the process all the same.
    """

    record: ContextRecord
    calls: tuple[CallRecord, ...]
    earlier: tuple[ReplyRecords, ...] = ()


def records_of(log: Path, session_id: str | None = None) -> Iterator[ContextRecord | CallRecord]:
    """Yield the `model_context_built` and `model_call_sent` lines of a session or of all, oldest first, rotated files
    included.
    """
    zone = LocalZone()
    with LogReader(log) as lines:
        for line in chain(lines.read(), lines.rest()):
            if not any(mark in line for mark in _MARKS) or (parsed := parse_event(line)) is None:
                continue
            record = read_record(parsed[1], zone) or read_call(parsed[1])
            if record is not None and session_id in {None, record.session_id}:
                yield record


def reply_records(lines: Sequence[ContextRecord | CallRecord], turn: int) -> ReplyRecords | None:
    """Return what was sent for the reply to `turn`, if anything. `lines`: a session's, from `records_of`."""
    built: list[ReplyRecords] = []
    for line in lines:
        if line.answer_to != turn:
            continue
        if isinstance(line, ContextRecord):
            built.append(ReplyRecords(line, ()))
        elif built:
            built[-1] = replace(built[-1], calls=(*built[-1].calls, line))
    return replace(built[-1], earlier=tuple(built[:-1])) if built else None
