"""The memory tools, called with correct, wrong and invented arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import cast

from bot.brain.tools.memory import NOTHING, memory_tools
from bot.brain.tools.tool import MAX_CHARS, RoomTool
from bot.memory.access_log import AccessLog
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.store.tiers import TierStore
from compaction.model import SessionId, Turn
from rehearsal.roomtone.evenings.virtual_time import EPOCH_S
from tests.bot.memory.recalled import recalled_evening as evening
from tests.compaction.memory.recall_index_contract import EVENING, MORNING, SAID, T0, note, segment, turn
from tests.compaction.rooms import MemoryRoom
from tests.fakes.clock import FakeClock
from tests.fakes.labelling_summariser import LabellingSummariser


async def tools(*turns: Turn) -> tuple[RoomTool, RoomTool]:
    """Return the search and recall tools of a room whose memory has these turns, a turn of another session, a screen
    note and a segment.
    """
    index, store = await evening(*turns)
    index.add(MORNING, turn(0, "Lisbon was lovely."), guild_id=1, channel_id=10)
    index.add(EVENING, note("n", "A map of the Algarve"), guild_id=1, channel_id=10)
    index.add(EVENING, segment(0, 4, "They settle on Porto."), guild_id=1, channel_id=10)
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10))
    search, recall = memory_tools(room, zone=UTC, clock=FakeClock(T0 + 600.0))
    return search, recall


async def test_a_search_tells_who_said_what_when() -> None:
    """A search result has speaker, time, turn number and the neighbouring turns that are no results themselves, and
    names the session if it is another one.
    """
    search, _ = await tools(*SAID)
    answer = (await search.call({"query": "closed lighthouse"})).text
    assert answer.startswith(
        "(turn 2.)\n[08:53] Ada Lovelace: The lighthouse is closed until May.\n[08:53] Bob: Then Lisbon it is,"
    )
    assert "(2025-10-09, session the morning; after, turn 0.)" in (await search.call({"query": "lovely Lisbon"})).text
    assert "(seen on Bob's screen)\n[08:53] A map of the Algarve" in (await search.call({"query": "algarve"})).text
    assert "(summary of turns 0 to 3)\nThey settle on Porto." in (await search.call({"query": "porto"})).text


async def test_the_question_itself_is_not_found() -> None:
    """It has all the words of the search, and tells nothing; neither does it stand beside what was found."""
    asked = turn(4, "Roomtone, when is the lighthouse closed until?")
    index, store = await evening(*SAID[:4], asked)
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10))
    search, _ = memory_tools(room, zone=UTC, clock=FakeClock(T0 + 600.0), question=asked.seq)
    answer = (await search.call({"query": "lighthouse closed until", "limit": 1})).text
    assert answer.startswith("(turn 2.)\n[08:53] Ada Lovelace: The lighthouse is closed until May.")
    assert "Roomtone" not in (await search.call({"query": "lighthouse closed until"})).text
    assert "Roomtone" not in (await search.call({"query": str(SAID[3].text)})).text


async def test_an_old_value_says_that_it_is_old() -> None:
    """An outdated turn says which turn corrects it, and the correction says which turn it corrects."""
    index, store = await evening(turn(0, "The gate code is 4411."), turn(9, "The gate code is 7702 now."))
    index.correct(EVENING, 0, 9)
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10))
    search, _ = memory_tools(room, zone=UTC, clock=FakeClock(T0 + 600.0))
    first, second = ((await search.call({"query": "gate code"})).text).split("\n\n")
    assert "This corrects turn 0." in first
    assert "NO LONGER SO: corrected by turn 9." in second


async def test_a_search_begins_with_what_was_noted() -> None:
    """Of a stretch of time all of it. Nothing is noted of one person's words, or in another session."""
    async with MemoryRoom(summariser=LabellingSummariser()) as memory:
        await memory.say("My kitten is called Sunniva.")
        await memory.begin_fold()
        await memory.timeline.settle()
        index, store = await evening(*SAID, session_id=memory.session_id)
        room = RoomRecall(Recall(index, store), RecallScope(memory.session_id, 1, 10))
        search, _ = memory_tools(room, zone=UTC, clock=FakeClock(EPOCH_S + 600.0), timeline=memory.timeline)

        async def asked(query: str, **given: object) -> str:
            return (await search.call({"query": query, **given})).text

        noted, quoted = (await asked("kitten lighthouse")).split("\n\n")[:2]
        assert "My kitten is called Sunniva." in noted
        assert quoted.startswith("(turn 1.)")
        stretch = {"since": "10 minutes ago", "until": "8 minutes ago"}
        assert "My kitten is called Sunniva." in await asked("lighthouse", **stretch)
        for given in ({}, {"speaker": "Bob", **stretch}, {"session": "another", **stretch}, {"since": "2 minutes ago"}):
            assert "Sunniva" not in await asked("lighthouse", **given)


async def test_filters_are_understood_as_models_write_them() -> None:
    """Filters are accepted as models write them: times in words, numbers as text, and names in any case."""
    search, _ = await tools(*SAID)
    only_bob = (await search.call({"query": "Lisbon", "speaker": "bob", "since": "", "limit": 1})).text
    assert only_bob.startswith("(turn 3.)")
    assert (await search.call({"query": "Lisbon", "since": "5 minutes ago"})).text == NOTHING
    assert (await search.call({"query": "Lisbon", "session": MORNING, "limit": 20})).text != NOTHING
    assert "is not a time I know" in (await search.call({"query": "Lisbon", "since": "when the cow came"})).text


async def test_turns_are_told_word_for_word() -> None:
    """Turns are returned word for word, including both ends of the range. An invalid range is explained."""
    _, recall = await tools(*SAID)
    assert (await recall.call({"from": 1, "to": 2})).text == (
        "turn 1 [08:53] Bob: I would rather see the lighthouse.\n\n"
        "turn 2 [08:53] Ada Lovelace: The lighthouse is closed until May."
    )
    assert "no turns 70 to 80" in (await recall.call({"from": 70, "to": 80})).text
    assert "from 12 to 18" in (await recall.call({"from": 5, "to": 1})).text


async def test_an_answer_is_bounded() -> None:
    """An output is limited in length and says how much was left out."""
    search, recall = await tools(*(turn(seq, f"Lisbon {seq} " + "is far away " * 60) for seq in range(200)))
    for answer in (
        (await search.call({"query": "Lisbon", "limit": 20})).text,
        (await recall.call({"from": 0, "to": 199})).text,
    ):
        assert len(answer) < MAX_CHARS + 100
        assert "more left out" in answer


class CountedReads:
    """The part of `TierStore` that counts reads: here it keeps their ranges of turns."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    async def count_accesses(self, found: Mapping[SessionId, Iterable[tuple[int, int]]], at: float) -> None:
        """See `TierStore.count_accesses`."""
        self.ranges += [each for one in found.values() for each in one]


async def test_only_what_is_told_counts_as_read() -> None:
    """Neither the question, nor what no longer fits into the answer, keeps its segment from growing cold."""
    said = [turn(seq, f"Lisbon {seq} " + "is far away " * 150) for seq in range(8)]
    asked = turn(8, "Roomtone, how far is Lisbon?")
    index, store = await evening(*said, asked)
    counted = CountedReads()
    accesses = AccessLog(cast("TierStore", counted), FakeClock())
    room = RoomRecall(Recall(index, store), RecallScope(EVENING, 1, 10), accesses=accesses)
    search, recall = memory_tools(room, zone=UTC, clock=FakeClock(T0 + 600.0), question=asked.seq)

    answer = (await search.call({"query": "Lisbon"})).text
    await accesses.write()
    told = [int(seq) for seq in re.findall(r"^\(turn (\d+)\.", answer, re.MULTILINE)]
    assert "more left out" in answer
    assert counted.ranges == [(seq, seq) for seq in told]

    counted.ranges.clear()
    answer = (await recall.call({"from": 0, "to": 7})).text
    await accesses.write()
    told = [int(seq) for seq in re.findall(r"^turn (\d+) ", answer, re.MULTILINE)]
    assert "more left out" in answer
    assert counted.ranges == [(0, told[-1])]

    counted.ranges.clear()
    await search.call({"query": "zeppelin"})
    await recall.call({"from": 70, "to": 80})
    await accesses.write()
    assert counted.ranges == []


async def test_a_turn_longer_than_an_answer_is_cut_between_words() -> None:
    """It is marked as cut, with what is missing, and the turns after it are named as left out."""
    said = " ".join(f"lighthouse{number}" for number in range(600))
    _, recall = await tools(turn(0, said), turn(1, "Shall we?"))
    told, left_out = ((await recall.call({"from": 0, "to": 1})).text).split("\n\n")
    kept, _, mark = told.partition(" … ")
    spoken = kept.removeprefix("turn 0 [08:53] Ada Lovelace: ")
    assert said.startswith(f"{spoken} ")
    assert MAX_CHARS - 200 < len(told) < MAX_CHARS
    assert mark == f"[cut here; {len(said) - len(spoken)} more characters are stored]"
    assert left_out == "(1 more left out; ask for less at once)"
