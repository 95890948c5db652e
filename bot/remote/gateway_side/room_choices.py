"""Tells the process that runs a room what its server has chosen, and stores what is changed there.

Only the gateway process stores: with two caches of one row, the later write would undo the other's choice.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.remote.messages.room_messages import ChangeServers, ChoiceChanged, ServersChanged, StoreSilence
from bot.server_settings import from_json, to_json

if TYPE_CHECKING:
    from contextlib import ExitStack

    from bot.guild import GuildChoice
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.gateway_side.gateway_parts import GatewayParts
    from bot.remote.gateway_side.remote_participation import RemoteParticipation
    from bot.remote.link.message_link import MessageLink
    from bot.server_settings import ServerSettings


class RoomChoices:
    """The choices of one room's server. `participation`: the room's. `link`: leads to its process."""

    def __init__(
        self,
        parts: GatewayParts,
        guild: GuildParticipation,
        participation: RemoteParticipation,
        link: MessageLink,
    ) -> None:
        self._parts = parts
        self._guild = guild
        self._participation = participation
        self._link = link
        link.handlers.answer(StoreSilence, self._store_silence)
        link.handlers.answer(ChangeServers, self._change_servers)

    def watch(self, stack: ExitStack) -> None:
        """Tell the room what somebody changes, until `stack` is closed."""
        stack.enter_context(self._parts.servers.watched(self._on_servers))
        stack.enter_context(self._parts.choices.watched(self._on_choice))

    async def tell(self) -> None:
        """Tell the room what holds now. Raises `StoreError`."""
        guild_id = self._guild.guild_id
        self._on_servers(guild_id, self._parts.servers.of(guild_id))
        self._on_choice(guild_id, await self._parts.choices.choice(guild_id))

    def _on_choice(self, guild_id: int, choice: GuildChoice) -> None:
        if guild_id == self._guild.guild_id and self._participation.runs:
            self._link.tell(ChoiceChanged(choice))

    def _on_servers(self, guild_id: int, settings: ServerSettings) -> None:
        if guild_id == self._guild.guild_id and self._participation.runs:
            self._link.tell(ServersChanged(to_json(settings)))

    async def _store_silence(self, told: StoreSilence) -> None:
        self._guild.silence = told.silence
        # What a command changed meanwhile was told with the silence of before.
        await self._participation.confirm()
        await self._parts.participation.store_silence(self._guild, by=told.by)

    async def _change_servers(self, told: ChangeServers) -> None:
        servers, guild_id = self._parts.servers, self._guild.guild_id
        listen_only = from_json(told.servers).listen_only
        # All else may have been changed by a manager meanwhile.
        await servers.change(guild_id, lambda now: replace(now, listen_only=listen_only), by=None)
        # After the answer, with which the room lets apply what it has asked for.
        asyncio.get_running_loop().call_soon(lambda: self._on_servers(guild_id, servers.of(guild_id)))
