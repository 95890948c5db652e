"""Quotes from memory for a reply. A slow or failing search only leaves the reply without quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

import pytest
from structlog.typing import EventDict

from bot.brain.context import ModelContext, QuoteFinder, build_context_messages, select_turns_surely_sent
from bot.brain.embedded.chat import BY_WORDS_ALONE
from bot.brain.embedded.evidence import collect_evidence
from bot.brain.tools.toolbox import Toolbox
from bot.memory.recall import Recall, RecallScope, RoomRecall
from compaction.errors import StoreError
from compaction.memory.passage import Scope, TermCounts
from compaction.memory.quotes import Quote
from compaction.model import Mode, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, coverage
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest
from tests.compaction.memory.recall_index_contract import T0, turn
from tests.compaction.rooms import EVENING
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.recall_index import InMemoryRecallIndex
from tests.patience import PATIENCE_S

FACT = "The spare key that you miss hangs behind the blue boiler."


async def talked(room: Room, *, fact_at: int, turns: int) -> InMemoryRecallIndex:
    """Add turns, one of which mentions the key, fold what is due, and index them."""
    for seq in range(turns):
        await room.say(FACT if seq == fact_at else f"Haha, level {seq} again.")
    for _ in range(20):
        room.timeline.context(max_input_tokens=20_000)
        await room.timeline.settle()
    index = InMemoryRecallIndex()
    for each in await room.store.turns(EVENING, Seq(0), Seq(10_000)):
        index.add(EVENING, each, guild_id=1, channel_id=10)
    return index


async def asked_of_the_summary(room: Room) -> tuple[InMemoryRecallIndex, Turn]:
    """Return a talk whose summary repeats the turn that mentions the key, and a question about the key."""
    index = await talked(room, fact_at=3, turns=90)
    assert room.timeline.summary is not None
    assert FACT in room.timeline.summary
    return index, await room.say("Where is the spare key?")


def quoting(index: InMemoryRecallIndex, room: Room, *, wait_s: float = PATIENCE_S) -> QuoteFinder:
    """Return a quote finder for the replies of a room. `wait_s`: how long it waits; a busy machine takes its time."""
    return QuoteFinder(
        RoomRecall(Recall(index, room.store), RecallScope(EVENING, 1, 10)),
        within_s=wait_s,
        max_input_tokens=20_000,
        zone=UTC,
        meaning_of=BY_WORDS_ALONE.meaning_of,
    )


def prompt_with(room: Room, question: Turn, quotes: Sequence[Quote]) -> ModelContext:
    """Return the prompt for a reply to `question`, with these quotes."""
    return build_context_messages(
        room.timeline,
        question,
        system=("Be kind.",),
        max_input_tokens=20_000,
        now=0.0,
        zone=UTC,
        toolbox=Toolbox(),
        quotes=quotes,
    )


async def test_a_reply_is_reminded_of_what_left_the_window() -> None:
    """A quote of a folded turn stands before the current turn in the prompt and is evidence for the embedded responder.
    It covers no turn.
    """
    async with Room(summariser=Forgetful()) as room:
        index = await talked(room, fact_at=3, turns=90)
        question = await room.say("Where is the spare key?")
        quotes = await quoting(index, room).find(question, room.timeline)
        assert [each.text for each in quotes] == [FACT]
        context = prompt_with(room, question, quotes)
        kinds = [part.kind for part in context.parts]
        assert kinds[-2:] == [PartKind.RECALL, PartKind.CURRENT]
        assert FACT in context.messages[-2].content
        assert coverage(context.parts, room.timeline.total_turns).missing == ()
        found = [each for each in collect_evidence(context) if each.text == FACT]
        assert [each.speaker for each in found] == ["Dora"]
        assert context.tools.may_be_read()


async def test_each_speaker_is_evidence_for_their_own_words() -> None:
    """Of a quoted turn in which two people speak, each has said only their own words."""
    async with Room(summariser=Forgetful()) as room:
        index = InMemoryRecallIndex()
        said = (TurnPart("1", "Ada", "My spare key is lost."), TurnPart("2", "Bob", FACT))
        index.add(SessionId("older"), replace(turn(3, ""), parts=said), guild_id=1, channel_id=10)
        question = await room.say("Where is the spare key?")
        quotes = await quoting(index, room).find(replace(question, started_at=T0 + 900.0), room.timeline)
        context = prompt_with(room, question, quotes)
        found = collect_evidence(context)
        assert [(each.speaker, each.text) for each in found] == [("Ada", "My spare key is lost."), ("Bob", FACT)]
        # It is from another session, and nobody knows who reads in the chat.
        assert not context.tools.may_be_read()


@pytest.mark.parametrize(("turns", "asked"), [(40, "Where is the spare key?"), (90, "What did I miss?")])
async def test_what_the_model_has_or_needs_not_is_not_quoted(turns: int, asked: str) -> None:
    """A turn in the window is not quoted, and nothing is for whoever wants to catch up."""
    async with Room(summariser=Forgetful()) as room:
        index = await talked(room, fact_at=3, turns=turns)
        question = await room.say(asked)
        assert await quoting(index, room).find(question, room.timeline) == ()


async def test_what_only_an_unsent_summary_has_is_quoted() -> None:
    """What the summary repeats word for word is not quoted. In the mode `off` a prompt has no summary, so it is."""
    async with Room(summariser=ExtractiveSummariser()) as room:
        index, question = await asked_of_the_summary(room)
        assert await quoting(index, room).find(question, room.timeline) == ()
        await room.timeline.set_mode(Mode.OFF)
        quotes = await quoting(index, room).find(question, room.timeline)
        assert [each.text for each in quotes] == [FACT]


async def test_what_the_bot_told_once_it_can_tell_again() -> None:
    """The bot's own turns are not searched, so a sentence that the bot has quoted can be quoted again."""
    async with Room(summariser=Forgetful()) as room:
        index = await talked(room, fact_at=3, turns=90)
        await room.say(f"Earlier, Dora said: {FACT}", kind=TurnKind.ASSISTANT)
        question = await room.say("Where is the spare key?")
        assert [each.text for each in await quoting(index, room).find(question, room.timeline)] == [FACT]


class Slow(InMemoryRecallIndex):
    """An index that never answers."""

    async def count(self, terms: Sequence[str], scope: Scope) -> TermCounts:
        await asyncio.get_running_loop().create_future()
        return await super().count(terms, scope)


class Failing(InMemoryRecallIndex):
    """An index whose disk is gone."""

    async def count(self, terms: Sequence[str], scope: Scope) -> TermCounts:
        raise StoreError("The disk is gone.")


@pytest.mark.parametrize(("kind", "event"), [(Slow, "recall_timed_out"), (Failing, "recall_failed")])
async def test_a_reply_goes_on_without_quotes(
    kind: type[InMemoryRecallIndex], event: str, logs: list[EventDict]
) -> None:
    """If the search is late or fails, the reply goes on without quotes. One log line says so, without any
    spoken words.
    """
    async with Room() as room:
        await talked(room, fact_at=3, turns=70)
        question = await room.say("Where is the spare key?")
        found = await quoting(kind(), room, wait_s=0.001).find(question, room.timeline)
        assert found == ()
        assert [each["event"] for each in logs] == [event]
        assert "key" not in str(logs)


def test_turns_about_to_be_evicted_are_as_good_as_not_sent() -> None:
    """Only the newest turns that certainly fit into the prompt count as sent, because the others may be evicted."""
    turns = [turn(seq, "Some words that everybody could have said here.") for seq in range(50)]
    assert list(select_turns_surely_sent(turns, max_input_tokens=100_000)) == turns
    few = select_turns_surely_sent(turns, max_input_tokens=1_000)
    assert 0 < len(few) < 50
    assert list(few) == turns[-len(few) :]
    assert select_turns_surely_sent(turns, max_input_tokens=10) == ()


class Forgetful(ExtractiveSummariser):
    """A summariser that keeps no facts of what it folds."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return a fold with a gist and no facts."""
        return Fold("They played.", (), "They played.", "fold.v1")
