"""The database is written anew for what was deleted, and for nothing else: once in a while for all together."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from bot.memory.indexer import SETTLED_S, Indexer
from bot.store.database import Database, open_database
from bot.store.search.vector_store import VectorStore
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.wiping import FAILED_PAUSE_S, WIPE_PAUSE_S, mark_deleted, wipe_deleted, wipe_if_due
from compaction.errors import StoreError
from tests.bot.evening import GUILD, Evening

if TYPE_CHECKING:
    from tests.bot.conftest import Place

STRANGER = StoredSpeaker("4711", (), 0.0, 0, ())


class Wipes:
    """Takes the place of `Database.wipe`. `count`: how often it was called. `succeeds`: no other program reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.succeeds = True

        async def wipe(_: Database) -> bool:
            self.count += 1
            return self.succeeds

        monkeypatch.setattr(Database, "wipe", wipe)


@pytest.fixture
def wipes(monkeypatch: pytest.MonkeyPatch) -> Wipes:
    return Wipes(monkeypatch)


async def forget(evening: Evening, name: str) -> bool:
    """Forget somebody, and return whether their bytes are gone."""
    forgetter = SpeechForgetter(evening.database, evening.clock)
    (person,) = await forgetter.find(name)
    return (await forgetter.forget(person)).wiped


@pytest.mark.asyncio
async def test_who_was_never_heard_has_nothing_wiped(place: Place, wipes: Wipes) -> None:
    """Nobody waits for them, and what models were sent stays, of which nothing can be theirs."""
    async with Evening(place) as evening:
        await evening.say("I live in Lisbon.", "Bob")
        await evening.prompts.store([evening.prompt("Found: Lisbon.")], is_current=lambda _: True)
        forgetter = SpeechForgetter(evening.database, evening.clock)
        assert (await forgetter.forget(await forgetter.begin(STRANGER))).wiped
        assert wipes.count == 0
        assert await evening.prompts_kept() == ["Found: Lisbon."]


@pytest.mark.asyncio
async def test_many_who_are_forgotten_have_one_wipe(place: Place, wipes: Wipes) -> None:
    """The first is wiped at once. What the others had is wiped when the pause is over, also if the bot was started anew
    meanwhile. Somebody of whom there is nothing starts no wipe before that either.
    """
    async with Evening(place) as evening:
        for name in ("Ada", "Bob", "Cy"):
            await evening.say("The gate is open.", name)
        assert [await forget(evening, name) for name in ("Ada", "Bob", "Cy")] == [True, False, False]
        await SpeechForgetter(evening.database, evening.clock).forget(STRANGER)
        assert wipes.count == 1
        clock = evening.clock
    async with open_database(place) as database:
        indexer = Indexer(database, VectorStore(database), embedder=None, clock=clock)
        for _ in range(3):
            await indexer.step()
        assert wipes.count == 1
        clock.advance(WIPE_PAUSE_S)
        for _ in range(3):
            await indexer.step()
        assert wipes.count == 2
        assert await wipe_if_due(database, now=clock.now())
        assert wipes.count == 2


@pytest.mark.asyncio
async def test_a_wipe_that_failed_is_due_again(place: Place, wipes: Wipes) -> None:
    """After an hour, because another program may read for long. The operator, who waits for no pause, can at once."""
    async with Evening(place) as evening:
        await evening.say("The gate is open.", "Ada")
        wipes.succeeds = False
        assert not await forget(evening, "Ada")
        assert not await wipe_if_due(evening.database, now=evening.clock.now(), pause_s=0.0)
        assert wipes.count == 2
        async with Evening(place, name="later", clock=evening.clock) as later:
            await later.say("The gate is open.", "Bob")
            wipes.succeeds = True
            assert await wipe_if_due(evening.database, now=evening.clock.now(), pause_s=0.0)
            wipes.succeeds = False
            evening.clock.advance(WIPE_PAUSE_S)
            assert not await forget(evening, "Bob")
        wipes.succeeds = True
        evening.clock.advance(WIPE_PAUSE_S)
        assert not await wipe_if_due(evening.database, now=evening.clock.now())
        evening.clock.advance(FAILED_PAUSE_S)
        assert await wipe_if_due(evening.database, now=evening.clock.now())
        assert wipes.count == 5


@pytest.mark.asyncio
async def test_a_wipe_that_always_fails_is_left_to_retention(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may hold writers up for minutes, and the disk is full until somebody makes room."""
    tried: list[float] = []
    async with Evening(place) as evening:
        await evening.say("The gate is open.", "Ada")

        async def wipe(_: Database) -> bool:
            tried.append(evening.clock.now())
            raise StoreError("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(Database, "wipe", wipe)
            for _ in range(40):
                with suppress(StoreError):
                    await wipe_if_due(evening.database, now=evening.clock.now())
                if not tried:
                    assert not await forget(evening, "Ada"), "they are forgotten, but not wiped"
                evening.clock.advance(WIPE_PAUSE_S)
        assert [later - tried[0] for later in tried] == [0.0, FAILED_PAUSE_S]
        wipes = Wipes(monkeypatch)
        assert not await wipe_if_due(evening.database, now=evening.clock.now())
        assert await wipe_deleted(evening.database)
        async with evening.database.writing() as connection:
            await mark_deleted(connection, now=evening.clock.now())
        assert await wipe_if_due(evening.database, now=evening.clock.now())
        assert wipes.count == 2


@pytest.mark.asyncio
async def test_what_is_deleted_during_a_wipe_is_due_after_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wipe may have missed it."""
    async with Evening(place) as evening:
        await evening.say("The gate is open.", "Ada")

        async def deleting(database: Database) -> bool:
            async with database.writing() as connection:
                await mark_deleted(connection, now=evening.clock.now())
            return True

        with monkeypatch.context() as patch:
            patch.setattr(Database, "wipe", deleting)
            assert await forget(evening, "Ada")
        wipes = Wipes(monkeypatch)
        assert await wipe_if_due(evening.database, now=evening.clock.now(), pause_s=0.0)
        assert wipes.count == 1


@pytest.mark.asyncio
async def test_what_is_deleted_during_a_purge_is_due_after_it(
    place: Place, wipes: Wipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index may still have its words."""
    async with Evening(place) as evening:
        await evening.say("The gate is open.", "Ada")
        purge = VectorStore.purge

        async def deleting(vectors: VectorStore) -> bool:
            purged = await purge(vectors)
            async with evening.database.writing() as connection:
                await mark_deleted(connection, now=evening.clock.now())
            return purged

        with monkeypatch.context() as patch:
            patch.setattr(VectorStore, "purge", deleting)
            await forget(evening, "Ada")
        await wipe_if_due(evening.database, now=evening.clock.now(), pause_s=0.0)
        assert wipes.count == 2


@pytest.mark.asyncio
async def test_the_indexer_leaves_the_wipe_to_who_forgets(place: Place, wipes: Wipes) -> None:
    """It would wipe in the middle, and what is deleted after that had to wait. If the process ends meanwhile, it wipes
    soon. A clock that was set back keeps it from nothing.
    """
    async with Evening(place) as evening:
        indexer = Indexer(evening.database, VectorStore(evening.database), embedder=None, clock=evening.clock)
        async with evening.database.writing() as connection:
            await mark_deleted(connection, now=evening.clock.now())
        await indexer.step()
        assert wipes.count == 0
        evening.clock.advance(SETTLED_S)
        await indexer.step()
        assert wipes.count == 1
        async with evening.database.writing() as connection:
            await mark_deleted(connection, now=evening.clock.now())
        evening.clock.advance(-7_200.0)
        await indexer.step()
        assert wipes.count == 2


@pytest.mark.asyncio
async def test_forgetting_holds_up_the_summaries_of_the_same_server_alone(place: Place, wipes: Wipes) -> None:
    """Who has said one word on a server can be forgotten as often as they like: rooms of other servers keep the
    revision that their folds need, and what their models were sent.
    """
    async with (
        Evening(place) as evening,
        Evening(place, name="next door", clock=evening.clock, channel=702) as other,
        Evening(place, name="elsewhere", clock=evening.clock, channel=900, guild=GUILD + 1) as elsewhere,
    ):
        every = (evening, other, elsewhere)
        await evening.say("Hello there.", "Ada")
        for each in every:
            await each.say("I live in Lisbon.", "Bob")
            await each.prompts.store([each.prompt("Found: Lisbon.")], is_current=lambda _: True)
        before = [(await each.store.load(each.session_id)).state.revision for each in every]
        await forget(evening, "Ada")
        after = [(await each.store.load(each.session_id)).state.revision for each in every]
        assert [new > old for old, new in zip(before, after, strict=True)] == [True, True, False]
        assert [bool(await each.prompts_kept()) for each in every] == [False, False, True]
        assert wipes.count == 1
