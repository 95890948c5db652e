"""Who is in which voice channel, as the rooms have been told: so they can be told what changed while Discord was away.

After a session that could not be resumed Discord shows each server anew, and sends no event for who came or left in the
meantime. Without this a newcomer would be heard who has not had the notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import discord

    from bot.channel.port import Person


class Move(NamedTuple):
    """One person came, left or changed the channel. None: no voice channel."""

    person: Person
    before: int | None
    after: int | None


class VoicePresence:
    """The people in voice channels, by server, without this bot itself. `person_of`: describes a member."""

    def __init__(self, person_of: Callable[[discord.Member], Person]) -> None:
        self._person_of = person_of
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
        gone = [Move(person, channel, None) for number, (person, channel) in before.items() if number not in now]
        come = [Move(person, None, channel) for number, (person, channel) in now.items() if number not in before]
        changed = [
            Move(person, before[number][1], channel)
            for number, (person, channel) in now.items()
            if number in before and before[number][1] != channel
        ]
        return (*gone, *changed, *come)

    def forget(self, guild_id: int) -> None:
        """Forget a server that the bot has left."""
        self._servers.pop(guild_id, None)

    def _present(self, guild: discord.Guild) -> dict[int, tuple[Person, int]]:
        channels = (*guild.voice_channels, *guild.stage_channels)
        found = [(user_id, channel.id) for channel in channels for user_id in channel.voice_states]
        known = self._servers.get(guild.id, {})
        present: dict[int, tuple[Person, int]] = {}
        for user_id, channel_id in found:
            member = guild.get_member(user_id)
            if member is not None and user_id != guild.me.id:
                present[user_id] = (self._person_of(member), channel_id)
            elif user_id in known:
                present[user_id] = (known[user_id][0], channel_id)
        return present
