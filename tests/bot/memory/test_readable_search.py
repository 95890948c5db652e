"""A search finds the same, in the same order and with the same figures, as a search of a store that never had what its
viewers may not read: what was said while they were away, what was forgotten, what people withhold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import insert, update

from bot.channel.port import RoomChannel
from bot.memory.access_log import AccessLog
from bot.memory.personal_recall import PersonalRecall
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.memory.session_views import SessionViews
from bot.store.attendance import AttendanceStore, Presence
from bot.store.database import Database, open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.servers import OptOutStore
from bot.store.sessions import Sessions
from bot.store.tables import corrections, turns
from bot.store.turns import SqlTurnStore
from bot.viewers import Viewer, read_by_all
from compaction.memory.passage import ALWAYS, PassageId, Readable, heard_during
from compaction.memory.recall import RecallHit
from compaction.model import (
    CompactionState,
    Fact,
    FactKind,
    Note,
    NoteId,
    Segment,
    SegmentId,
    Seq,
    SessionId,
    Turn,
    TurnKind,
    TurnPart,
)
from compaction.ports import Landing
from tests.bot.conftest import Place
from tests.compaction.memory.recall_index_contract import LetterEmbedder
from tests.fakes.clock import FakeClock

GUILD, CHANNELS = 1, (10, 11, 12)
PEOPLE = {"11": "Ada", "22": "Bob", "33": "Chloe", "44": "Dmitri"}
BOT = "99"
SESSIONS = {SessionId("first"): 10, SessionId("second"): 11, SessionId("third"): 12}
WORDS = ["lighthouse", "lantern", "harbour", "ferry", "lisbon", "leukaemia", "ticket", "picnic", "guitar", "cellar"]
T0, TURN_S, LENGTH = 1_760_000_000.0, 10.0, 14


@dataclass
class History:
    """What was said, shown and folded in some sessions, and who was there. `forgotten`, `corrected`: turns."""

    rng: Random
    turns: dict[SessionId, list[Turn]] = field(default_factory=dict)
    notes: dict[SessionId, list[Note]] = field(default_factory=dict)
    facts: dict[SessionId, list[Fact]] = field(default_factory=dict)
    came: dict[SessionId, list[Presence]] = field(default_factory=dict)
    forgotten: set[tuple[SessionId, int]] = field(default_factory=set)
    corrected: set[tuple[SessionId, int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        rng = self.rng
        for number, session_id in enumerate(SESSIONS):
            start = T0 + 10_000.0 * number
            self.turns[session_id] = [self._turn(seq, start + TURN_S * seq) for seq in range(LENGTH)]
            self.notes[session_id] = [
                Note(NoteId(f"n{seen}"), start + rng.uniform(0, TURN_S * LENGTH), "Bob", self._words(), person_id="22")
                for seen in range(2)
            ]
            cited = [tuple(map(Seq, sorted(rng.sample(range(LENGTH), count)))) for count in (1, 1, 2)]
            # Forgetting a turn blanks the facts that cite it.
            gone = rng.randrange(LENGTH)
            self.facts[session_id] = [
                Fact(each, self._words(), FactKind.LASTING, speaker="Ada") for each in cited if gone not in each
            ]
            stays = [
                Presence(person, start + at, joined=step % 2 == 0)
                for person in PEOPLE
                for step, at in enumerate(sorted(rng.uniform(-9, TURN_S * LENGTH) for _ in range(rng.randint(1, 4))))
            ]
            self.came[session_id] = sorted(stays, key=lambda each: each.at)
            self.forgotten |= {(session_id, gone)}
            old, new = sorted(rng.sample(range(LENGTH), 2))
            self.corrected |= {(session_id, old, new)}

    def _words(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=self.rng.randint(4, 8)))

    def _turn(self, seq: int, at: float) -> Turn:
        end = at + self.rng.uniform(0.0, TURN_S)
        if self.rng.random() < 0.15:
            return Turn(Seq(seq), TurnKind.ASSISTANT, at, end, (TurnPart(BOT, "Roomtone", self._words()),))
        asks = "?" if self.rng.random() < 0.3 else "."
        spoke = self.rng.sample(sorted(PEOPLE), self.rng.choice([1, 1, 1, 2]))
        parts = tuple(TurnPart(each, PEOPLE[each], self._words() + asks) for each in spoke)
        return Turn(Seq(seq), TurnKind.SPEECH, at, end, parts)

    def without_unread(self, readable: Readable) -> History:
        """Return the history as it would be if nothing had been said that may not be read."""
        left = deepcopy(self)
        for session_id, said in self.turns.items():
            unread = {
                turn.seq
                for turn in said
                if (session_id, turn.seq) in self.forgotten or not readable.reads(session_id, turn)
            }
            left.turns[session_id] = [
                replace(turn, parts=(), tombstone=True) if turn.seq in unread else turn for turn in said
            ]
            left.notes[session_id] = [each for each in self.notes[session_id] if readable.reads(session_id, each)]
            left.facts[session_id] = [
                each for each in self.facts[session_id] if self._reads_fact(readable, session_id, each, unread)
            ]
            left.corrected = {each for each in left.corrected if each[0] != session_id or unread.isdisjoint(each[1:])}
        left.forgotten = set()
        return left

    def _reads_fact(self, readable: Readable, session_id: SessionId, fact: Fact, unread: set[Seq]) -> bool:
        times = [heard_during(self.turns[session_id][seq]) for seq in fact.turns]
        whole = min(since for since, _ in times), max(until for _, until in times)
        return not readable.withheld and unread.isdisjoint(fact.turns) and readable.covers(session_id, *whole)


class WordEmbedder(LetterEmbedder):
    """An embedder that compares words by their letters, too."""

    async def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return for each word of the query the share of its letters that the most similar word of a text has."""
        return [
            [
                max(len(set(asked) & set(said)) / len(set(asked)) for said in (text.split() or [""]))
                for asked in query.split()
            ]
            for text in texts
        ]


class Memory:
    """A store with a history, and what searches it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        clock = FakeClock()
        self.store = SqlTurnStore(database, clock)
        self.sessions = Sessions(database, clock)
        self.attendance = AttendanceStore(database)
        self.vectors = VectorStore(database)
        self.recall = Recall(SqlRecallIndex(database, self.vectors), self.store, embedder=WordEmbedder())

    async def fill(self, history: History, withheld: frozenset[str]) -> None:
        """Store a history, of which the words of these people are withheld. What is forgotten is stored first."""
        for person in withheld:
            await OptOutStore(self._database, FakeClock()).put(GUILD, int(person), out=True)
        for session_id, channel_id in SESSIONS.items():
            await self.sessions.open(guild_id=GUILD, channel_id=channel_id, resume_within_s=0.0, session_id=session_id)
            await self.attendance.add(session_id, history.came[session_id])
            for turn in history.turns[session_id]:
                await self.store.append_turn(session_id, turn)
            for note in history.notes[session_id]:
                await self.store.add_note(session_id, note)
            for seq in (seq for about, seq in history.forgotten if about == session_id):
                of_turn = (turns.c.session_id == session_id) & (turns.c.seq == seq)
                async with self._database.writing() as connection:
                    await connection.execute(update(turns).where(of_turn).values(parts="[]", tombstone=True))
            folded = Segment(
                SegmentId(f"{session_id}:0"), session_id, Seq(0), Seq(LENGTH), T0, T0 + 9e4,
                "They speak of leukaemia and of the lighthouse.", tuple(history.facts[session_id]), (), "fold.v1",
            )  # fmt: skip
            state = CompactionState(cursor=Seq(LENGTH), revision=1)
            assert await self.store.land(Landing(session_id, Seq(0), 0, folded, state))
            async with self._database.writing() as connection:
                for about, old, new in sorted(history.corrected):
                    if about == session_id:
                        values = {"session_id": about, "old_seq": old, "new_seq": new}
                        await connection.execute(insert(corrections).values(values))
        await self.embed()

    async def embed(self) -> None:
        """Embed what was said."""
        embedder = LetterEmbedder()
        while waiting := await self.vectors.unembedded(limit=50):
            made = {each: None if text is None else (await embedder.embed([text]))[0] for each, text in waiting}
            await self.vectors.store(embedder.model, made)

    async def found(
        self, words: str, viewers: Sequence[Viewer], withheld: frozenset[str], **narrowed: Any
    ) -> tuple[RecallHit, ...]:
        """Return what one person finds by /recall, or what is quoted to several."""
        if len(viewers) == 1:

            async def withheld_on(_: int) -> frozenset[str]:
                return withheld

            views = SessionViews(self.sessions, self.store, withheld=withheld_on)
            uncounted = cast("AccessLog", Uncounted())
            personal = PersonalRecall(self.recall, views, self.attendance, reach="server", accesses=uncounted)
            hits = await personal.search(words, viewers[0], nearest=(), **narrowed)
        else:
            channel = SimpleNamespace(viewers=lambda: viewers, shared_channels=lambda: frozenset(CHANNELS))
            room = RoomRecall(
                self.recall,
                RecallScope(SessionId("third"), GUILD, 12),
                reach="server",
                channel=cast("RoomChannel", channel),
                withheld=lambda _: withheld,
                attendance=self.attendance,
            )
            hits = await room.memory_search(words, **narrowed)
        # Only the order of the numbers of passages is the same.
        return tuple(replace(hit, passage_id=PassageId(0)) for hit in hits)


class Uncounted:
    """Counts nothing of what is shown."""

    def note_hits(self, _: Sequence[RecallHit]) -> None:
        """Do nothing."""


def readable_by(
    viewers: Sequence[Viewer], sessions: Mapping[SessionId, Any], withheld: frozenset[str], own: str
) -> Readable:
    """Return what these people may read, as `bot.viewers` says."""
    found = {each: read_by_all(viewers, session) for each, session in sessions.items()}
    if len(viewers) > 1:
        found[SessionId(own)] = (ALWAYS,)
    return Readable(found, withheld)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
async def test_what_may_not_be_read_leaves_no_trace(place: Place, tmp_path: Path, seed: int) -> None:
    """Random people were there at random times, some forgot, some withhold their words; one reads alone, or two hear it
    together, of whom one may read the whole history of a channel.
    """
    rng = Random(seed)
    history, seen = History(rng), 0
    viewers = [
        Viewer(person, GUILD, frozenset(CHANNELS), frozenset({10, 11}) if rng.random() < 0.3 else frozenset(), 10)
        for person in rng.sample(sorted(PEOPLE), 1 + seed % 2)
    ]
    withheld = frozenset(rng.sample(sorted(PEOPLE), rng.choice([0, 0, 1])))
    async with AsyncExitStack() as stack:
        whole = Memory(await stack.enter_async_context(open_database(place, synchronous="normal")))
        await whole.fill(history, withheld)
        sessions = await whole.attendance.of(list(SESSIONS), [each.person_id for each in viewers])
        readable = readable_by(viewers, sessions, withheld, "third")
        never = Memory(await stack.enter_async_context(open_database(tmp_path / "never.db", synchronous="normal")))
        await never.fill(history.without_unread(readable), withheld)
        for _ in range(25):
            words = " ".join(rng.sample(WORDS, rng.randint(1, 3)))
            narrowed = {"speaker": rng.choice([None, None, "Bob"]), "since": rng.choice([None, T0 + 10_050.0])}
            there = await whole.found(words, viewers, withheld, **narrowed)
            # Not in the assertion: pytest would take minutes to tell two lists of hits apart.
            same = there == await never.found(words, viewers, withheld, **narrowed)
            assert same, (words, narrowed)
            seen += len(there)
    assert seen
