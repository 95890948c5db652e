"""Explains a reply: what the model saw, part by part, and the facts behind its summary.

Reads the stored sources of one `model_context_built` record; `compaction.context.provenance` rebuilds the payload.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.store.history import SessionHistory
from bot.store.people import PeopleStore
from bot.store.prompts import PromptStore
from compaction.budget.messages import message_json
from compaction.context.provenance import StoredSources, rebuild_payload
from compaction.context.record import cited_passages, note_ids
from compaction.memory.passage import PassageKind
from compaction.model import Note, Seq, Turn
from compaction.payload import text_digest
from compaction.summary.folded import known_facts_of, standing_facts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from bot.memory.prompt_records import ReplyRecords
    from bot.store.database import Database
    from bot.store.history import SessionSnapshot
    from compaction.context.provenance import RebuiltPayload
    from compaction.context.record import CallRecord, ContextRecord
    from compaction.model import Fact, Segment, SessionId
    from compaction.ports import TurnStore

# The number of a turn in a citation. A model may write any.
_SEQ: Final = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class TracedFact:
    """One fact behind a summary, with the segment that has it and its turns, as far as they are stored."""

    fact: Fact
    segment: Segment
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class ExplainedMessage:
    """One message that left the process. `text`: as JSON, or None if it is not stored any more.

    `is_part`: it is a part of the rebuilt prompt, unchanged.
    """

    text: str | None
    is_part: bool


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """One model call of a reply. `at`: UTC epoch seconds. `given_up`: it was made with an earlier prompt for the turn,
    and its answer was not used.
    """

    at: float
    messages: tuple[ExplainedMessage, ...]
    given_up: bool = False

    @property
    def exact(self) -> bool:
        """Return whether every message is known by its digest."""
        return all(message.text is not None for message in self.messages)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One explained reply: the rebuilt payload, the calls made with it, and the facts behind its summary.

    `calls`: empty if the log names none, as in speech-to-speech and in logs of earlier versions.
    """

    record: ContextRecord
    rebuilt: RebuiltPayload
    summary: str | None
    facts: tuple[TracedFact, ...]
    calls: tuple[ExplainedCall, ...] = ()


class Explainer:
    """Explains replies from the stored data. Every method raises `StoreError`."""

    def __init__(self, database: Database, turns: TurnStore) -> None:
        self._history = SessionHistory(database)
        self._people = PeopleStore(database)
        self._prompts = PromptStore(database)
        self._turns = turns

    async def explain(
        self,
        record: ContextRecord,
        *,
        prompts: Collection[str] = (),
        calls: Sequence[CallRecord] = (),
        earlier: Sequence[ReplyRecords] = (),
    ) -> Explanation:
        """Return what the model was sent for the reply of `record`, in each of `calls`, and before it in those of
        `earlier`.

        `prompts`: system prompts that may have been sent but not stored.
        """
        snapshot = await self._snapshot(record)
        rebuilt = await self._rebuilt(record, snapshot, prompts)
        given_up = [await self._rebuilt(each.record, await self._snapshot(each.record), prompts) for each in earlier]
        facts = await self._traced(record.session_id, snapshot.segments)
        explained = await self._explained_calls(
            record.session_id, rebuilt, given_up, calls, [call for each in earlier for call in each.calls]
        )
        return Explanation(record, rebuilt, snapshot.summary, facts, explained)

    async def _snapshot(self, record: ContextRecord) -> SessionSnapshot:
        return await self._history.snapshot(record.session_id, record.summary_revision, record.cursor or 0)

    async def _rebuilt(
        self, record: ContextRecord, snapshot: SessionSnapshot, prompts: Collection[str]
    ) -> RebuiltPayload:
        known = await self._prompts.prompts_by_digest(record.system)
        sources = StoredSources(
            turns=await self._turns_of(record),
            summary=snapshot.summary,
            segments=snapshot.segments,
            notes=await self._history.notes(record.session_id, note_ids(record)),
            prompts={text_digest(text): text for text in prompts} | known,
            people=await self._people.by_id(record.participants),
            names=await self._names(record),
            quoted=await self._quoted(record),
            texts=await self._prompts.sent_texts(record.session_id, [digest for _, digest in record.texts]),
        )
        return rebuild_payload(record, sources)

    async def _explained_calls(
        self,
        session_id: SessionId,
        rebuilt: RebuiltPayload,
        given_up: Iterable[RebuiltPayload],
        calls: Sequence[CallRecord],
        earlier_calls: Sequence[CallRecord],
    ) -> tuple[ExplainedCall, ...]:
        parts = {text_digest(text): text for text in map(message_json, rebuilt.payload)}
        known = {text_digest(text): text for each in given_up for text in map(message_json, each.payload)} | parts
        sent = [*((call, True) for call in earlier_calls), *((call, False) for call in calls)]
        digests = {digest for call, _ in sent for digest in call.message_digests}
        known |= await self._prompts.sent_texts(session_id, digests - known.keys())
        return tuple(
            ExplainedCall(
                call.at,
                tuple(ExplainedMessage(known.get(digest), digest in parts) for digest in call.message_digests),
                unused,
            )
            for call, unused in sent
        )

    async def facts_now(self, session_id: SessionId) -> tuple[TracedFact, ...]:
        """Return the facts behind the session's current summary, oldest first."""
        folded = tuple(each for each in await self._history.segments(session_id) if not each.closing)
        return await self._traced(session_id, folded)

    async def _traced(self, session_id: SessionId, folded: tuple[Segment, ...]) -> tuple[TracedFact, ...]:
        """Return the facts that hold, with their turns."""
        known = standing_facts(folded)
        by_ref = {each.ref: segment for segment in folded for each in known_facts_of(segment)}
        wanted = [seq for each in known for seq in each.fact.turns]
        said: dict[int, Turn] = {}
        if wanted:
            stored = await self._turns.turns(session_id, Seq(min(wanted)), Seq(max(wanted) + 1))
            said = {turn.seq: turn for turn in stored}
        return tuple(
            TracedFact(each.fact, by_ref[each.ref], tuple(said[seq] for seq in each.fact.turns if seq in said))
            for each in known
        )

    async def _turns_of(self, record: ContextRecord) -> Mapping[int, Turn]:
        if record.seq_from is None or record.seq_to is None:
            return {}
        found = await self._turns.turns(record.session_id, Seq(record.seq_from), Seq(record.seq_to + 1))
        return {turn.seq: turn for turn in found}

    async def _names(self, record: ContextRecord) -> Mapping[str, str]:
        if not record.participants:
            return {}
        return await self._history.names(record.session_id, until=record.seq_to or 0)

    async def _quoted(self, record: ContextRecord) -> Mapping[str, Turn | Note]:
        found: dict[str, Turn | Note] = {}
        for ref, kind, session_id, key in cited_passages(record.recall):
            stored: Iterable[Turn | Note] = ()
            if kind is PassageKind.NOTE:
                stored = (await self._history.notes(session_id, [key])).values()
            elif _SEQ.fullmatch(key):
                stored = await self._turns.turns(session_id, Seq(int(key)), Seq(int(key) + 1))
            for source in stored:
                found[ref] = source
        return found
