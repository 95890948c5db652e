"""Who may do what: the roles that the local guild has, and what they and a channel's overwrites grant.

A bot has a role of its own with what its invitation asks for, people have what a new guild grants to everybody, and
@everyone has what `GuildSpec.everyone` says: nothing by default, so that no bot lives on what others grant it.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from rehearsal.discord.guild.permissions import ALL, EVERYONE, MODERATOR, DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec, Role

_P = DiscordPermission
# Who may not write may not write these either, and who may not connect may do nothing else in voice.
_WRITTEN, _SPOKEN = _P.EMBED_LINKS | _P.ATTACH_FILES, _P.SPEAK | _P.MUTE_MEMBERS | _P.MOVE_MEMBERS


def all_roles(guild: GuildSpec) -> tuple[Role, ...]:
    """Return @everyone, the moderators' and the people's role, one for each bot, and the guild's own."""
    bots = (Role(guild.id + 3 + at, bot.name, guild.invited) for at, bot in enumerate(guild.bots))
    standing = (Role(guild.id, "@everyone", guild.everyone), Role(guild.id + 1, "Moderators", MODERATOR))
    return (*standing, Role(guild.id + 2, "Members", EVERYONE), *bots, *guild.roles)


def roles_of(guild: GuildSpec, user_id: int) -> list[Role]:
    """Return a member's roles without @everyone."""
    member, roles = guild.member(user_id), all_roles(guild)
    standing = 3 + guild.bots.index(member) if member in guild.bots else 2
    own = roles[1 : 2 if member.moderator else 1] + roles[standing : standing + 1]
    return [*own, *(role for role in guild.roles if role.id in member.role_ids)]


def permission_bits(guild: GuildSpec, user_id: int) -> int:
    """Return a member's permissions on the whole server."""
    bits = reduce(or_, (role.permissions for role in roles_of(guild, user_id)), guild.everyone)
    return ALL if guild.owner.id == user_id or bits & _P.ADMINISTRATOR else int(bits)


def channel_permissions(guild: GuildSpec, spec: Channel, user_id: int, *, in_thread: bool = False) -> int:
    """Return a member's permissions in one channel, or in its threads. Who may not see it may do nothing there.

    Overwrites count in Discord's order: of @everyone, of all roles together, of the member.
    """
    bits = permission_bits(guild, user_id)
    if bits == ALL:
        return bits
    roles = {role.id for role in roles_of(guild, user_id)}
    for ids in ({guild.id}, roles, {user_id}):
        found = [each for each in spec.all_overwrites(guild.id) if each.id in ids]
        # As plain numbers: the complement of a flag has only the bits that the flag knows.
        bits &= ~int(reduce(or_, (each.deny for each in found), 0))
        bits |= int(reduce(or_, (each.allow for each in found), 0))
    if not bits & (_P.SEND_MESSAGES_IN_THREADS if in_thread else _P.SEND_MESSAGES):
        bits &= ~int(_WRITTEN)
    if guild.is_voice(spec.id) and not bits & _P.CONNECT:
        bits &= ~int(_SPOKEN)
    return bits if bits & _P.VIEW_CHANNEL else 0
