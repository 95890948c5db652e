"""Contract tests for every `RecallIndex`. A test class that provides an index inherits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from compaction.language.terms import terms
from compaction.memory.passage import (
    ALWAYS,
    PassageId,
    PassageKind,
    PassageSource,
    Readable,
    RecallIndex,
    Scope,
    source_text,
)
from compaction.model import Fact, FactKind, Note, NoteId, Segment, SegmentId, Seq, SessionId, Turn, TurnKind, TurnPart

EVENING, MORNING, ELSEWHERE = SessionId("evening"), SessionId("the morning; after"), SessionId("elsewhere")
PLACES = {EVENING: (1, 10), MORNING: (1, 11), ELSEWHERE: (2, 20)}
T0 = 1_760_000_000.0
IDS = {"Ada Lovelace": "11", "Bob": "22", "Čapek": "33"}


def turn(seq: int, text: str, speaker: str = "Ada Lovelace", *, at: float | None = None) -> Turn:
    """Return a turn in which somebody says something. A turn takes four seconds."""
    started = T0 + 4.0 * seq if at is None else at
    part = TurnPart(IDS.get(speaker, speaker), speaker, text)
    return Turn(Seq(seq), TurnKind.SPEECH, started, started + 3.0, (part,))


def note(name: str, what: str, at: float = T0 + 30.0) -> Note:
    """Return a note about something on Bob's screen."""
    return Note(NoteId(name), at, "Bob", what)


def segment(start: int, end: int, gist: str, *facts: str) -> Segment:
    """A folded batch."""
    kept = tuple(Fact((Seq(start),), text, FactKind.DECISION, speaker="Bob", at=T0 + start) for text in facts)
    return Segment(
        SegmentId(f"evening:{start}"), EVENING, Seq(start), Seq(end), T0, T0 + 40.0, gist, kept, (), "extractive"
    )


class IndexedRoom(Protocol):
    """A room whose turns, notes and segments can be added to an index."""

    @property
    def index(self) -> RecallIndex:
        """Return the index."""

    async def add(self, session_id: SessionId, *sources: PassageSource) -> None:
        """Store turns, notes and segments of a session."""

    async def forget(self, session_id: SessionId, seq: int) -> None:
        """Forget what was said in a turn."""

    async def embed(self) -> None:
        """Embed every passage that has no vector yet, with `LetterEmbedder`."""


# Whom a name finds, by how many turns.
SPEAKERS = {
    "Ada": 2,
    "lovelace": 2,
    "Ada Lovelace": 2,
    "ada bob": 0,
    "22": 3,
    "capek": 1,
    "...": 0,
    "": 0,
}
QUERIES = (
    '"', "a OR b", "own:lisbon", "NEAR(lisbon 2)", "lisbon*", "(", "^lisbon", "lisbon AND", "-lisbon",
    "{own} : x", "'; DROP TABLE turns; --", "%", "\x00", "\ud83d", "😀🎉", "lisbon " * 5_000, "x" * 100_000,
    "", "   ", "\n",
)  # fmt: skip


class LetterEmbedder:
    """An embedder for which texts with the same letters are similar."""

    model = "letters"

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return for each text the unit vector of its letter counts."""
        counted = [[1e-3 + text.casefold().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return [[value / sum(each * each for each in row) ** 0.5 for value in row] for row in counted]


SAID = (
    turn(0, "Shall we visit Lisbon in the spring?"),
    turn(1, "I would rather see the lighthouse.", "Bob"),
    turn(2, "The lighthouse is closed until May."),
    turn(3, "Then Lisbon it is, I booked two rooms.", "Bob"),
    turn(4, "Žluťoučký kůň, as we say.", "Čapek"),
    turn(5, "明天下午三点在东京见面", "Bob"),
)


def counting(asked: Sequence[str]) -> dict[str, float]:
    """Return terms that count the same."""
    return dict.fromkeys(asked[:24], 1.0)


class _Searches:
    async def _texts(self, room: IndexedRoom, ids: Sequence[PassageId]) -> list[str]:
        return [source_text(each.source) for each in await room.index.passages(ids, Readable())]

    async def _found(self, room: IndexedRoom, query: str, scope: Scope = Scope()) -> list[str]:  # noqa: B008 - a value
        return await self._texts(room, await room.index.full_text(counting(terms(query)), scope, limit=50))


class RecallIndexContract(_Searches):
    """A search finds what was said, and only within its scope. A subclass provides the `room` fixture."""

    async def test_a_turn_is_found_by_its_words_and_those_beside_it(self, room: IndexedRoom) -> None:
        """The turn with most words of the query comes first. Its neighbours are found too, and other turns are not."""
        await room.add(EVENING, *SAID)
        found = await self._found(room, "the closed lighthouse")
        assert found[0] == "The lighthouse is closed until May."
        assert set(found) == {source_text(each) for each in SAID[:4]}

    async def test_of_two_turns_the_one_beside_the_other_words_comes_first(self, room: IndexedRoom) -> None:
        """Words of a neighbour that was found too count."""
        apart = [turn(8, "Lisbon is lovely."), turn(20, "The rooms are booked."), turn(21, "Lisbon is sunny.")]
        await room.add(EVENING, *apart)
        assert (await self._found(room, "lisbon rooms"))[-1] == source_text(apart[0])

    async def test_words_are_found_in_other_forms_and_scripts(self, room: IndexedRoom) -> None:
        """Endings, accents and case do not matter. Text in a script without spaces is found by parts of it."""
        await room.add(EVENING, *SAID)
        assert (await self._found(room, "VISITING LISBON"))[0].startswith("Shall we visit")
        assert (await self._found(room, "zlutoucky kun"))[0].startswith("Žlu")
        assert (await self._found(room, "东京"))[0].startswith("明天")

    async def test_the_last_turn_is_found_at_once(self, room: IndexedRoom) -> None:
        """A turn is found before the next turn exists."""
        await room.add(EVENING, SAID[0])
        assert await self._found(room, "Lisbon") == [source_text(SAID[0])]

    async def test_notes_and_segments_are_found(self, room: IndexedRoom) -> None:
        """Notes about screens and segments of folded batches are found."""
        kept = segment(0, 4, "They settle on Lisbon.", "We fly on Friday.")
        await room.add(EVENING, *SAID, note("n1", "A map of the Algarve"), kept)
        assert await self._found(room, "algarve") == ["A map of the Algarve"]
        assert await self._found(room, "fly friday") == [source_text(kept)]
        only = Scope(kinds=frozenset({PassageKind.SEGMENT}))
        assert await self._found(room, "lisbon lighthouse", only) == [source_text(kept)]
        assert await self._found(room, "lisbon", Scope(kinds=frozenset())) == []

    async def test_a_speaker_filters(self, room: IndexedRoom) -> None:
        """The speaker filter takes a whole name, a word of a name in any case, or an id. A name without letters matches
        nobody.
        """
        await room.add(EVENING, *SAID)
        for speaker, count in SPEAKERS.items():
            scope = Scope(speaker=speaker)
            assert len(await room.index.newest(scope, limit=50)) == count, speaker
            found = await room.index.full_text(counting(("lisbon", "lighthous")), scope, limit=50)
            assert len(found) <= count, speaker

    async def test_time_filters(self, room: IndexedRoom) -> None:
        """The time range includes `since` and excludes `until`. An empty range has no results."""
        await room.add(EVENING, *SAID)
        assert await self._found(room, "lisbon", Scope(since=T0 + 12.0)) == [source_text(SAID[3]), source_text(SAID[4])]
        assert await self._found(room, "lisbon", Scope(until=T0 + 4.0)) == [source_text(SAID[0])]
        assert await self._found(room, "lisbon", Scope(since=T0 + 9.0, until=T0 + 9.0)) == []
        assert await self._found(room, "lisbon", Scope(since=T0 + 9e9)) == []

    async def test_places_filter(self, room: IndexedRoom) -> None:
        """A search in a guild, a channel or a session finds only what was said there."""
        await room.add(EVENING, SAID[0])
        await room.add(MORNING, turn(0, "Lisbon was lovely."))
        await room.add(ELSEWHERE, turn(0, "Lisbon is none of your business."))
        assert len(await self._found(room, "lisbon")) == 3
        assert len(await self._found(room, "lisbon", Scope(guild_id=1))) == 2
        assert await self._found(room, "lisbon", Scope(guild_id=2)) == ["Lisbon is none of your business."]
        assert await self._found(room, "lisbon", Scope(guild_id=1, channels=frozenset({11}))) == ["Lisbon was lovely."]
        assert await self._found(room, "lisbon", Scope(session_id=MORNING)) == ["Lisbon was lovely."]
        assert await self._found(room, "lisbon", Scope(guild_id=1, session_id=ELSEWHERE)) == []

    async def test_what_is_in_view_is_not_found(self, room: IndexedRoom) -> None:
        """Turns of the window are not found, but turns of another session with the same numbers are."""
        await room.add(EVENING, *SAID)
        await room.add(MORNING, turn(3, "Lisbon was lovely."))
        found = await self._found(room, "lisbon", Scope(in_view=(EVENING, Seq(3))))
        assert set(found) == {"Lisbon was lovely.", source_text(SAID[0]), source_text(SAID[1])}

    async def test_newest_are_the_last_said(self, room: IndexedRoom) -> None:
        """The newest passages come first."""
        await room.add(EVENING, *SAID, turn(6, "Actually, the rooms in Lisbon moved to June."))
        assert (await self._texts(room, await room.index.newest(Scope(), limit=2)))[1] == source_text(SAID[5])

    async def test_counts_tell_how_common_a_term_is(self, room: IndexedRoom) -> None:
        """A term is counted in the passages of the scope that have it. A term that nobody said is absent."""
        await room.add(EVENING, *SAID)
        counts = await room.index.count(["lisbon", "zebra"], Scope())
        assert (counts.passages, counts.total) == ({"lisbon": 2}, len(SAID))
        counts = await room.index.count(["lisbon"], Scope(since=T0 + 12.0, speaker="Bob"))
        assert (counts.passages, counts.total) == ({"lisbon": 1}, 2)

    async def test_only_what_may_be_read_is_found(self, room: IndexedRoom) -> None:
        """A stretch of time of a session holds all of a passage, and no segment. While somebody withholds their words,
        only turns of others are found. What surrounds a turn is judged alike.
        """
        await room.add(EVENING, *SAID, note("n1", "A map of Lisbon"), segment(0, 4, "They settle on Lisbon."))
        heard = Readable({EVENING: ((T0, T0 + 7.0), (T0 + 12.0, T0 + 16.0))})
        assert set(await self._found(room, "lisbon", Scope(readable=heard))) == {
            source_text(each) for each in (*SAID[:2], SAID[3])
        }
        assert await self._found(room, "closed", Scope(readable=heard)) == []
        assert (await room.index.count(["lisbon", "lighthous"], Scope(readable=heard))).passages == {
            "lisbon": 2,
            "lighthous": 1,
        }
        assert len(await room.index.newest(Scope(readable=heard), limit=50)) == 3
        ids = await room.index.find_turns(EVENING, [Seq(1), Seq(2), Seq(3)])
        assert [each.around for each in await room.index.passages(ids, heard)] == [(*SAID[:2], SAID[3]), (SAID[3],)]
        others = Scope(readable=Readable(withheld=frozenset({"22"})))
        assert await self._found(room, "lisbon lighthouse", others) == [source_text(SAID[2]), source_text(SAID[0])]
        whole = Scope(readable=Readable({EVENING: (ALWAYS,)}))
        assert len(await self._found(room, "lisbon", whole)) == 7
        assert await self._found(room, "lisbon", Scope(readable=Readable({MORNING: (ALWAYS,)}))) == []

    async def test_a_passage_brings_its_turn_and_those_about_it(self, room: IndexedRoom) -> None:
        """A passage has its turn word for word, the turn before it and two turns after it. Passages come in the
        requested order, without unknown ones.
        """
        await room.add(EVENING, *SAID)
        first, third = await room.index.find_turns(EVENING, [Seq(0), Seq(2), Seq(99)])
        passages = await room.index.passages([third, first, third], Readable())
        assert [each.source for each in passages] == [SAID[2], SAID[0]]
        assert passages[0].around == SAID[1:5]
        assert set(terms("lighthouse")) <= passages[0].own_terms
        assert "room" in passages[0].nearby_terms
        assert passages[0].at == SAID[2].started_at

    async def test_whatever_is_asked_is_only_words(self, room: IndexedRoom) -> None:
        """Search syntax, SQL, emoji and pages of text are searched as plain words and cause no error."""
        await room.add(EVENING, *SAID)
        for query in QUERIES:
            found = await self._found(room, query)
            assert set(found) <= {source_text(each) for each in SAID}, query
            assert ("lisbon" in terms(query)) == any("Lisbon" in text for text in found), query
            assert await room.index.newest(Scope(speaker=query or "x"), limit=5) is not None
        assert len(await self._found(room, "lisbon")) == 5


class SimilarityContract(_Searches):
    """A search by meaning ranks what was embedded, within its scope. A subclass provides the `room` fixture."""

    async def test_likeness_ranks_by_meaning(self, room: IndexedRoom) -> None:
        """The passage most similar to the vector comes first with its cosine. Filters apply, and another embedding
        model has no results.
        """
        await room.add(EVENING, *SAID[:4])
        await room.add(ELSEWHERE, turn(0, "The lighthouse is closed until May."))
        await room.embed()
        (vector,) = await LetterEmbedder().embed(["Ada Lovelace: The lighthouse is closed until May."])
        found = await room.index.find_similar(vector, Scope(guild_id=1), model="letters", limit=2)
        assert await self._texts(room, [found[0][0]]) == ["The lighthouse is closed until May."]
        assert found[0][1] == pytest.approx(1.0, abs=0.01)
        assert found[1][1] < found[0][1]
        assert len(await room.index.find_similar(vector, Scope(), model="letters", limit=50)) == 5
        only = Scope(guild_id=1, speaker="Bob", since=T0 + 5.0)
        assert len(await room.index.find_similar(vector, only, model="letters", limit=50)) == 1
        nobody = Scope(speaker="...")
        assert await room.index.find_similar(vector, nobody, model="letters", limit=50) == ()
        in_view = Scope(session_id=EVENING, in_view=(EVENING, Seq(1)))
        assert len(await room.index.find_similar(vector, in_view, model="letters", limit=50)) == 1
        assert await room.index.find_similar(vector, Scope(), model="other", limit=5) == ()

    async def test_what_is_forgotten_is_found_nowhere(self, room: IndexedRoom) -> None:
        """A forgotten turn is not found by its words, beside its neighbours or by similarity."""
        await room.add(EVENING, *SAID)
        await room.embed()
        await room.forget(EVENING, 2)
        assert await self._found(room, "closed") == []
        (vector,) = await LetterEmbedder().embed(["The lighthouse is closed until May."])
        alike = await room.index.find_similar(vector, Scope(), model="letters", limit=50)
        assert "The lighthouse is closed until May." not in await self._texts(room, [each for each, _ in alike])
        assert await room.index.find_turns(EVENING, [Seq(2)]) == ()
