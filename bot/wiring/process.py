"""Opens what the bot's process has before its models, its rooms and its connection to Discord: the data folder, the
database and its stores, what watches over them, and what is known of the servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import structlog

from bot.background_task import background_task
from bot.dashboard.live import LiveRooms
from bot.discord.endpoint import discord_time
from bot.folder_lock import folder_lock
from bot.logs.log_file import log_path
from bot.memory.access_log import AccessLog
from bot.memory.people import PeopleBook
from bot.memory.retention import Retention
from bot.participation.guild_state import GuildStates
from bot.participation.spending import Spending
from bot.server_settings import ServerSettingsBook
from bot.store.backup import remove_leftovers
from bot.store.claims import RoomClaim, fenced
from bot.store.database import Database, open_database
from bot.store.people import PeopleStore
from bot.store.quoted_turns import QuoteStore
from bot.store.servers import AdmissionStore, OptOutStore, SqlServerSettings, UsageStore
from bot.store.sessions import Sessions
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from bot.wiring.pages import RIVAL, open_monitoring

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.health import Health
    from bot.memory.upkeep import MemoryUpkeep
    from bot.monitoring.metrics import Metrics
    from bot.settings import StorageSettings
    from bot.shards import Shards, Succession
    from bot.store.dialects.port import BotLock
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId
    from compaction.ports import TurnStore

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stores:
    """The open database and the stores on it."""

    database: Database
    sessions: Sessions
    turns: TurnStore
    opt_outs: OptOutStore
    # What each server has chosen.
    servers: ServerSettingsBook
    # Which servers the operator admits or refuses.
    admissions: AdmissionStore
    people: PeopleBook
    accesses: AccessLog
    # The sessions of open rooms, and their upkeep. It is in the order in which they began, so that what is forgotten
    # takes the same way each time.
    in_use: set[SessionId]
    upkeeps: WeakValueDictionary[SessionId, MemoryUpkeep]
    clock: Clock

    def turns_of(self, claim: RoomClaim) -> TurnStore:
        """Return the store of turns for the room with this claim."""
        return SqlTurnStore(fenced(self.database, claim), self.clock)


async def open_stores(stack: AsyncExitStack, settings: BotSettings, clock: Clock) -> Stores:
    """Open the database and its stores; what servers have chosen is not read yet. Raises `StoreError` if the database
    cannot be used.
    """
    storage = settings.storage
    database = await stack.enter_async_context(open_database(storage.database, data_dir=storage.machine_dir))
    async with database.writing() as connection:
        # With another key, the rooms would not know whom they have to leave out.
        await database.key.claim(connection)
    servers = ServerSettingsBook(SqlServerSettings(database, clock))

    return Stores(
        database=database,
        sessions=Sessions(database, clock),
        turns=SqlTurnStore(database, clock),
        opt_outs=OptOutStore(database, clock),
        servers=servers,
        admissions=AdmissionStore(database),
        people=PeopleBook(PeopleStore(database), settings.people),
        accesses=AccessLog(TierStore(database), clock, QuoteStore(database)),
        in_use=set(),
        upkeeps=WeakValueDictionary(),
        clock=clock,
    )


@dataclass(frozen=True, slots=True)
class ProcessParts:
    """What every other part of a process is made with. `zone`: the time zone of times shown to people."""

    settings: BotSettings
    stores: Stores
    zone: tzinfo
    clock: Clock
    metrics: Metrics
    health: Health


RESTORE_AGAIN = "The memory is as before the restore. Stop the bot and run `roomtone restore FILE` again."


@dataclass(frozen=True, slots=True)
class BotProcess:
    """What every other part of the bot's process is made with. `shards`: those of the servers that it serves. `lock`:
    keeps other processes with the same servers away from the database.
    """

    parts: ProcessParts
    shards: Shards
    participation: GuildStates
    spending: Spending
    live: LiveRooms
    lock: BotLock


def take_data_folder(stack: AsyncExitStack, storage: StorageSettings) -> None:
    """Take the data folder for this bot. Raises `SetupError` if another bot has it, or if it cannot be used."""
    stack.enter_context(folder_lock(storage.data_dir))
    if remove_leftovers(storage.database_path):
        log.warning("restore_was_killed", remedy=RESTORE_AGAIN)


async def open_bot_process(
    stack: AsyncExitStack,
    settings: BotSettings,
    metrics: Metrics,
    health: Health,
    *,
    zone: tzinfo,
    clock: Clock,
    shards: Shards,
    succession: Succession,
) -> BotProcess:
    """Take the database for this bot, and begin to delete what is too old. `succession`: see `Dialect.held_by_bot`.

    Raises `StoreError` if another bot has it, or if it cannot be used.
    """
    stores = await open_stores(stack, settings, clock)
    parts = ProcessParts(settings, stores, zone, clock, metrics, health)
    lock = await stack.enter_async_context(stores.database.held_by_bot(shards, succession))
    # Not before: the process that was waited for may have changed them.
    await stores.servers.load()
    await open_monitoring(stack, stores.database, settings, clock, metrics, health)
    health.add_check(lambda: [RIVAL] if lock.has_rival else [])
    retention = Retention(
        stores.database,
        settings.tiers,
        clock=clock,
        log_folder=log_path(settings.storage.data_dir).parent,
        people=stores.people,
        in_use=stores.in_use,
        servers=stores.servers,
        shards=shards,
        server_time=partial(discord_time, settings.discord),
    )
    await stack.enter_async_context(background_task(retention.run(), name="retention"))
    spending = Spending(
        UsageStore(stores.database),
        settings.participation,
        clock=clock,
        billed=settings.llm.configured or bool(settings.realtime.model),
        on_used=metrics.record_use,
    )
    stack.push_async_callback(spending.save)
    await stack.enter_async_context(background_task(spending.run(), name="spending"))
    participation = GuildStates(
        stores.servers,
        stores.opt_outs,
        settings.participation,
        wake_names=settings.brain.names,
        clock=clock,
        spending=spending,
        refused=frozenset(settings.discord.refused_people),
        room=settings.room,
        llm=settings.llm,
        shards=shards,
        tuning=settings.tuning,
    )
    live = await stack.enter_async_context(LiveRooms(clock).running())
    metrics.add_queue(lambda: live.queue)
    return BotProcess(parts, shards, participation, spending, live, lock)
