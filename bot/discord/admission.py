"""Decides which servers the bot serves, and makes the link by which somebody adds it to theirs, with exactly the
permissions that it uses there. It tells other servers in one sentence that it leaves, and leaves them.

Anybody can invite a public bot. Without this check its keys, models and tools would serve strangers, and whoever
invites it is a manager on a server of their own.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING

import discord
import structlog

from bot.channel.markdown import in_message
from bot.discord.permissions import invited
from bot.discord.posting import attempt, post_message, unless_gone
from bot.texts.text import Text, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.settings import DiscordSettings


log = structlog.get_logger()

# A command has to be answered within 3 s. This check may come before it, and its work takes up to `DEFER_AFTER_S`
# (`bot.discord.answers`) until Discord is told to wait.
CHECK_TIMEOUT_S = 1.5

UNINVITED = Text(
    "I only work on servers that the owner of this bot has chosen, so I am leaving. Ask this person "
    "to admit your server: {guild_id}."
)


class Verdict(Enum):
    """Whether the bot serves a server. Where it does not, the value is the answer to a command."""

    SERVED = verbatim("")
    UNINVITED = Text("I only work on servers that the owner of this bot has chosen. This server is not one of them.")
    # Discord did not answer: nothing is done there, and the bot stays.
    UNKNOWN = Text("I could not check if I am allowed to work on this server. Try again in a moment.")


def owners_of(settings: DiscordSettings, application: discord.AppInfo | None) -> frozenset[int]:
    """Return the ids of the people who run the bot: those in the settings, or those whom Discord names.

    Discord names the application's owner, or its team's owner, administrators and developers.
    """
    if settings.owners or application is None:
        return frozenset(settings.owners)
    team = application.team
    if team is None:
        return frozenset({application.owner.id})
    trusted = (discord.TeamMemberRole.admin, discord.TeamMemberRole.developer)
    members = {
        member.id
        for member in team.members
        if member.role in trusted and member.membership_state is discord.TeamMembershipState.accepted
    }
    return frozenset(members if team.owner_id is None else members | {team.owner_id})


class GuildAdmission:
    """Checks servers once; a server that is served stays so until the bot leaves it, the operator refuses it, or the
    bot starts again.

    `client`: knows the application, and thereby its owners, once it has logged in. `decided`: for each server that the
    operator has decided on while the bot runs, whether it is served (`bot.store.servers`).
    """

    def __init__(
        self, client: discord.Client, settings: DiscordSettings, decided: Mapping[int, bool] | None = None
    ) -> None:
        self._client = client
        self._settings = settings
        self._decided = dict(decided or {})
        self._served: set[int] = set()

    @property
    def owners(self) -> frozenset[int]:
        return owners_of(self._settings, self._client.application)

    def refuses(self, person_id: int) -> bool:
        """Return whether the people who run the bot have chosen not to serve a person."""
        return person_id in self._settings.refused_people

    async def check(self, guild: discord.Guild) -> Verdict:
        """Return whether the bot serves a server: as the operator has decided; else one in the settings; without any
        there, one that an owner manages.

        It is not enough that they are a member: anybody may invite a bot into a server that its owner has once joined.
        """
        if guild.id in self._decided:
            return Verdict.SERVED if self._decided[guild.id] else Verdict.UNINVITED
        if self._settings.guilds:
            return Verdict.SERVED if guild.id in self._settings.guilds else Verdict.UNINVITED
        if guild.id in self._served:
            return Verdict.SERVED
        if guild.owner_id in self.owners:
            self._served.add(guild.id)
            return Verdict.SERVED
        found = await asyncio.gather(*(member_now(guild, each, within_s=CHECK_TIMEOUT_S) for each in self.owners))
        if any(not isinstance(each, NoMember) and each.guild_permissions.manage_guild for each in found):
            self._served.add(guild.id)
            return Verdict.SERVED
        # In a new session discord.py knows the server before it knows its roles, and so what people may do.
        return Verdict.UNKNOWN if NoMember.UNKNOWN in found or not guild.roles else Verdict.UNINVITED

    async def serves(self, guild_id: int) -> bool:
        """Return whether the bot is known to serve a server that it is a member of."""
        guild = self._client.get_guild(guild_id)
        return guild is not None and await self.check(guild) is Verdict.SERVED

    async def admit(self, guild: discord.Guild) -> None:
        """Leave a server that the bot does not serve, after one sentence there. Never raises.

        A server that Discord cannot show now is left alone until it can.
        """
        if guild.unavailable or await self.check(guild) is not Verdict.UNINVITED:
            return
        # The terminal shows this too, where the bot of a mistyped id would only ask to be invited once more.
        remedy = (
            f"Type `roomtone servers admit {guild.id}` and invite me again if I shall serve this one; without that I "
            "leave after each invitation."
        )
        log.warning("guild_left", guild_id=guild.id, reason="uninvited", remedy=remedy)
        await _announce_leaving(guild)
        # If that fails, commands are refused there all the same.
        await attempt(guild.leave(), None, event="guild_not_left", guild_id=guild.id)

    def decide(self, decided: Mapping[int, bool]) -> frozenset[int]:
        """Let the operator's decisions hold, and return the servers that they refuse now and did not before."""
        refused = {each for each, served in decided.items() if not served and self._decided.get(each) is not False}
        self._decided = dict(decided)
        return frozenset(refused)

    def forget(self, guild_id: int) -> None:
        """Check a server anew if the bot is invited again."""
        self._served.discard(guild_id)


class NoMember(Enum):
    """Why there is no member: they are not on the server, or Discord has not said whether they are, or what they may
    do there.
    """

    NOT_THERE = auto()
    UNKNOWN = auto()


async def member_now(guild: discord.Guild, user_id: int, *, within_s: float) -> discord.Member | NoMember:
    """Return a member as Discord knows them now: nothing tells the bot when a role is taken away."""
    request = unless_gone(guild.fetch_member(user_id), NoMember.NOT_THERE)
    return await attempt(request, NoMember.UNKNOWN, event="member_not_checked", within_s=within_s, guild_id=guild.id)


async def _announce_leaving(guild: discord.Guild) -> None:
    """Write the sentence into the first channel that takes it, beginning with the one for Discord's own messages."""
    channels = (guild.system_channel, *guild.text_channels)
    # Discord's library takes this permission from whoever may not see the channel.
    writable = (each for each in channels if each is not None and each.permissions_for(guild.me).send_messages)
    if (channel := next(writable, None)) is not None:
        text = in_message(UNINVITED.fill(guild_id=str(guild.id)), guild.preferred_locale.value)
        await attempt(post_message(channel, text), None, event="guild_not_told", guild_id=guild.id)


# Slash commands need the second; the first makes it a member.
SCOPES = ("bot", "applications.commands")


def invite_url(application_id: int) -> str:
    """Return the link. Whoever opens it chooses the server."""
    return discord.utils.oauth_url(application_id, permissions=invited(), scopes=SCOPES)
