"""Background work on memory: forgotten words, sent prompts and people who come in, without delaying replies."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from structlog.typing import EventDict

from bot.memory.recall import Recall
from bot.memory.retention import DAY_S, Retention
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from compaction.errors import StoreError
from compaction.memory.passage import PassageKind, Scope
from compaction.memory.people import Audience, PersonFact
from compaction.model import Note, NoteId, Seq, SessionId
from compaction.settings import TierSettings
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest
from tests.bot.conftest import Place
from tests.bot.evening import CHANNEL, GUILD, HERE, Evening, forget
from tests.fakes.labelling_summariser import LabellingSummariser
from tests.patience import patiently


@pytest.mark.covers("3.3", "3.9")
async def test_the_archive_is_found_only_when_it_is_asked_for(place: Place) -> None:
    """A search includes archived segments only on request, but always the turns in them. After thirty days the facts of
    a segment are pruned; its heading and its gist stay.
    """
    async with Evening(place) as evening:
        await evening.talk(71)
        segments = await evening.tier_store.tiers_of(evening.session_id)
        first = segments[0].kept.segment
        await evening.tier_store.archive(evening.session_id, [first.id], now=evening.clock.now())
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)

        async def found(*, archived: bool) -> set[str]:
            scope = Scope(kinds=frozenset({PassageKind.SEGMENT}), archived=archived)
            return {str(each.seq_from) for each in await recall.search("parcel 3 in a shed", scope, limit=20)}

        assert "0" not in await found(archived=False)
        assert "0" in await found(archived=True)
        (turn, *_) = await recall.search("parcel 3")
        assert turn.seq == 3
        retention = Retention(evening.database, TierSettings(retention_days=0), clock=evening.clock)
        evening.clock.advance(30 * DAY_S - 1.0)
        assert (await retention.enforce()).pruned == 0
        evening.clock.advance(2.0)
        assert (await retention.enforce()).pruned == 1
        pruned = (await evening.tier_store.tiers_of(evening.session_id))[0].kept
        assert pruned.pruned_at is not None
        assert pruned.segment.pruned
        assert pruned.segment == replace(first, facts=(), pruned=True)
        assert "0" in await found(archived=True)
        assert "0" not in await found(archived=False)


@pytest.mark.covers("3.10")
@pytest.mark.slow
async def test_retrieval_counts_and_warms(place: Place) -> None:
    """A hit that was shown updates its segment's access count, access time and relevance, and counts as a mention. A
    search alone does not.
    """
    async with Evening(place) as evening:
        await evening.talk(72)
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        found = await recall.search("parcel 3", limit=1)
        await evening.accesses.write()
        first, second, *_ = await evening.tier_store.tiers_of(evening.session_id)
        assert first.access_count == 0
        evening.accesses.note_hits(found)
        await evening.accesses.write()
        await evening.accesses.write()
        first, second, *_ = await evening.tier_store.tiers_of(evening.session_id)
        assert (first.access_count, first.last_accessed) == (1, evening.clock.now())
        assert first.kept.last_mention == 71
        assert second.access_count == 0
        before = first.relevance
        assert before is not None
        evening.accesses.note_hits(found)
        await evening.accesses.write()
        (first, *_) = await evening.tier_store.tiers_of(evening.session_id)
        assert first.relevance is not None
        assert before < first.relevance <= 1.0


async def test_who_comes_in_is_read_beforehand(file: Path) -> None:
    """The facts about a person are read when the person joins, so that building a prompt never waits for the store."""
    path = file
    async with Evening(path, name="first", summariser=LabellingSummariser()) as first:
        await first.say("I live in Lisbon.")
        await first.talk(60)
        await first.upkeep.complete()
        await first.timeline.end()
    async with Evening(path, name="second") as second:
        assert second.people.section(HERE, [("id-Ada", "Ada")]) == ()
        assert first.upkeep.people.section(HERE, [("id-Ada", "Ada")]) == (), "its own summary and turns tell it"
        second.upkeep.on_join(["id-Ada"])
        await second.upkeep.run_once()
        (section,) = second.people.section(HERE, [("id-Ada", "Ada L.")])
        assert section.content.endswith("\nAda L.: I live in Lisbon.\n</data>")
        present = [("id-Ada", "Ada L."), ("id-Bob", "Bob")]
        strangers = Audience(GUILD, frozenset({702}))
        assert second.people.section(strangers, present) == ()
        assert second.upkeep.people.introductions(strangers, present) == ["Ada L.", "Bob"]
        assert second.upkeep.people.introductions(HERE, present) == ["Ada L., who has said: I live in Lisbon.", "Bob"]
        assert (await second.people.forget(GUILD, "id-Ada")).count == 1
        assert second.upkeep.people.introductions(HERE, present) == ["Ada L.", "Bob"]
        assert second.people.section(HERE, [("id-Ada", "Ada")]) == ()
        assert await second.people.facts_about(GUILD, "id-Ada") == ()


@pytest.mark.parametrize(
    ("channels", "asker_id", "told"),
    [
        pytest.param({CHANNEL}, None, True, id="in the same channel"),
        pytest.param({CHANNEL, 702}, None, True, id="from a public channel, or among insiders"),
        pytest.param({702}, None, False, id="from a private channel, with a stranger present"),
        pytest.param({702}, "id-Bob", False, id="somebody else asks"),
        pytest.param({702}, "id-Ada", True, id="the person asks"),
        pytest.param(set(), None, False, id="a deleted channel"),
    ],
)
def test_a_fact_is_told_to_those_who_could_have_heard_it(channels: set[int], asker_id: str | None, told: bool) -> None:
    """A fact may be told only if everybody present could have been where it was said, or if its person asks."""
    fact = PersonFact("f", "id-Ada", "Ada", "I live in Lisbon.", SessionId("s"), Seq(0), 0.0, channel_id=CHANNEL)
    assert Audience(GUILD, frozenset(channels), asker_id).may_hear(fact) is told


async def test_a_store_that_fails_costs_nothing_but_time(
    evening: Evening, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """A failure of the store is logged once, and the work is done at the next run."""
    await evening.talk(20)
    apply = evening.tier_store.apply

    async def refuse(*args: object, **others: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(evening.tier_store, "apply", refuse)
    await evening.upkeep.run_once()
    await evening.upkeep.run_once()
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["memory_upkeep_failed"]
    monkeypatch.setattr(evening.tier_store, "apply", apply)
    await evening.upkeep.run_once()
    assert await evening.tier_store.last_check(evening.session_id) == 20


async def test_prompts_that_were_sent_are_stored_in_the_background(evening: Evening) -> None:
    """Each once, also if a fold lands between."""
    await evening.talk(1)
    evening.upkeep.on_prompt_sent(evening.prompt("first"))
    await evening.talk(60)
    evening.upkeep.on_prompt_sent(evening.prompt("second"))
    for _ in range(2):
        await evening.upkeep.run_once()
    assert await evening.prompts_kept() == ["first", "second"]


async def test_the_task_wakes_when_there_is_something_to_do(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task wakes after a compaction, and runs until it is cancelled."""
    await evening.talk(10)
    checked = asyncio.Event()
    apply = evening.tier_store.apply

    async def record(*arguments: object, **others: object) -> None:
        await apply(*arguments, **others)  # type: ignore[arg-type]
        checked.set()

    monkeypatch.setattr(evening.tier_store, "apply", record)
    task = asyncio.create_task(evening.upkeep.run(), name="upkeep")
    try:
        evening.upkeep.wake()
        await patiently(checked.wait())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await evening.tier_store.last_check(evening.session_id) == 10


@pytest.mark.slow
async def test_a_running_room_takes_a_forgetting_over(file: Path, logs: list[EventDict]) -> None:
    """From the next turn on, a running room neither sends forgotten words nor compacts them again."""
    async with Evening(file, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Zanzibar.")
        await evening.talk(75)
        await evening.say("I still love Zanzibar.")
        await evening.upkeep.run_once()
        await forget(evening.database, evening.clock, "Ada")
        await evening.upkeep.run_once()
        await evening.upkeep.run_once()
        assert [line["event"] for line in logs if line["event"] == "memory_refreshed"] == ["memory_refreshed"]
        # Folded turns too: the next fold would read them as context.
        assert evening.timeline.cursor >= 10
        assert "Zanzibar" not in str(evening.timeline.turns)
        sent = evening.asks(await evening.say("Well?", "Bob"), zone=UTC)
        assert "Zanzibar" not in str([part.content for part in sent.parts])
        assert "Ada" not in str([part.content for part in sent.parts])
        await evening.talk(60)
        await evening.timeline.end()
        stored = await evening.store.load(evening.session_id)
        assert stored.state.cursor > 75
        assert "Zanzibar" not in str(stored.segments)
        assert "Zanzibar" not in str(stored.state)


class _Held:
    """A summariser that waits until the test lets it go on."""

    name = "held"
    model = "held"

    def __init__(self) -> None:
        self.thinking = asyncio.Event()
        self.go = asyncio.Event()

    async def fold(self, request: FoldRequest) -> Fold:
        self.thinking.set()
        await self.go.wait()
        return await ExtractiveSummariser().fold(request)


async def test_forgetting_does_not_wait_for_a_fold_under_way(file: Path) -> None:
    """Forgotten words leave the window and the live notes at once, even while a compaction runs. A model may take a
    minute for it, and its result would be refused anyway.
    """
    held = _Held()
    async with Evening(file, summariser=held) as evening:
        await evening.say("I live in Zanzibar.")
        for number in range(60):
            await evening.say(f"Parcel {number} is here.", "Bob")
        await evening.timeline.add_note(
            Note(NoteId("map"), evening.clock.now(), "Ada", "A map of Zanzibar.", person_id="id-Ada")
        )
        evening.timeline.context(max_input_tokens=evening.max_input_tokens)
        await held.thinking.wait()
        await forget(evening.database, evening.clock, "Ada")
        await evening.upkeep.run_once()
        assert evening.words.epoch == 1
        assert "Zanzibar" not in str(evening.timeline.turns)
        assert evening.timeline.live_notes == ()
        held.go.set()
        await evening.timeline.settle()
        assert evening.timeline.cursor == 0
        evening.clock.advance(600.0)
        evening.timeline.context(max_input_tokens=evening.max_input_tokens)
        await evening.timeline.settle()
        assert evening.timeline.cursor == 10
        assert "Zanzibar" not in str((await evening.store.load(evening.session_id)).segments)


async def test_a_refused_landing_is_a_forgetting_like_any_other(place: Place) -> None:
    """If the refused result of a compaction shows that words were forgotten, notes and facts about the person are
    removed too.
    """
    held = _Held()
    async with Evening(place, name="yesterday", summariser=LabellingSummariser()) as yesterday:
        await yesterday.say("I live in Zanzibar.")
        await yesterday.talk(60)
        await yesterday.upkeep.complete()
    async with Evening(place, summariser=held) as evening:
        await evening.say("I still love Zanzibar.")
        for number in range(60):
            await evening.say(f"Parcel {number} is here.", "Bob")
        evening.upkeep.on_join(["id-Ada"])
        await evening.upkeep.run_once()
        assert evening.people.section(HERE, [("id-Ada", "Ada")])
        await evening.timeline.add_note(
            Note(NoteId("map"), evening.clock.now(), "Ada", "A map of Zanzibar.", person_id="id-Ada")
        )
        evening.timeline.context(max_input_tokens=evening.max_input_tokens)
        await held.thinking.wait()
        await forget(evening.database, evening.clock, "Ada")
        held.go.set()
        await evening.timeline.settle()
        assert evening.timeline.live_notes == ()
        assert "Zanzibar" not in str(evening.timeline.turns)
        await evening.upkeep.run_once()
        assert evening.people.section(HERE, [("id-Ada", "Ada")]) == ()


async def test_what_is_forgotten_of_an_older_session_leaves_the_running_rooms(file: Path) -> None:
    """Facts from an older session are used in a running room until they are forgotten."""
    async with Evening(file, name="yesterday", summariser=LabellingSummariser()) as yesterday:
        await yesterday.say("I live in Zanzibar.")
        await yesterday.talk(60)
        await yesterday.upkeep.complete()
        await yesterday.timeline.end()
    async with Evening(file, name="today") as today:
        await today.say("Hello.", "Bob")
        today.upkeep.on_join(["id-Ada"])
        await today.upkeep.run_once()
        assert "Zanzibar" in str(today.people.section(HERE, [("id-Ada", "Ada")]))
        await forget(today.database, today.clock, "Ada", session_id=SessionId("yesterday"))
        await today.upkeep.run_once()
        assert today.people.section(HERE, [("id-Ada", "Ada")]) == ()
