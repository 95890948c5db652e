"""Finds in the log what models were sent in a session, without the words; `bot.memory.explain` adds those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.log_reader import LogReader, parse_event
from compaction.context.record import CallRecord, ContextRecord, read_call, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MARKS = (b'"model_context_built"', b'"model_call_sent"')


@dataclass(frozen=True, slots=True)
class ReplyRecords:
    """One reply in the log: the last prompt that was built for it, and the calls that were made with it."""

    record: ContextRecord
    calls: tuple[CallRecord, ...]


def records_of(log: Path, session_id: str | None = None) -> Iterator[ContextRecord | CallRecord]:
    """Yield the `model_context_built` and `model_call_sent` lines of a session or of all, oldest first, rotated files
    included.
    """
    with LogReader(log) as lines:
        for line in (*lines.read(), *lines.rest()):
            if not any(mark in line for mark in _MARKS) or (parsed := parse_event(line)) is None:
                continue
            record = read_record(parsed[1]) or read_call(parsed[1])
            if record is not None and session_id in {None, record.session_id}:
                yield record


def reply_records(lines: Sequence[ContextRecord | CallRecord], turn: int) -> ReplyRecords | None:
    """Return what was sent for the reply to `turn`, if anything. `lines`: a session's, from `records_of`."""
    found = [line for line in lines if isinstance(line, ContextRecord) and line.answer_to == turn]
    if not found:
        return None
    later = lines[lines.index(found[-1]) :]
    calls = (line for line in later if isinstance(line, CallRecord) and line.answer_to == turn)
    return ReplyRecords(found[-1], tuple(calls))
