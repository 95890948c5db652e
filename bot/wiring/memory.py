"""Factories for a room's memory: search, quotes, the session's memory and its upkeep."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.brain.recall_quotes import QuoteFinder
from bot.embedding.factory import open_embedder
from bot.memory.indexer import Indexer
from bot.memory.recall import Recall, RoomRecall
from bot.memory.room_audience import RoomAudience
from bot.memory.upkeep import MemoryUpkeep
from bot.store.claims import fenced
from bot.store.people import PeopleStore
from bot.store.prompts import PromptStore
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.tiers import TierStore
from compaction.session import SessionMemory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AsyncExitStack
    from datetime import tzinfo
    from weakref import WeakSet

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.memory.access_log import AccessLog
    from bot.memory.people import PeopleBook
    from bot.memory.personal_data import RoomMemory
    from bot.memory.recall import RecallScope
    from bot.room.guild_policy import GuildPolicy
    from bot.room.services import OpenMemory, OpenUpkeep
    from bot.store.attendance import AttendanceStore
    from bot.store.claims import RoomClaim
    from bot.store.database import Database
    from bot.wiring.settings import BotSettings
    from compaction.events import CompactionEvent
    from compaction.model import SessionId
    from compaction.ports import TurnStore
    from compaction.summary.port import Summariser


async def open_recall(
    stack: AsyncExitStack,
    settings: BotSettings,
    database: Database,
    store: TurnStore,
    clock: Clock,
    *,
    indexes: bool = True,
) -> Recall:
    """Start memory search on `stack`, and the indexer if this process `indexes`: one of a bot does."""
    embedder = await stack.enter_async_context(open_embedder(settings.recall, models=settings.models, llm=settings.llm))
    vectors = VectorStore(database, most=settings.recall.vectors_in_memory)
    if indexes and embedder is not None:
        await stack.enter_async_context(Indexer.running(vectors, embedder, clock))
    return Recall(SqlRecallIndex(database, vectors), store, embedder=embedder)


def quoting_factory(
    settings: BotSettings,
    recall: Recall,
    zone: tzinfo,
    *,
    attendance: AttendanceStore,
    withheld: Callable[[int | None], frozenset[str]] = lambda _: frozenset(),
) -> Callable[[RecallScope, Place], QuoteFinder | None]:
    """Return the factory of a room's quote finder; it returns None if quotes are switched off.

    `withheld`: returns the ids of people of a guild whose words may not be quoted.
    """

    def quoting(scope: RecallScope, place: Place) -> QuoteFinder | None:
        if not settings.recall.enabled or not settings.recall.quotes:
            return None
        room = RoomRecall(
            recall,
            scope,
            reach=settings.recall.scope,
            shared_channels=place.shared_channels,
            withheld=withheld,
            audience=RoomAudience(place.readers, attendance, scope.session_id),
        )
        return QuoteFinder(
            recall,
            room,
            settings.recall,
            wake_names=(settings.brain.name, *settings.brain.wake_names),
            max_input_tokens=settings.budget.max_input_tokens,
            zone=zone,
        )

    return quoting


def upkeep_factory(
    settings: BotSettings,
    database: Database,
    store: TurnStore,
    people: PeopleBook,
    accesses: AccessLog,
    clock: Clock,
    *,
    upkeeps: WeakSet[RoomMemory],
) -> OpenUpkeep:
    """Return the factory of a room's memory upkeep, whose writes carry the room's claim. `upkeeps` gets each that is
    made. `store`: is only read.
    """

    def new_upkeep(session_id: SessionId, claim: RoomClaim, memory: SessionMemory) -> MemoryUpkeep:
        mine = fenced(database, claim)
        upkeep = MemoryUpkeep(
            session_id,
            claim.guild_id,
            memory=memory,
            turns=store,
            tiers=TierStore(mine),
            people=people.stored_by(PeopleStore(mine)),
            prompts=PromptStore(mine),
            accesses=accesses,
            settings=settings.tiers,
            clock=clock,
            max_input_tokens=settings.budget.max_input_tokens,
        )
        upkeeps.add(upkeep)
        return upkeep

    return new_upkeep


def memory_factory(
    store_of: Callable[[RoomClaim], TurnStore],
    summariser_of: Callable[[int], Awaitable[Summariser]],
    settings: BotSettings,
    policy: GuildPolicy,
    clock: Clock,
    *,
    in_use: set[SessionId],
) -> OpenMemory:
    """Return the function that opens a room's session memory as a context manager.

    `store_of`: returns the store whose writes carry a room's claim. `summariser_of`: returns that of a server.
    `in_use` has the sessions whose memory is open.
    """

    @asynccontextmanager
    async def open_memory(
        session_id: SessionId, claim: RoomClaim, on_event: Callable[[CompactionEvent], None]
    ) -> AsyncIterator[SessionMemory]:
        guild_id = claim.guild_id
        async with SessionMemory.open(
            session_id,
            store=store_of(claim),
            summariser=await summariser_of(guild_id),
            settings=settings.compaction,
            mode=policy.mode(guild_id),
            clock=clock,
            guild_id=str(guild_id),
            on_event=on_event,
            searchable=settings.recall.enabled,
        ) as memory:
            in_use.add(session_id)
            try:
                yield memory
            finally:
                in_use.discard(session_id)

    return open_memory
