"""What a server has chosen, in the room's process: told by the gateway process, which alone stores it.

These are the stores of the room's own `GuildParticipations`, `GuildPolicy` and `ServerSettingsBook`, so a room reads
the same objects as in one process. What the room itself changes goes to the gateway process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.errors import BotError
from bot.guild import GuildChoice
from bot.remote.messages.room_messages import ChangeServers, StoreSilence
from bot.server_settings import from_json, to_json
from bot.texts.text import sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.remote.link.message_link import Peer
    from bot.remote.messages.frames import Request
    from bot.server_settings import ServerSettings

# The gateway process writes to its database meanwhile.
STORE_WITHIN_S = 10.0


class ReplicatedChoices:
    """The server's choices. Implements `bot.guild.GuildChoices`. Set `told` to what the gateway process has told.

    `unsaved_by`: who asked aloud for a silence that could not be stored; 0: nobody.
    """

    def __init__(self, gateway: Peer) -> None:
        self._gateway = gateway
        self.told = GuildChoice()
        self.unsaved_by = 0

    async def choice(self, _guild_id: int) -> GuildChoice:
        return self.told

    async def choose(self, _guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Have a silence stored that somebody asked for aloud; a room changes nothing else. Raises `StoreError`."""
        silence = change(self.told).silence
        self.told = replace(self.told, silence=silence)
        self.unsaved_by = by
        await _stored(self._gateway, StoreSilence(silence, by))
        self.unsaved_by = 0
        return self.told


class ReplicatedOptOuts:
    """The people who opted out on the server. Implements `bot.participation.waiting_opt_outs.OptOuts`. Set `told`
    before the server's participation is read.
    """

    def __init__(self) -> None:
        self.told: frozenset[int] = frozenset()

    async def of(self, _guild_id: int) -> frozenset[int]:
        return self.told

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        raise NotImplementedError("people opt out by commands, which the gateway process answers")


class ReplicatedConsent:
    """Whether the bot hears only people who agreed, as the gateway process said when the room began. Set `asks` before
    the server's participation is read.
    """

    def __init__(self) -> None:
        self.asks = False

    def asks_on(self, _guild_id: int) -> bool:
        return self.asks


class ReplicatedServerSettings:
    """The server's settings. Implements `bot.server_settings.ServerSettingsStore`."""

    def __init__(self, gateway: Peer) -> None:
        self._gateway = gateway
        self._told: dict[int, ServerSettings] = {}

    def tell(self, guild_id: int, servers: str) -> ServerSettings:
        """Take over what the gateway process has told, and return it. Raises `ValueError`."""
        told = self._told[guild_id] = from_json(servers)
        return told

    async def all(self) -> Mapping[int, ServerSettings]:
        return dict(self._told)

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        """Have them stored. Raises `StoreError`."""
        await _stored(self._gateway, ChangeServers(to_json(settings)))
        self._told[guild_id] = settings


async def _stored(gateway: Peer, request: Request[None]) -> None:
    try:
        await gateway.ask(request, within_s=STORE_WITHIN_S)
    except BotError as error:
        raise StoreError(sentence_of(error)) from error
