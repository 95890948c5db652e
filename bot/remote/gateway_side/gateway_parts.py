"""What the rooms of other processes share in the gateway process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager
    from weakref import WeakSet

    from bot import events
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.dashboard.shown_memory import ShownMemory
    from bot.memory.personal_data import RoomMemory
    from bot.monitoring.machine_figures import MachineFigures
    from bot.participation.all_guilds import GuildParticipations
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.link.message_link import MessageLink
    from bot.remote.processes.room_processes import RoomProcesses
    from bot.server_settings import ServerSettingsBook
    from bot.store.guilds import GuildStore
    from compaction.model import SessionId


class ShowOnMachine(Protocol):
    """Shows a room on the dashboard. `bot.dashboard.live.LiveRooms.show` does."""

    def __call__(
        self, session_id: SessionId, place: Place, memory: ShownMemory, guild: GuildParticipation, machine: str, /
    ) -> AbstractContextManager[events.Observer]:
        """Show it while the block runs; yields what takes its events. `machine`: empty if it is this process's own."""


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What the rooms of a gateway process share: what commands change, and who shows and measures rooms.

    `in_use`: the sessions of open rooms. `upkeeps`: gets the memory of each open room.
    `speakers_of`: returns who has spoken in a session or may be quoted there; it gets who has opted out by now.
    `fence`: makes the claim of a server's room stale, if it can. `newest_claim`: returns that of a server; None if the
    database does not say. `require_database`: raises `StoreError` if the database does not answer.
    `serve`: answers what a room asks of its place, while it is entered. `opened_by`: the mark of this process.
    `data_folder`: the mark of its data folder. `figures`: of the rooms' processes.
    """

    processes: RoomProcesses
    participation: GuildParticipations
    choices: GuildStore
    servers: ServerSettingsBook
    clock: Clock
    observe: events.Observer
    measure: Callable[[], AbstractContextManager[events.Observer]]
    show_live: ShowOnMachine
    in_use: set[SessionId]
    upkeeps: WeakSet[RoomMemory]
    speakers_of: Callable[[SessionId, frozenset[str]], Awaitable[frozenset[str]]]
    fence: Callable[[int], Awaitable[None]]
    newest_claim: Callable[[int], Awaitable[int | None]]
    require_database: Callable[[], Awaitable[None]]
    serve: Callable[[Place, MessageLink], AbstractContextManager[None]]
    figures: MachineFigures
    opened_by: str = ""
    data_folder: str = ""
