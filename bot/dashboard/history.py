"""Reads stored sessions for the dashboard: their turns, what was said about something, what the model saw.

Whoever asks here may see the session; `service` has checked that. Raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bot.dashboard.access import (
    UNHEARD,
    WITHHELD,
    Access,
    Json,
    SpeechFilter,
    chapter_json,
    note_json,
    segment_json,
    turn_json,
)
from bot.memory.explain import Explainer, Explanation
from bot.memory.recall import Recall, readable_by
from bot.store.attendance import AttendanceStore
from bot.store.history import SessionHistory
from bot.viewers import NOTHING, Viewer
from compaction.memory.passage import Readable, Scope
from compaction.model import Seq, SessionId, Turn
from compaction.payload import PartKind, PayloadPart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from bot.store.database import Database
    from bot.store.prompts import PromptFigures
    from bot.store.sessions import StoredSession
    from compaction.memory.recall import RecallHit
    from compaction.ports import TurnStore

# Turns and notes that a page gets at once.
TURNS_AT_ONCE: Final = 200
NOTES_SHOWN: Final = 40
HITS: Final = 30


class StoredHistory:
    """The stored sessions. `recall` searches them."""

    def __init__(self, database: Database, turns: TurnStore, recall: Recall) -> None:
        self.sessions = SessionHistory(database)
        self._attendance = AttendanceStore(database)
        self._explainer = Explainer(database, turns)
        self._turns = turns
        self.recall = recall

    async def filter_of(self, session_id: SessionId, access: Access, withheld: frozenset[str]) -> SpeechFilter:
        """Return what may be shown of a session to somebody. `withheld`: the people of its server who opted out."""
        quotable = await self.sessions.quotable(session_id, withheld) if withheld else frozenset[str]()
        visible = SpeechFilter(withheld, quotable)
        if access.channels is None:
            return visible
        people = [each.person_id for each in access.viewers.values()]
        session = (await self._attendance.of([session_id], people)).get(session_id)
        if session is None:
            return replace(visible, viewing=NOTHING, heard_all=False, reads_everything=False, is_operator=False)
        viewing = access.viewing(session)
        said = None if viewing.is_whole else await self.sessions.said_between(session_id)
        return replace(
            visible,
            viewing=viewing,
            heard_all=viewing.is_whole or (said is not None and viewing.covers(*said)),
            reads_everything=access.reads_everything(session.guild_id),
            is_operator=False,
        )

    async def search(
        self, query: str, viewer: Viewer, channels: frozenset[int], withheld: Callable[[], Awaitable[frozenset[str]]]
    ) -> tuple[RecallHit, ...]:
        """Search what somebody may read of some channels of a server. `withheld`: returns who opted out there."""
        scope = Scope(guild_id=viewer.guild_id, channels=channels, archived=True, with_bot=True)

        async def readable() -> Readable:
            return replace(await readable_by([viewer], scope, self._attendance), withheld=await withheld())

        return await self.recall.search_for(readable, query, scope, limit=HITS)

    async def turns(
        self, session_id: SessionId, total: int, *, first: int | None = None, most: int = TURNS_AT_ONCE
    ) -> Sequence[Turn]:
        """Return turns from `first` on, or the last ones. `total`: how many the session has."""
        start = max(0, total - most) if first is None else min(first, total)
        return await self._turns.turns(session_id, Seq(start), Seq(min(start + most, total)))

    async def notes_json(self, session_id: SessionId, visible: SpeechFilter) -> list[Json]:
        """Return the last notes about screens, oldest first."""
        if not visible.shows_derived:
            return []
        return [note_json(note) for note in await self.sessions.latest_notes(session_id, limit=NOTES_SHOWN)]

    async def folds_json(self, session_id: SessionId, visible: SpeechFilter, total: int) -> Json:
        """Return who spoke in which turn, and what was folded, for the picture of the memory.

        The turns end before `total`, and with the last that is stored.
        """
        spoke = await self.sessions.first_speakers(session_id)
        shown = [each for each in dict.fromkeys(spoke.values()) if each not in visible.withheld]
        place = {speaker: number for number, speaker in enumerate(shown)}
        spoken = min(total, max(spoke, default=-1) + 1)
        segments = await self.sessions.segments(session_id)
        return {
            "speakers": shown,
            "by_turn": [place.get(spoke.get(seq, ""), -1) for seq in range(spoken)],
            "segments": [
                segment_json(each, with_gist=visible.shows_derived)
                for each in segments
                if not each.closing and each.start < each.end
            ],
        }

    async def session_json(self, stored: StoredSession, visible: SpeechFilter, *, first: int | None) -> Json:
        """Return a session with some of its turns."""
        found = await self.turns(stored.id, stored.turn_count, first=first)
        shown = visible.shows_derived
        return {
            "session": stored.id,
            "total": stored.turn_count,
            "turns": [turn_json(visible.turn(turn)) for turn in found],
            "summary": (await self.sessions.summary(stored.id) or "") if shown else "",
            "chapters": [chapter_json(each) for each in await self._explainer.chapters(stored.id)] if shown else [],
            "hidden": visible.hidden,
            "notes": await self.notes_json(stored.id, visible),
            **await self.folds_json(stored.id, visible, stored.turn_count),
        }

    # -- what the model saw ------------------------------------------------------------------------------------------

    async def replies_json(self, session_id: SessionId) -> list[Json]:
        """Return the replies of a session whose prompts are stored, oldest first: numbers and tokens, no words."""
        return [_figures_json(each) for each in await self._explainer.replies(session_id)]

    async def reply_json(self, session_id: SessionId, turn: int, total: int, visible: SpeechFilter) -> Json | None:
        """Return what the model saw for the reply to `turn`; None if it is not stored."""
        explained = await self._explainer.explain(session_id, turn)
        if explained is None:
            return None
        spoken_turns = await self._turns.turns(session_id, Seq(0), Seq(total)) if visible.filters else ()
        turns: dict[int, Turn] = {each.seq: each for each in spoken_turns}
        return {
            **_figures_json(explained.sent[-1].figures),
            "calls": [
                {"at": sent.figures.at, "parts": [_part_json(part, visible, turns) for part in sent.parts]}
                for sent in explained.sent
            ],
            "sources": _sources_json(explained, visible),
        }


def hit_json(hit: RecallHit, visible: SpeechFilter) -> Json | None:
    """Return a search hit, or None if it may not be shown."""
    turns = [visible.turn(turn) for turn in hit.turns]
    if hit.seq is None or not turns:
        if not visible.shows_derived:
            return None
    elif all(turn.tombstone for turn in turns if turn.seq == hit.seq):
        return None
    return {
        "session": hit.session_id,
        "kind": hit.kind.value,
        "seq": hit.seq if hit.seq is not None else hit.seq_from,
        "at": hit.at,
        "who": hit.speaker if hit.seq is None or visible.shows_derived else "",
        "text": "" if turns else hit.text,
        "turns": [turn_json(turn) for turn in turns],
        "corrected": hit.superseded_by is not None,
    }


def _figures_json(figures: PromptFigures) -> Json:
    return {
        "turn": figures.answer_to,
        "at": figures.at,
        "mode": figures.mode,
        "cursor": figures.cursor,
        "revision": figures.summary_revision,
        "tokens": figures.tokens,
        "total_tokens": figures.total_tokens,
        "max_tokens": figures.max_input_tokens,
        "evicted": None if figures.evicted is None else list(figures.evicted),
    }


def _part_json(part: PayloadPart, visible: SpeechFilter, turns: Mapping[int, Turn]) -> Json:
    text = visible.prompt_part(part, turns)
    not_read = WITHHELD if visible.heard_all and visible.reads_everything else UNHEARD
    return {
        "kind": part.kind.value,
        "role": part.role,
        "from": part.seq_from,
        "to": part.seq_to,
        "tokens": part.tokens,
        "content": not_read if text is None else text,
        "withheld": text is None,
    }


def _sources_json(explained: Explanation, visible: SpeechFilter) -> list[Json]:
    """Return the facts behind the summary, each with its turns."""
    if not visible.shows_derived or PartKind.SUMMARY.value not in explained.sent[-1].figures.tokens:
        return []
    return [{"text": each.fact.text, "turns": list(each.fact.turns)} for each in explained.facts]
