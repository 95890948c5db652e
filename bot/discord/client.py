"""The gateway client: its slash commands, its servers, and voice channel joins and leaves. `connection` runs it.

It decides nothing: it forwards commands and voice channel changes to the rooms.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord import app_commands

from bot.brain.tools.frozen_calls import TOO_LATE
from bot.channel.markdown import COMMAND_LINKS
from bot.channel.port import MembershipChange, RoomChannel
from bot.clock import Clock, SystemClock
from bot.discord.admission import GuildAdmission
from bot.discord.answers import CommandTranslator, answer
from bot.discord.chat import CALL_BUTTONS
from bot.discord.command_tree import CheckedCommandTree, over_buttons
from bot.discord.commands.joining import add_room_commands
from bot.discord.endpoint import IntentsClient, connector, name_itself
from bot.discord.listening_mark import ListeningMark
from bot.discord.posting import REQUEST_ERRORS, attempt
from bot.discord.posts import DiscordPosts
from bot.discord.refused_requests import log_refusal
from bot.discord.room_channel import DiscordRoomChannel
from bot.discord.typed_messages import TypedMessages
from bot.discord.voice_channels import person_of
from bot.discord.voice_presence import Move, VoicePresence, VoiceRequests, take_the_stage
from bot.errors import BotError
from bot.health import FaultKind, HealthFault, outage_fault
from bot.server_settings import ServerSettingsBook, no_server_settings
from bot.shards import ONLY_SHARD, Shards, ranges
from bot.texts.text import Text
from voice.circuit_breaker import Outage
from voice.transport.discord_gateway import VoiceChannel
from voice.transport.private.rest_pause import RetryTimes, lift_pauses_of_cancelled_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.room.rooms import Rooms
    from bot.settings import DiscordSettings
    from voice.transport.paced_sender import PacedSender

    AddCommands = Callable[[CheckedCommandTree], None]

# The start waits so long for it. Discord limits it for minutes after a few restarts.
REGISTER_TIMEOUT_S = 5.0
# Discord takes a new session of a bot so often (`max_concurrency` of GET /gateway/bot).
IDENTIFY_EVERY_S = 5.0
# What is known is answered sooner, and Discord waits for three seconds.
UNKNOWN_AFTER_S = 2.5
NOT_KNOWN = Text("These buttons no longer work. Use the command again, for example /settings.")
_TOO_MANY = 429

# discord.py comes back from most losses within seconds.
DISCORD_AWAY_S = 60.0
SHARD_AWAY = "If this goes on, check the network and status.discord.com. I reconnect by myself."

log = structlog.get_logger()


class ShardLosses:
    """The connections of `shards`, which all count as there at first."""

    def __init__(self, shards: Shards, clock: Clock) -> None:
        self.shards = shards
        self._clock = clock
        # The shards without a connection, with the monotonic seconds since when.
        self.away: dict[int, float] = {}

    def lost(self, shard: int) -> None:
        """Note that a shard has no connection. A second failure is the same loss."""
        if shard not in self.away:
            self.away[shard] = self._clock.monotonic()
            log.info("shard_disconnected", shard=shard, shard_count=self.shards.total)

    def back(self, shard: int, *, resumed: bool) -> None:
        """Note that a shard has a connection again. `resumed`: its session goes on."""
        if (since := self.away.pop(shard, None)) is not None:
            away_s = round(self._clock.monotonic() - since, 1)
            log.info("shard_connected", shard=shard, shard_count=self.shards.total, resumed=resumed, away_s=away_s)

    def faults(self) -> list[HealthFault]:
        """Return which connections are lost: for long, and for a moment."""
        found, now = list[HealthFault](), self._clock.monotonic()
        for is_long in (True, False):
            away = {shard: since for shard, since in self.away.items() if (now - since >= DISCORD_AWAY_S) is is_long}
            if not away:
                continue
            part = Text("My connection to Discord")
            if self.shards.is_divided:
                part = Text(
                    "My connection to Discord for shard {shard} of {total}",
                    shard=ranges(away),
                    total=self.shards.total,
                )
            instead = Text("I get no news from its servers, but I still hear you")
            outage = Outage(min(away.values()), None, BotError(SHARD_AWAY))
            found.append(outage_fault(FaultKind.DISCORD, part, instead, outage, blocks=is_long))
        return found


def mentions_of(commands: Sequence[app_commands.AppCommand]) -> dict[str, str]:
    """Return what mentions each command and subcommand that Discord knows, by its name."""
    found = {command.name: command.mention for command in commands}
    for command in commands:
        inner = [each for each in command.options if isinstance(each, app_commands.AppCommandGroup)]
        found |= {each.qualified_name: each.mention for each in inner}
        if inner:
            del found[command.name]
    return found


class RoomtoneClient(IntentsClient):
    """discord.py's client with our slash commands. Created by `connected`."""

    def __init__(
        self,
        settings: DiscordSettings,
        rooms: Rooms,
        more_commands: Sequence[AddCommands] = (),
        *,
        paced_sender: PacedSender | None = None,
        servers: ServerSettingsBook | None = None,
        shards: Shards = ONLY_SHARD,
        decided: Mapping[int, bool] | None = None,
        **sharding: Any,
    ) -> None:
        retry_times = RetryTimes()
        retry_times.trace.on_request_start.append(name_itself)
        retry_times.trace.on_request_end.append(log_refusal)
        super().__init__(connector=connector(settings), http_trace=retry_times.trace, **sharding)
        lift_pauses_of_cancelled_requests(self.http, retry_times)
        self._settings = settings
        self._rooms = rooms
        self._paced_sender = paced_sender
        self.admission = GuildAdmission(self, settings, decided)
        self.tree = CheckedCommandTree(
            self,
            admission=self.admission,
            rooms=rooms,
            servers=servers or no_server_settings(),
            shards=shards,
        )
        add_room_commands(self.tree, rooms, self.tree.servers, self.find_channel)
        for add in more_commands:
            add(self.tree)
        self.tree.apply_rules()
        self._typed_messages = TypedMessages(rooms, self.tree.servers, self.admission)
        self.voice_presence = VoicePresence()
        self.voice_requests = VoiceRequests()
        self.running: asyncio.Task[None] | None = None
        self._identified_at = float("-inf")
        # Not `shards`, which discord.py has already.
        self.own_shards = shards
        self.shard_losses = ShardLosses(shards, SystemClock())

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait until Discord takes a new session. discord.py would always wait, also long after the last."""
        await asyncio.sleep(max(0.0, self._identified_at + IDENTIFY_EVERY_S - time.monotonic()))
        self._identified_at = time.monotonic()

    async def setup_hook(self) -> None:
        await super().setup_hook()
        self.add_view(over_buttons(CALL_BUTTONS, TOO_LATE))
        for view in chain.from_iterable(make() for make in self.tree.lasting_views):
            self.add_view(view)
        await self.tree.set_translator(CommandTranslator())
        await self._register_commands()

    async def _register_commands(self) -> None:
        """Have Discord know the commands, and know their ids. If it does not take them now, those of the last start
        stay. Raises `discord.HTTPException` for commands that it never takes.
        """
        try:
            async with asyncio.timeout(REGISTER_TIMEOUT_S):
                # They are the same in all servers; during an upgrade an older process must not undo them.
                known = await (self.tree.sync() if self.own_shards.leads else self.tree.fetch_commands())
            COMMAND_LINKS.know(mentions_of(known))
        except REQUEST_ERRORS as error:
            if isinstance(error, discord.HTTPException) and error.status != _TOO_MANY and error.status < 500:
                raise
            log.warning("commands_not_registered", error_class=type(error).__name__, remedy="Start again later.")

    async def on_ready(self) -> None:
        log.info("discord_connected", guild_count=len(self.guilds), shards=list(self.own_shards.ids))
        for guild in self.guilds:
            await self._remove_leftover(guild)

    async def _remove_leftover(self, guild: discord.Guild) -> None:
        """Remove the mark of a crashed process. A server that Discord cannot show now has its turn once it can."""
        if not guild.unavailable and self._rooms.room_channel_of(guild.id) is None:
            await ListeningMark().remove(guild)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        await self.admission.admit(guild)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """Check a server that Discord shows: each one at the start, and one that comes back after an outage."""
        await self.admission.admit(guild)
        if self.is_ready():
            await self._remove_leftover(guild)

    async def on_message(self, message: discord.Message) -> None:
        await self._typed_messages.on_message(message)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        self.admission.forget(guild.id)
        self.voice_presence.forget(guild.id)
        self.voice_requests.forget(guild.id)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Handle voice state updates at once, then let discord.py run its listeners.

        discord.py runs listeners later, each in a task, and reuses the state object. After two quick moves, both
        listeners would see the second move.
        """
        if self.loop is discord.utils.MISSING:
            # It is closed: discord.py waits some time for the last server, and then says so all the same.
            return
        self._note_connection(event, *args)
        about = args[0] if args else None
        guild = about if isinstance(about, discord.Guild) else getattr(about, "guild", None)
        with self.logged_shard(guild.id if isinstance(guild, discord.Guild) else None):
            if event == "voice_state_update":
                self._moved(*args)
            elif event in {"guild_available", "guild_join"}:
                self._catch_up_on(*args)
            super().dispatch(event, *args, **kwargs)

    def _note_connection(self, event: str, *args: Any) -> None:
        """Note that a shard's connection is lost or there. With several shards discord.py tells of each twice, and only
        `shard_…` says which one.
        """
        if event.startswith("shard_") is not self.own_shards.is_divided:
            return
        shard = args[0] if self.own_shards.is_divided else self.own_shards.ids[0]
        match event.removeprefix("shard_"):
            case "disconnect":
                self.shard_losses.lost(shard)
            case "ready" | "resumed" as how:
                self.shard_losses.back(shard, resumed=how == "resumed")

    def logged_shard(self, guild_id: int | None) -> AbstractContextManager[None]:
        """Name the shard of a server in the log lines of the block, and of the tasks that it starts."""
        if guild_id is None or not self.own_shards.is_divided:
            return nullcontext()
        return structlog.contextvars.bound_contextvars(shard=self.own_shards.of(guild_id))

    def _moved(self, member: discord.Member, before: discord.VoiceState, after: discord.VoiceState) -> None:
        """Forward joins and leaves of voice channels; ignore mutes and other changes.

        The voice connection handles the bot's own joins and leaves, because it also reconnects by leaving and joining.
        """
        if before.channel == after.channel:
            return
        if self.user is not None and member.id == self.user.id:
            self._bot_moved(member.guild.id, before, after)
            return
        left = None if before.channel is None else before.channel.id
        entered = None if after.channel is None else after.channel.id
        self._forward_move(member.guild.id, Move(person_of(member), left, entered))

    def _bot_moved(self, guild_id: int, before: discord.VoiceState, after: discord.VoiceState) -> None:
        """Forward what others do with the bot. It never changes channels by itself, so if it has, somebody moved it."""
        if after.channel is None:
            if self.voice_requests.on_left(guild_id):
                self._rooms.on_bot_taken_out(guild_id)
        elif before.channel is None:
            self.voice_requests.on_entered(guild_id)
        elif (room_channel := self.find_channel(guild_id, after.channel.id)) is not None:
            self._rooms.on_bot_moved(room_channel)

    def _catch_up_on(self, guild: discord.Guild) -> None:
        """Forward what happened in a server's voice channels while Discord did not tell."""
        moves = self.voice_presence.look(guild)
        for move in moves:
            self._forward_move(guild.id, move)
        if moves:
            log.info("moves_noticed_late", guild_id=guild.id, count=len(moves))

    def _forward_move(self, guild_id: int, move: Move) -> None:
        self.voice_presence.note(guild_id, move)
        person, left, entered = move
        if left is not None:
            self._rooms.on_membership(guild_id, left, MembershipChange(person, joined=False))
        if entered is not None:
            self._rooms.on_membership(guild_id, entered, MembershipChange(person, joined=True))
        if left is not None and (room_channel := self.find_channel(guild_id, left)) is not None:
            self._rooms.auto_joiner.on_departure(room_channel)
        if entered is not None and (room_channel := self.find_channel(guild_id, entered)) is not None:
            self._rooms.auto_joiner.on_arrival(room_channel, person, came_from=left)

    async def on_voice_state_update(
        self, member: discord.Member, before: discord.VoiceState, after: discord.VoiceState
    ) -> None:
        """Ask to speak when the bot joins a stage channel. If a moderator makes it a listener later, it does not ask
        again.
        """
        came_suppressed = before.channel is None and after.channel is not None and after.suppress
        if self.user is None or member.id != self.user.id or not came_suppressed:
            return
        here, stage = self._rooms.room_channel_of(member.guild.id), after.channel
        if here is not None and isinstance(stage, discord.StageChannel) and stage.id == here.channel_id:
            await take_the_stage(member, stage)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Answer a press or a window that nothing knows here: its message is from before a restart."""
        if interaction.type not in (discord.InteractionType.component, discord.InteractionType.modal_submit):
            return
        await asyncio.sleep(UNKNOWN_AFTER_S)
        if not interaction.response.is_done():
            log.info("press_not_known", guild_id=interaction.guild_id)
            await attempt(answer(interaction, NOT_KNOWN), None, event="answer_not_sent")

    async def decide(self, decided: Mapping[int, bool]) -> None:
        """Let the operator's decisions about servers hold (`GuildAdmission.decided`), and leave those refused now."""
        for guild_id in self.admission.decide(decided):
            if (guild := self.get_guild(guild_id)) is not None:
                await self._rooms.leave(guild_id)
                await self.admission.admit(guild)

    def find_channel(self, guild_id: int, channel_id: int) -> RoomChannel | None:
        """Return a voice channel by its ids; None if it does not exist."""
        guild = self.get_guild(guild_id)
        channel = guild.get_channel(channel_id) if guild else None
        if isinstance(channel, VoiceChannel):
            return DiscordRoomChannel(
                self,
                channel,
                self._paced_sender,
                owners=self.admission.owners,
                servers=self.tree.servers,
                buttons=self.tree.buttons,
                require_e2ee=self._settings.require_e2ee,
                voice_requests=self.voice_requests,
            )
        return None

    def find_posts(self, guild_id: int, channel_id: int) -> DiscordPosts | None:
        """Return the bot's messages in a channel or a thread. None: another process serves the server, or the bot has
        left it and can change nothing there.
        """
        if (guild := self.get_guild(guild_id)) is None:
            return None
        channel = self.get_partial_messageable(channel_id, guild_id=guild_id)
        return DiscordPosts(self, channel, guild.preferred_locale.value, guild.name)


class ShardedRoomtoneClient(RoomtoneClient, discord.AutoShardedClient):
    """The client with a connection for each of its shards.

    With one shard it is not used: after a long loss it identifies anew, where a plain client still resumes.
    """

    def __init__(self, *args: Any, shards: Shards, **kwargs: Any) -> None:
        super().__init__(*args, shards=shards, shard_ids=list(shards.ids), shard_count=shards.total, **kwargs)
