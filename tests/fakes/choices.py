"""In-memory stores for what servers have chosen and for opt-outs."""

from __future__ import annotations

from bot.clock import Clock
from bot.participation.guild_state import GuildStates
from bot.participation.settings import ParticipationSettings
from bot.server_settings import DEFAULTS, MemoryServerSettings, ServerSettings, no_server_settings
from compaction.errors import StoreError
from tests.fakes.clock import FakeClock

FULL = "The disk is full. Make room."


class FailingServerSettings(MemoryServerSettings):
    """A store of what servers have chosen. If `broken` is set, nothing can be written. `newest`: stored last."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.newest = DEFAULTS

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        """Store it, or fail."""
        if self.broken:
            raise StoreError(FULL)
        await super().put(guild_id, settings, by=by)
        self.newest = settings


class FakeOptOuts:
    """Implements `bot.store.servers.OptOutStore` without a database. If `broken` is set, every operation fails."""

    def __init__(self) -> None:
        self.out: dict[int, frozenset[int]] = {}
        self.broken = False

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the ids of the people in this guild who do not want to be heard."""
        self._check()
        return self.out.get(guild_id, frozenset())

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether this person has opted out."""
        self._check()
        known = self.out.get(guild_id, frozenset())
        self.out[guild_id] = known | {person_id} if out else known - {person_id}

    def _check(self) -> None:
        if self.broken:
            raise StoreError(FULL)


def guild_states(clock: Clock | None = None) -> GuildStates:
    """Return the participation of servers that have chosen nothing."""
    return GuildStates(
        no_server_settings(),
        FakeOptOuts(),
        ParticipationSettings(),
        wake_names=("Roomtone",),
        clock=clock or FakeClock(),
    )
