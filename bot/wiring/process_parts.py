"""What a process opens first: the database and its stores, and what all other parts are made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from bot.memory.access_log import AccessLog
from bot.memory.people import PeopleBook
from bot.monitoring.measured_store import MeasuredTurnStore
from bot.server_settings import ServerSettingsBook
from bot.store.claims import fenced
from bot.store.database import open_database
from bot.store.opt_outs import OptOutStore
from bot.store.people import PeopleStore
from bot.store.quoted_turns import QuoteStore
from bot.store.servers import SqlServerSettings
from bot.store.sessions import Sessions
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.memory.personal_data import RoomMemory
    from bot.monitoring.measured_store import OnOperation
    from bot.monitoring.metrics import Metrics
    from bot.store.claims import RoomClaim
    from bot.store.database import Database
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId
    from compaction.ports import TurnStore


@dataclass(frozen=True, slots=True)
class Stores:
    """The open database and the stores on it."""

    database: Database
    sessions: Sessions
    turns: TurnStore
    opt_outs: OptOutStore
    # What each server has chosen.
    servers: ServerSettingsBook
    people: PeopleBook
    accesses: AccessLog
    # The sessions of open rooms, and their upkeep.
    in_use: set[SessionId]
    upkeeps: WeakSet[RoomMemory]
    # The store of turns for the room with this claim.
    turns_of: Callable[[RoomClaim], TurnStore]


async def open_stores(
    stack: AsyncExitStack,
    settings: BotSettings,
    clock: Clock,
    *,
    on_operation: OnOperation | None = None,
    migrates: bool = True,
) -> Stores:
    """Open the database and its stores. `on_operation`: gets each operation of the store of turns. `migrates`: see
    `open_database`.

    Raises `StoreError` if the database cannot be used.
    """
    storage = settings.storage
    database = await stack.enter_async_context(
        open_database(storage.database, migrates=migrates, data_dir=storage.machine_dir)
    )
    async with database.writing() as connection:
        # With another key, the rooms would not know whom they have to leave out.
        await database.key.claim(connection)
    servers = ServerSettingsBook(SqlServerSettings(database, clock))
    await servers.load()

    def turns_in(opened: Database) -> TurnStore:
        turns = SqlTurnStore(opened, clock)
        return turns if on_operation is None else MeasuredTurnStore(turns, on_operation)

    return Stores(
        database=database,
        sessions=Sessions(database, clock),
        turns=turns_in(database),
        turns_of=lambda claim: turns_in(fenced(database, claim)),
        opt_outs=OptOutStore(database, clock),
        servers=servers,
        people=PeopleBook(PeopleStore(database), settings.people),
        accesses=AccessLog(TierStore(database), clock, QuoteStore(database)),
        in_use=set(),
        upkeeps=WeakSet(),
    )


@dataclass(frozen=True, slots=True)
class ProcessParts:
    """What every other part of a process is made with. `zone`: the time zone of times shown to people."""

    settings: BotSettings
    stores: Stores
    zone: tzinfo
    clock: Clock
    metrics: Metrics
