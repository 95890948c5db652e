"""Reads a `model_context_built` log line, which describes a payload without its words. Pure.

Lines of earlier versions are read as far as possible. `compaction.context.provenance` rebuilds the payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING

from compaction.memory.quotes import parse_citation
from compaction.model import Mode, NoteId, SessionId
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compaction.memory.passage import PassageKind

# A damaged line may have any number. A database takes none of more than 64 bits.
_LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """One `model_context_built` line. `at`: UTC epoch seconds. For the other fields see
    `payload.context_built_fields`.
    """

    session_id: SessionId
    at: float
    mode: str
    seq_from: int | None
    seq_to: int | None
    answer_to: int | None
    cursor: int | None
    summary_revision: int
    tokens: Mapping[str, int]
    max_input_tokens: int | None
    evicted: tuple[int, int] | None
    eviction: str | None
    system: tuple[str, ...]
    note_ids: tuple[str, ...]
    participants: tuple[str, ...]
    recall: tuple[str, ...]
    # Of the clock times in the payload.
    zone: tzinfo
    digest: str | None
    # Kind and digest of each part whose text is stored as it was sent.
    texts: tuple[tuple[str, str], ...] = ()
    # How many of the system prompts stand right before the current turn.
    reply_prompts: int = 0

    @property
    def spoken(self) -> bool:
        """Return whether the line is from a speech-to-speech call, which sends instructions and conversation items."""
        return PartKind.CURRENT.value not in self.tokens and bool(self.texts or self.answer_to is not None)

    @property
    def total_tokens(self) -> int:
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One `model_call_sent` line: the digests of the messages that left the process. `at`: UTC epoch seconds."""

    session_id: SessionId
    at: float
    answer_to: int
    message_digests: tuple[str, ...]


def read_call(event: Mapping[str, object]) -> CallRecord | None:
    """Return the record of a `model_call_sent` log event. Returns None for another event or a broken one."""
    answer_to = _number(event.get("answer_to"))
    if event.get("event") != "model_call_sent" or not isinstance(event.get("session_id"), str) or answer_to is None:
        return None
    digests = _texts(event.get("message_digests"))
    return CallRecord(SessionId(str(event["session_id"])), _moment(event.get("timestamp")), answer_to, digests)


def read_record(event: Mapping[str, object], local: tzinfo = UTC) -> ContextRecord | None:
    """Return the record of a `model_context_built` log event. Returns None for another event or a broken one.

    `local`: the time zone of this machine, where the event most likely happened.
    """
    if event.get("event") != "model_context_built" or not isinstance(event.get("session_id"), str):
        return None
    tokens = event.get("tokens")
    revision = _number(event.get("summary_revision"))
    if not isinstance(tokens, dict) or revision is None:
        return None
    evicted = event.get("evicted")
    digest = event.get("digest")
    eviction = event.get("eviction")
    at = _moment(event.get("timestamp"))
    return ContextRecord(
        session_id=SessionId(str(event["session_id"])),
        at=at,
        mode=str(event.get("compaction_mode") or Mode.SUMMARY.value),
        seq_from=_number(event.get("seq_from")),
        seq_to=_number(event.get("seq_to")),
        # Lines of an earlier version have no `answer_to`; their last turn is the current turn.
        answer_to=_number(event.get("answer_to", event.get("seq_to"))),
        cursor=_number(event.get("cursor", event.get("seq_from"))),
        summary_revision=revision,
        tokens={str(kind): cost for kind, cost in tokens.items() if isinstance(cost, int)},
        max_input_tokens=_number(event.get("max_input_tokens")),
        evicted=(evicted[0], evicted[1]) if isinstance(evicted, list) and len(evicted) == 2 else None,
        eviction=eviction if isinstance(eviction, str) else None,
        system=_texts(event.get("system")),
        note_ids=_texts(event.get("note_ids")),
        participants=_texts(event.get("participants")),
        recall=_texts(event.get("recall")),
        zone=_zone(event.get("utc_offset_s"), at, local),
        digest=digest if isinstance(digest, str) else None,
        texts=_pairs(event.get("as_sent")),
        reply_prompts=_number(event.get("reply_prompts")) or 0,
    )


def cited_passages(refs: Iterable[str]) -> tuple[tuple[str, PassageKind, SessionId, str], ...]:
    """Return (ref, kind, session, seq or note id) for each ref of a quote. These are the passages to read from the
    store.
    """
    return tuple(
        (ref, cited.kind, cited.session_id, cited.key) for ref in refs if (cited := parse_citation(ref)) is not None
    )


def note_ids(record: ContextRecord) -> tuple[NoteId, ...]:
    """Return the ids of the notes that were sent."""
    return tuple(NoteId(note_id) for note_id in record.note_ids)


def _zone(offset_s: object, at: float, local: tzinfo) -> tzinfo:
    """Return the time zone with this offset at that time: `local`, which knows those of other times too, if it is."""
    try:
        offset = timedelta(seconds=offset_s if isinstance(offset_s, int | float) else 0.0)
        return local if datetime.fromtimestamp(at, local).utcoffset() == offset else timezone(offset)
    except (ValueError, OverflowError):
        return UTC


def _number(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _LARGEST else None


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    pairs = (each.partition(":") for each in _texts(value))
    return tuple((kind, digest) for kind, _, digest in pairs if digest)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def _moment(stamp: object) -> float:
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        return 0.0
