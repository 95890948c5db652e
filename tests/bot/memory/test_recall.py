"""Memory search over a real index, with embedders that work, never answer, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bot.channel.port import RoomChannel
from bot.memory.recall import MOST_TURNS, Recall, RecallScope, RoomRecall
from bot.settings import RecallSettings
from bot.store.attendance import AttendanceStore, Presence
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.viewers import Viewer
from compaction.errors import EmbeddingError, StoreError
from compaction.memory.passage import Scope
from compaction.model import Seq, SessionId, TurnKind
from tests.bot.evening import CHANNEL, GUILD, Evening
from tests.bot.memory.recalled import recalled_evening
from tests.compaction.memory.recall_index_contract import (
    ELSEWHERE,
    EVENING,
    MORNING,
    SAID,
    T0,
    LetterEmbedder,
    note,
    turn,
)

CHATTER = ("Did you see the trailer?", "I keep dying on that jump.", "Yeah, okay.", "The left door is faster.", "Haha.")


class Dawdling(LetterEmbedder):
    """An embedder that never answers."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()
        return []


class Broken(LetterEmbedder):
    """An embedder that always fails."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Fail."""
        raise EmbeddingError("The key is wrong.", retryable=False)


@pytest.mark.covers("2.4")
async def test_what_was_said_is_found_word_for_word() -> None:
    """A result has the words, the speaker, the time and the neighbouring turns."""
    index, store = await recalled_evening(*SAID)
    (found, *_) = await Recall(index, store).search("closed lighthouse")
    assert found.text == "The lighthouse is closed until May."
    assert (found.speaker, found.at, found.seq) == ("Ada Lovelace", T0 + 8.0, 2)
    assert found.turns == SAID[2:4]
    assert found.relevance == pytest.approx(1.0)


async def test_what_is_in_view_crowds_nothing_out() -> None:
    """What was said long ago is found while everybody talks about it, however many turns in view have its words."""
    said = [turn(seq, CHATTER[seq % 5], "Bob") for seq in range(300)]
    said[7] = turn(7, "The dragon sleeps in the old mill behind the river, says the smith who sold us the horses.")
    said += [turn(seq, "The dragon, the dragon!", "Bob" if seq % 2 else "Cy") for seq in range(300, 400)]
    index, store = await recalled_evening(*said)
    found = await Recall(index, store).search("What do we know about the dragon?", Scope(in_view=(EVENING, Seq(300))))
    assert 7 in [each.seq for each in found]
    assert all(each.seq is not None and each.seq < 300 for each in found)


@pytest.mark.parametrize("embedder", [None, Dawdling(), Broken()])
async def test_full_text_serves_without_an_embedder(embedder: LetterEmbedder | None) -> None:
    """If the embedder is missing, never answers or fails, full-text search still finds the turn."""
    index, store = await recalled_evening(*SAID)
    found = await Recall(index, store, embedder=embedder).search("closed lighthouse", embed_within_s=0.0)
    assert found[0].seq == 2
    assert found[0].likeness is None


async def test_likeness_finds_what_no_word_does() -> None:
    """The embedding finds a turn that has no word in common with the query."""
    index, store = await recalled_evening(*SAID)
    embedder = LetterEmbedder()
    await index.embed(embedder)
    found = await Recall(index, store, embedder=embedder).search("xyzzy lighthouseisclosed")
    assert found != ()
    assert found[0].likeness is not None


class Comparing(LetterEmbedder):
    """An embedder that finds the words of the query in one text alone. `fails`: it never does."""

    def __init__(self, text: str, *, fails: bool = False) -> None:
        self._text = text
        self._fails = fails

    async def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one number for each text."""
        if self._fails:
            raise EmbeddingError("The model is broken.", retryable=False)
        return [[float(text == self._text)] for text in texts]


@pytest.mark.parametrize(("fails", "first"), [(False, 9), (True, 2)])
async def test_a_comparison_of_words_decides_the_order(*, fails: bool, first: int) -> None:
    """What has fewer terms of the query comes first if its words are the query's; without a comparison it does not."""
    other = "In the summer they keep what is closed for the sailors open."
    index, store = await recalled_evening(*SAID, turn(9, other, "Bob"))
    found = await Recall(index, store, embedder=Comparing(other, fails=fails)).search("closed lighthouse")
    assert found[0].seq == first


def channel_of(present: Sequence[Viewer] = (), *, shared: Collection[int] = ()) -> RoomChannel:
    """Return the channel of a room. `shared`: those that everybody present may enter."""
    return cast("RoomChannel", SimpleNamespace(viewers=lambda: present, shared_channels=lambda: frozenset(shared)))


async def test_a_room_finds_nothing_beyond_its_reach() -> None:
    """A room's search finds nothing outside its session, channel or server, whatever the query asks for."""
    index, store = await recalled_evening(turn(0, "Lisbon is lovely."))
    index.add(MORNING, turn(0, "Lisbon was rainy."), guild_id=1, channel_id=10)
    index.add(SessionId("next door"), turn(0, "Lisbon, hush, a secret."), guild_id=1, channel_id=11)
    index.add(ELSEWHERE, turn(0, "Lisbon, another server."), guild_id=2, channel_id=20)
    place = RecallScope(EVENING, 1, 10)

    async def reached(reach: str, session: SessionId | None = None) -> int:
        chosen = RecallSettings.model_validate({"scope": reach}).scope
        room = RoomRecall(Recall(index, store), place, reach=chosen, channel=channel_of(shared={11, 20}))
        return len(await room.memory_search("Lisbon", session=session))

    assert await reached("session") == 1
    assert await reached("channel") == 2
    assert await reached("server") == 3
    assert await reached("channel", MORNING) == 1
    assert await reached("channel", ELSEWHERE) == 0
    assert await reached("session", MORNING) == 0
    alone = RoomRecall(Recall(index, store), RecallScope(EVENING), reach="server")
    assert len(await alone.memory_search("Lisbon")) == 1


async def test_a_room_finds_what_everybody_present_could_have_heard() -> None:
    """A search of the server finds the words of another channel only while everybody present may enter that channel. It
    always finds those of its own channel, and never those of a session without a known channel.
    """
    index, store = await recalled_evening(turn(0, "Lisbon is lovely."))
    index.add(SessionId("next door"), turn(0, "Lisbon, hush, a secret."), guild_id=1, channel_id=11)
    index.add(SessionId("imported"), turn(0, "Lisbon, somewhere."), guild_id=1, channel_id=None)
    shared = {10, 11}
    room = RoomRecall(
        Recall(index, store), RecallScope(EVENING, 1, 10), reach="server", channel=channel_of(shared=shared)
    )
    for channels, found in (({10, 11}, 2), ({10}, 1), (set(), 1), ({11}, 2)):
        shared.clear()
        shared |= channels
        assert len(await room.memory_search("Lisbon")) == found
        assert len(await room.memory_search("Lisbon", session=SessionId("next door"))) == found - 1


async def test_nothing_of_who_opted_out_is_found() -> None:
    """Neither the search nor the numbers of turns bring a withheld person's words, alone or beside somebody else's, or
    as the bot or a note may repeat them; the others' own words are found, and all of it again after an opt-in.
    """
    mine, yours = turn(0, "Lisbon is lovely."), turn(1, "Lisbon is far away.")
    yours = replace(yours, parts=tuple(replace(part, speaker_id="bo", speaker="Bo") for part in yours.parts))
    told = replace(turn(2, "Lisbon is lovely, I hear."), kind=TurnKind.ASSISTANT)
    told = replace(told, parts=tuple(replace(part, speaker_id="assistant", speaker="Roomtone") for part in told.parts))
    (part,) = mine.parts
    index, store = await recalled_evening(mine, yours, told)
    index.add(EVENING, note("n", "A map of Lisbon"), guild_id=1, channel_id=10)
    out = {part.speaker_id}
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10), withheld=lambda _: frozenset(out))
    (hit,) = await room.memory_search("Lisbon")
    assert (hit.text, hit.turns) == ("Lisbon is far away.", (yours,))
    assert await room.recall_turns(0, 2) == (yours,)
    out.clear()
    assert len(await room.memory_search("Lisbon")) == 3
    assert len(await room.memory_search("Lisbon", speaker="Roomtone")) == 1
    assert await room.recall_turns(0, 2) == (mine, yours, told)


async def test_turns_are_recalled_by_their_numbers() -> None:
    """A range of turn numbers includes both ends and is bounded; an invalid range returns nothing."""
    index, store = await recalled_evening(*(turn(seq, f"Number {seq}.") for seq in range(MOST_TURNS + 20)))
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10))
    assert [each.seq for each in await room.recall_turns(3, 5)] == [3, 4, 5]
    assert len(await room.recall_turns(0, 10**12)) == MOST_TURNS
    assert await room.recall_turns(-1, 5) == ()
    assert await room.recall_turns(5, 4) == ()


async def test_a_turn_number_beyond_what_the_database_holds_is_no_turn(tmp_path: Path) -> None:
    """A model may write any number of digits, and a database refuses numbers of more than 64 bits."""
    async with Evening(tmp_path / "a.db") as recalled_evening:
        recall = Recall(
            SqlRecallIndex(recalled_evening.database, VectorStore(recalled_evening.database)), recalled_evening.store
        )
        for number in (2**63 - 1, 10**30):
            assert await recall.turns(recalled_evening.session_id, number, number) == ()


async def test_a_failing_store_is_told() -> None:
    """If the store fails, the search raises its error and cancels the running embedding."""
    index, store = await recalled_evening(*SAID)

    async def refuse(terms: Sequence[str], scope: Scope) -> None:
        raise StoreError("The disk is gone.")

    index.count = refuse  # type: ignore[assignment,method-assign]
    with pytest.raises(StoreError):
        await Recall(index, store, embedder=Dawdling()).search("lighthouse")
    assert [
        task for task in asyncio.all_tasks() if task.get_name().startswith("recall") and not task.cancelling()
    ] == []


HERE = frozenset({CHANNEL})


def viewer(name: str, *, opened: frozenset[int] = frozenset()) -> Viewer:
    """Return somebody in the channel."""
    return Viewer(f"id-{name}", GUILD, HERE, opened, CHANNEL)


async def test_a_quote_of_an_earlier_session_takes_that_all_present_were_there(tmp_path: Path) -> None:
    """Of the session that goes on everything is told: who is there can catch up with it."""
    place = tmp_path / "roomtone.db"
    async with Evening(place, name="first") as first:
        came = [Presence(f"id-{name}", first.clock.now(), joined=True) for name in ("Ada", "Bob")]
        await AttendanceStore(first.database).add(first.session_id, came)
        await first.say("The lantern is under the stairs.", "Ada")
        first.clock.advance(4.0)
        left = Presence("id-Bob", first.clock.now(), joined=False)
        await AttendanceStore(first.database).add(first.session_id, [left])
        await first.say("The lantern for Bob costs forty.", "Ada")
        await first.timeline.end()
    async with Evening(place, name="second") as second:
        await second.say("We need a lantern today.", "Ada")
        present: list[Viewer] = []
        room = RoomRecall(
            Recall(SqlRecallIndex(second.database, VectorStore(second.database)), second.store),
            RecallScope(SessionId("second"), GUILD, CHANNEL),
            channel=channel_of(present),
            attendance=AttendanceStore(second.database),
        )

        async def found() -> str:
            hits = await room.memory_search("lantern")
            return " ".join(turn.text for hit in hits for turn in hit.turns)

        for people, stairs, forty in (
            ([viewer("Ada")], True, True),
            ([viewer("Ada"), viewer("Bob")], True, False),
            ([viewer("Ada"), viewer("Cy")], False, False),
            ([viewer("Ada"), viewer("Cy", opened=HERE)], True, True),
            ([], False, False),
        ):
            present[:] = people
            told = await found()
            assert ("stairs" in told, "forty" in told) == (stairs, forty), people
            assert "today" in told
