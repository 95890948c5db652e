"""Which rooms somebody may see on the dashboard. Pure; `bot.discord.dashboard_access` finds out about people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bot.readers import NOTHING as NO_WORDS
from bot.readers import WHOLE, reading_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from bot.readers import AttendedSession, Reader, Reading


@dataclass(frozen=True, slots=True)
class Access:
    """What one person may see. `channels`: by server, the voice channels whose rooms they see; None: all of them.

    `prompts`: the servers of which they see what the model saw. `readers`: by server, the person as `bot.readers` knows
    them: which of the words in these rooms and prompts they may read.
    `is_whole`: False: Discord has not answered about some server, of which they see nothing meanwhile.
    """

    channels: Mapping[int, frozenset[int]] | None = field(default_factory=dict)
    prompts: frozenset[int] = frozenset()
    readers: Mapping[int, Reader] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def is_nothing(self) -> bool:
        return self.channels is not None and not self.channels and not self.prompts

    def sees(self, guild_id: int | None, channel_id: int | None) -> bool:
        if self.channels is None:
            return True
        return guild_id is not None and channel_id in self.channels.get(guild_id, frozenset())

    def reading(self, session: AttendedSession) -> Reading:
        """Return what they may read of a session. Whoever runs the bot may read all that is stored."""
        if self.channels is None:
            return WHOLE
        reader = self.readers.get(session.guild_id or 0)
        return NO_WORDS if reader is None else reading_of(reader, session)

    def hears(self, guild_id: int, channel_id: int, present: Collection[str]) -> bool:
        """Return whether they may read what was just said in a channel. `present`: the ids of those who heard it."""
        reader = self.readers.get(guild_id)
        if self.reads_whole(guild_id, channel_id):
            return True
        return reader is not None and channel_id in reader.told and reader.person_id in present

    def reads_whole(self, guild_id: int, channel_id: int) -> bool:
        """Return whether the whole history of a channel is open to them."""
        reader = self.readers.get(guild_id)
        return self.channels is None or (reader is not None and channel_id in reader.opened)

    def reads_everything(self, guild_id: int | None) -> bool:
        """Return whether they may read what was said in all voice channels of a server."""
        reader = self.readers.get(guild_id or 0)
        return self.channels is None or (reader is not None and reader.reads_everything)

    def sees_prompts(self, guild_id: int | None) -> bool:
        return self.channels is None or guild_id in self.prompts


EVERYTHING = Access(None)
NOTHING = Access()


class Directory(Protocol):
    """Names and people of the servers that the bot is on. `bot.discord.dashboard_access` implements it."""

    @property
    def client_id(self) -> int | None:
        """Return the id of the bot's application on Discord, which is its OAuth2 client id too."""

    async def names(self, places: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], tuple[str, str]]:
        """Return the names of servers and voice channels, by their ids, as far as the bot is there. Never raises."""

    async def access_of(self, user_id: int) -> Access:
        """Return what a person may see now, by their roles and permissions. Never raises: the unknown see nothing."""
