"""The guild of the local Discord: its channels, people and bots. The module has only values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from rehearsal.discord.guild.permissions import INVITED
from rehearsal.errors import LocalDiscordError

# The bot under rehearsal, and a second one for tests with two bots.
ROOMTONE_BOT_ID = 1001
SPARE_BOT_ID = 1002
# So many members are named to somebody who has mistaken an id.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Overwrite:
    """What a channel or a category grants to and takes from a role or a member. `id`: the guild's id is @everyone's."""

    id: int
    allow: int = 0
    deny: int = 0


@dataclass(frozen=True, slots=True)
class Category:
    """A category of channels. Channels without overwrites of their own have its."""

    id: int
    name: str
    overwrites: tuple[Overwrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Channel:
    """A voice or text channel of the guild. `stage`: the channel is a stage, with speakers and an audience.

    `user_limit`: how many people it takes; 0: any number. `denied`: the permissions that nobody but the owner has
    there, unless `overwrites` grant them. `announces`: it is for announcements. `afk`: it is where people go who are
    away. `age_restricted`: for adults only.
    """

    id: int
    name: str
    stage: bool = False
    user_limit: int = 0
    denied: int = 0
    announces: bool = False
    afk: bool = False
    age_restricted: bool = False
    overwrites: tuple[Overwrite, ...] = ()
    category: Category | None = None

    def all_overwrites(self, guild_id: int) -> tuple[Overwrite, ...]:
        """Return the overwrites that count: the channel's own, or else those of its category."""
        own = (*self.overwrites, *((Overwrite(guild_id, deny=self.denied),) if self.denied else ()))
        return own or (() if self.category is None else self.category.overwrites)


@dataclass(frozen=True, slots=True)
class Role:
    """A role of the guild, beside @everyone's and the moderators'. `permissions`: the bits that it grants."""

    id: int
    name: str
    permissions: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A person or a bot of the guild. `moderator`: the member may manage and mute. The first person owns the guild.

    `locale`: the language of their Discord. `role_ids`: those of the guild's own roles that they have.
    `privileged_intents`: of a bot, those that its owner has allowed in the developer portal; see `intents.Intent`.
    """

    id: int
    name: str
    moderator: bool = False
    locale: str = "en-US"
    role_ids: tuple[int, ...] = ()
    privileged_intents: int = 0


def _default_people() -> tuple[Member, ...]:
    return (
        Member(2001, "Ada", moderator=True),
        Member(2002, "Ben"),
        Member(2003, "Chloe"),
        Member(2004, "Dmitri"),
        Member(2005, "Elin"),
        Member(2006, "Farid"),
    )


def _default_bots() -> tuple[Member, ...]:
    return (Member(ROOMTONE_BOT_ID, "Roomtone"), Member(SPARE_BOT_ID, "Spare"))


@dataclass(frozen=True, slots=True)
class GuildSpec:
    """The guild of a local Discord. Raises `LocalDiscordError` when an id is used twice."""

    id: int = 500
    name: str = "The local guild"
    voice_channels: tuple[Channel, ...] = (Channel(600, "Evening"), Channel(602, "Side room"))
    text_channel: Channel = Channel(601, "chat")
    more_text_channels: tuple[Channel, ...] = ()
    people: tuple[Member, ...] = field(default_factory=_default_people)
    bots: tuple[Member, ...] = field(default_factory=_default_bots)
    roles: tuple[Role, ...] = ()
    # The language that its owner has chosen for it.
    locale: str = "en-US"
    # The permissions of @everyone, and of each bot's own role: by default those of Roomtone's invitation.
    everyone: int = 0
    invited: int = INVITED
    # All members by their ids, people first.
    _by_id: dict[int, Member] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        channel_ids = [each.id for each in self.channels] + [each.id for each in self.categories]
        member_ids = [*(each.id for each in self.people), *(each.id for each in self.bots)]
        object.__setattr__(self, "_by_id", {each.id: each for each in (*self.people, *self.bots)})
        for what, ids in (("channels", channel_ids), ("members", member_ids)):
            twice = sorted(number for number, times in Counter(ids).items() if times > 1)
            if twice:
                raise LocalDiscordError(f"Two {what} of the guild share the id {twice[0]}. Give each its own.")
        if not self.voice_channels or not self.people:
            raise LocalDiscordError("The guild needs at least one voice channel and one person.")
        if any(number <= 0 for number in (self.id, *channel_ids, *member_ids)):
            raise LocalDiscordError("Ids of the guild, its channels and its members are positive numbers.")

    @property
    def channels(self) -> tuple[Channel, ...]:
        """All channels, voice channels first."""
        return (*self.voice_channels, self.text_channel, *self.more_text_channels)

    @property
    def categories(self) -> tuple[Category, ...]:
        """The categories that some channel is in."""
        return tuple(dict.fromkeys(each.category for each in self.channels if each.category is not None))

    @property
    def members(self) -> Collection[Member]:
        """All members, people first."""
        return self._by_id.values()

    @property
    def owner(self) -> Member:
        return self.people[0]

    def member(self, user_id: int) -> Member:
        """Return the member with this id. Raises `LocalDiscordError` for an unknown id."""
        if user_id not in self._by_id:
            raise LocalDiscordError(f"User {user_id} is not a member of the guild. Its members are {self._who()}.")
        return self._by_id[user_id]

    def has_member(self, user_id: int) -> bool:
        return user_id in self._by_id

    def is_bot(self, user_id: int) -> bool:
        return any(bot.id == user_id for bot in self.bots)

    def is_voice(self, channel_id: int) -> bool:
        return any(channel.id == channel_id for channel in self.voice_channels)

    def is_stage(self, channel_id: int) -> bool:
        return any(channel.id == channel_id and channel.stage for channel in self.voice_channels)

    def _who(self) -> str:
        return ", ".join(f"{member.id} ({member.name})" for member in islice(self.members, _MOST_NAMED))
