"""What Discord does not tell of voice channels: who came and left while it was away, whether somebody else has taken
the bot out; and on a stage, how to become a speaker.

After a session that could not be resumed Discord shows each server anew, and sends no event for who came or left in the
meantime. Without `VoicePresence` a newcomer would be heard who has not had the notice.

Discord says the same whether the bot leaves a channel or somebody takes it out, so `VoiceRequests` knows what this
process has asked for. What an earlier process has asked for does not count: its voice session ends by itself some time
after it. Who takes the bot out after it has asked to leave, and before Discord has said that it left, is not seen:
Discord says once that the bot is out, whoever came first. If its room ends, that is what they wanted. If the room moves
or connects anew, the bot comes in once more, and they can take it out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bot.discord.posting import attempt
from bot.discord.voice_channels import person_of, vocal_channels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import discord

    from bot.channel.port import Person

NOWHERE = (None, None)


class Move(NamedTuple):
    """One person came, left or changed the channel. None: no voice channel."""

    person: Person
    before: int | None
    after: int | None


class VoicePresence:
    """The people in voice channels, by server, without this bot itself."""

    def __init__(self) -> None:
        self._servers: dict[int, dict[int, tuple[Person, int]]] = {}

    def note(self, guild_id: int, move: Move) -> None:
        """Remember a move that the rooms are told of. Before the first look at a server it is not needed: at the start
        people move while discord.py still waits for other servers.
        """
        people = self._servers.get(guild_id)
        if people is None:
            return
        if move.after is None:
            people.pop(move.person.id, None)
        else:
            people[move.person.id] = (move.person, move.after)

    def look(self, guild: discord.Guild) -> Sequence[Move]:
        """Compare with what Discord shows of a server now, and return what nobody was told of. The first look at a
        server tells nothing.
        """
        now = self._present(guild)
        before = self._servers.get(guild.id)
        self._servers[guild.id] = now
        if before is None:
            return ()
        moves = [
            Move(person, before.get(number, NOWHERE)[1], now.get(number, NOWHERE)[1])
            for number, (person, _) in (before | now).items()
        ]
        return tuple(each for each in moves if each.before != each.after)

    def forget(self, guild_id: int) -> None:
        """Forget a server that the bot has left."""
        self._servers.pop(guild_id, None)

    def _present(self, guild: discord.Guild) -> dict[int, tuple[Person, int]]:
        found = [(user_id, channel.id) for channel in vocal_channels(guild) for user_id in channel.voice_states]
        known = self._servers.get(guild.id, {})
        present: dict[int, tuple[Person, int]] = {}
        for user_id, channel_id in found:
            member = guild.get_member(user_id)
            if member is not None and user_id != guild.me.id:
                present[user_id] = (person_of(member), channel_id)
            elif user_id in known:
                present[user_id] = (known[user_id][0], channel_id)
        return present


class VoiceRequests:
    """The last requests, by server."""

    def __init__(self) -> None:
        self._wants_in: set[int] = set()
        # Where the bot has asked to leave, and Discord has not said that it has left.
        self._leaves: set[int] = set()

    def on_request(self, guild_id: int, channel_id: int | None) -> None:
        """Discord is asked to let the bot into a channel; None: out of the one that it is in."""
        if channel_id is None:
            self._wants_in.discard(guild_id)
            self._leaves.add(guild_id)
        else:
            self._wants_in.add(guild_id)

    def on_entered(self, guild_id: int) -> None:
        """Discord says that the bot was in no channel and is in one. It says so after whatever it had to say before."""
        self._leaves.discard(guild_id)

    def on_left(self, guild_id: int) -> bool:
        """Discord says that the bot has left. Return whether somebody else wanted that, or the channel is gone."""
        if guild_id in self._leaves:
            self._leaves.discard(guild_id)
            return False
        is_taken_out = guild_id in self._wants_in
        self._wants_in.discard(guild_id)
        return is_taken_out

    def forget(self, guild_id: int) -> None:
        """Forget a server that the bot has left."""
        self._wants_in.discard(guild_id)
        self._leaves.discard(guild_id)


async def take_the_stage(me: discord.Member, stage: discord.StageChannel) -> None:
    """Become a speaker if permitted, and otherwise request to speak. `me`: the bot as a listener in `stage`."""
    request = me.edit(suppress=False) if stage.permissions_for(me).mute_members else me.request_to_speak()
    await attempt(request, None, event="stage_not_taken", channel_id=stage.id)
