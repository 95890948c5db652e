"""The JSON objects of Discord's API v10, as the local Discord sends them. Pure functions of the guild and its state.

The fields are those that discord.py 2.7.1 and @discordjs/voice read, and those that Discord always sends.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from rehearsal.discord.guild.granted import all_roles, permission_bits, roles_of
from rehearsal.discord.guild.identity import Intent, application_flags
from rehearsal.discord.guild.spec import Category, Channel, GuildSpec, Member, Overwrite, Role

Json: TypeAlias = dict[str, Any]

# Discord's own constants for channel and message types.
TEXT_CHANNEL, VOICE_CHANNEL, CATEGORY, ANNOUNCEMENT_CHANNEL, STAGE_CHANNEL = 0, 2, 4, 5, 13
_PUBLIC_THREAD = 11
_DEFAULT_MESSAGE, _REPLY, _COMMAND_REPLY = 0, 19, 20
# Of a server with more members only some are sent.
_LARGE = 250
# What one answer to a request for members has: of those by ids or names, and of all.
_MOST_DESCRIBED, _IN_CHUNK, _NONCE_BYTES = 100, 1_000, 32
_JOINED_AT = "2024-01-01T00:00:00+00:00"
# What of a message a bot does not get that may not read it.
_IS_VOICE_MESSAGE = 1 << 13
# A flat line: 256 amplitudes at most, as base64.
_WAVEFORM = "gICAgICAgIA="
_ALL_MENTIONS: Json = {"parse": ["users", "roles", "everyone"], "replied_user": True}
_UNREAD: Json = {"content": "", "embeds": [], "attachments": [], "components": []}


def user(member: Member, *, bot: bool) -> Json:
    """Return a user object. `username` is lower-case; people see `global_name`."""
    return {
        "id": str(member.id),
        "username": member.name.lower().replace(" ", "_"),
        "discriminator": "0",
        "global_name": member.name,
        "avatar": None,
        "bot": bot,
        "public_flags": 0,
        "flags": 0,
        "primary_guild": None,
    }


def guild_user(guild: GuildSpec, user_id: int) -> Json:
    """Return the user object of a member of the guild."""
    return user(guild.member(user_id), bot=guild.is_bot(user_id))


def own_user(guild: GuildSpec, bot_id: int) -> Json:
    """Return a bot's user object as the bot itself sees it."""
    return {**guild_user(guild, bot_id), "mfa_enabled": True, "locale": guild.locale, "verified": True}


def guild_member(guild: GuildSpec, user_id: int) -> Json:
    """Return the guild member object with the user object inside."""
    return {
        "user": guild_user(guild, user_id),
        "nick": None,
        "avatar": None,
        "banner": None,
        "communication_disabled_until": None,
        "roles": [str(role.id) for role in roles_of(guild, user_id)],
        "joined_at": _JOINED_AT,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
    }


def members_chunks(guild: GuildSpec, asked: Json, describe: Callable[[int], Json]) -> list[Json]:
    """Return the data of each GUILD_MEMBERS_CHUNK for a request (op 8): by ids, by the beginning of a name, or for all.

    By ids or names Discord describes 100 members, or fewer if the request's limit says so, and tells which ids it does
    not know. Of all members a chunk has 1,000. A nonce of more than 32 bytes is left out. `describe`: returns a member.
    """
    ids, prefix, limit = asked.get("user_ids"), str(asked.get("query") or "").lower(), asked.get("limit")
    most = limit if isinstance(limit, int) and 0 < limit < _MOST_DESCRIBED else _MOST_DESCRIBED
    known = {str(member.id): member for member in guild.members}
    named = [str(each) for each in (ids if isinstance(ids, list) else [ids])][:_MOST_DESCRIBED] if ids else []
    found = [known[each] for each in dict.fromkeys(named or known) if each in known]
    found = [member for member in found if member.name.lower().startswith(prefix)][: most if ids or prefix else None]
    parts = [found[first : first + _IN_CHUNK] for first in range(0, len(found), _IN_CHUNK)] or [[]]
    nonce = str(asked.get("nonce") or "")
    about: Json = {
        "guild_id": str(guild.id),
        "chunk_count": len(parts),
        "not_found": [each for each in named if each not in known],
        **({"nonce": nonce} if 0 < len(nonce.encode()) <= _NONCE_BYTES else {}),
        **({"presences": []} if asked.get("presences") else {}),
    }
    return [
        {**about, "chunk_index": index, "members": [describe(member.id) for member in part]}
        for index, part in enumerate(parts)
    ]


def channel(guild: GuildSpec, spec: Channel) -> Json:
    """Return the channel object."""
    kind = (STAGE_CHANNEL if spec.stage else VOICE_CHANNEL) if guild.is_voice(spec.id) else TEXT_CHANNEL
    common: Json = {
        "type": ANNOUNCEMENT_CHANNEL if spec.announces else kind,
        "id": str(spec.id),
        "guild_id": str(guild.id),
        "name": spec.name,
        "position": guild.channels.index(spec),
        "permission_overwrites": _overwrites(guild, spec.all_overwrites(guild.id)),
        "parent_id": None if spec.category is None else str(spec.category.id),
        "nsfw": spec.age_restricted,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "flags": 0,
    }
    if guild.is_voice(spec.id):
        voice = {"bitrate": 64000, "user_limit": spec.user_limit, "rtc_region": None, "video_quality_mode": 1}
        return {**common, **voice}
    return {**common, "topic": None}


def thread(guild: GuildSpec, *, thread_id: int, parent_id: int, name: str, owner_id: int) -> Json:
    """Return a public thread of a text channel."""
    return {
        "id": str(thread_id),
        "guild_id": str(guild.id),
        "parent_id": str(parent_id),
        "owner_id": str(owner_id),
        "name": name,
        "type": _PUBLIC_THREAD,
        "message_count": 0,
        "member_count": 1,
        "rate_limit_per_user": 0,
        "flags": 0,
        "total_message_sent": 0,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 1440,
            "archive_timestamp": now(),
            "locked": False,
        },
    }


def category(guild: GuildSpec, found: Category) -> Json:
    """Return the channel object of a category."""
    return {
        "id": str(found.id),
        "guild_id": str(guild.id),
        "type": CATEGORY,
        "name": found.name,
        "position": guild.categories.index(found),
        "permission_overwrites": _overwrites(guild, found.overwrites),
        "parent_id": None,
        "flags": 0,
    }


def _overwrites(guild: GuildSpec, overwrites: Iterable[Overwrite]) -> list[Json]:
    return [
        {
            "id": str(each.id),
            "type": int(guild.has_member(each.id)),
            "allow": str(int(each.allow)),
            "deny": str(int(each.deny)),
        }
        for each in overwrites
    ]


def channels(guild: GuildSpec) -> list[Json]:
    """Return all channels with their categories."""
    return [*(category(guild, each) for each in guild.categories), *(channel(guild, each) for each in guild.channels)]


def roles(guild: GuildSpec) -> list[Json]:
    """Return the guild's roles, @everyone first."""
    return [_role(role, position=at) for at, role in enumerate(all_roles(guild))]


def _role(role: Role, *, position: int) -> Json:
    return {
        "id": str(role.id),
        "name": role.name,
        "permissions": str(int(role.permissions)),
        "position": position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "managed": False,
        "mentionable": False,
        "flags": 0,
    }


def my_guild(guild: GuildSpec, user_id: int) -> Json:
    """Return the guild in the list of a member's guilds, with what the member may do there."""
    own = {"owner": guild.owner.id == user_id, "permissions": str(permission_bits(guild, user_id))}
    return {"id": str(guild.id), "name": guild.name, "icon": None, "banner": None, "features": [], **own}


def guild_object(guild: GuildSpec) -> Json:
    """Return the guild object as REST sends it."""
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner.id),
        "icon": None,
        "splash": None,
        "discovery_splash": None,
        "description": None,
        "banner": None,
        "region": "local",
        "afk_timeout": 300,
        "afk_channel_id": next((str(each.id) for each in guild.voice_channels if each.afk), None),
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "roles": roles(guild),
        "emojis": [],
        "stickers": [],
        "features": [],
        "mfa_level": 0,
        "application_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "safety_alerts_channel_id": None,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_progress_bar_enabled": False,
        "preferred_locale": guild.locale,
        "nsfw": False,
        "nsfw_level": 0,
        "home_header": None,
        "widget_enabled": False,
        "widget_channel_id": None,
        "max_presences": None,
        "max_members": 500_000,
        "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25,
        "premium_subscription_count": 0,
        "incidents_data": None,
    }


def guild_create(guild: GuildSpec, members: list[Json], voice_states: Iterable[Json]) -> Json:
    """Return the data of GUILD_CREATE with these of its members."""
    return {
        **guild_object(guild),
        "joined_at": _JOINED_AT,
        "large": len(guild.members) > _LARGE,
        "unavailable": False,
        "member_count": len(guild.members),
        "members": members,
        "channels": channels(guild),
        "voice_states": list(voice_states),
        "threads": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def application(guild: GuildSpec, bot_id: int) -> Json:
    """Return the application of a bot. The application has the same id as the bot."""
    return {
        "id": str(bot_id),
        "name": guild.member(bot_id).name,
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "flags": application_flags(guild.member(bot_id).privileged_intents),
        "owner": guild_user(guild, guild.owner.id),
        "team": None,
        "type": None,
        "flags_new": str(application_flags(guild.member(bot_id).privileged_intents)),
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "approximate_guild_count": 1,
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "explicit_content_filter": 0,
        "eligible_oauth2_scopes": [],
    }


def message(
    guild: GuildSpec,
    *,
    message_id: int,
    channel_id: int,
    author_id: int,
    content: str,
    extra: Json | None = None,
    reply_to_command: bool = False,
    replies_to: Json | None = None,
    allowed: Json | None = None,
) -> Json:
    """Return a message object. `extra`: other fields that the author sent, such as embeds, components and flags.
    `replies_to`: the message that it answers. `allowed`: whom it may call (Discord's "Allowed Mentions Object"); None:
    whoever it names.
    """
    allowed = _ALL_MENTIONS if allowed is None else allowed
    mentioned = [int(each) for each in _called("users", content, allowed) if guild.has_member(int(each))]
    reply: Json = {}
    if replies_to is not None:
        mentioned += [int(replies_to["author"]["id"])] if allowed.get("replied_user") else []
        reference = {
            "type": 0,
            "message_id": replies_to["id"],
            "channel_id": str(channel_id),
            "guild_id": str(guild.id),
        }
        reply = {"type": _REPLY, "message_reference": reference, "referenced_message": replies_to}
    return {
        "id": str(message_id),
        "channel_id": str(channel_id),
        "guild_id": str(guild.id),
        "author": guild_user(guild, author_id),
        "member": {
            key: value for key, value in guild_member(guild, author_id).items() if key not in ("user", "avatar")
        },
        "content": content,
        "timestamp": now(),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": bool(_called("everyone", content, allowed)),
        "mentions": [guild_user(guild, each) for each in dict.fromkeys(mentioned)],
        "mention_roles": _called("roles", content, allowed),
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
        "type": _COMMAND_REPLY if reply_to_command else _DEFAULT_MESSAGE,
        **reply,
        **(extra or {}),
    }


# Whom a text may call, by the names that these kinds have in `allowed_mentions`.
_MENTIONS = {"users": r"<@!?(\d+)>", "roles": r"<@&(\d+)>", "everyone": "@(everyone|here)"}


def _called(kind: str, content: str, allowed: Json) -> list[str]:
    """Return who of a kind a text calls, as far as it is allowed to."""
    ids = {str(each) for each in allowed.get(kind) or ()}
    found = re.findall(_MENTIONS[kind], content)
    return [each for each in found if kind in (allowed.get("parse") or ()) or each in ids]


# What a message has besides its flags, and what each of it is when it is taken away.
_PARTS: Json = {"content": "", "embeds": [], "components": [], "attachments": []}
_MENUS = (3, 5, 6, 7, 8)


def message_parts(data: Json) -> Json:
    """Return the parts of a message that a bot has sent, as Discord tells them: each kind is named, each component has
    a number, and what was null is left out.
    """
    parts: Json = {key: without_nulls(data[key] or empty) for key, empty in _PARTS.items() if key in data}
    for embed in parts.get("embeds", ()):
        embed["type"] = "rich"
        for field in embed.get("fields", ()):
            field.setdefault("inline", False)
    _number(parts.get("components", ()), itertools.count(1))
    return parts


def without_nulls(part: Any) -> Any:
    """Return a part of a request without what is null, as Discord answers it."""
    if isinstance(part, list):
        return [without_nulls(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: without_nulls(each) for key, each in part.items() if each is not None}


def _number(components: Iterable[Json], numbers: Iterator[int]) -> None:
    for part in components:
        part.setdefault("id", next(numbers))
        if part["type"] in _MENUS:
            part.update({"min_values": 1, "max_values": 1} | part)
            for default in part.get("default_values", ()):
                default["id"] = str(default["id"])
        _number(part.get("components", ()), numbers)
        _number([part[key] for key in ("accessory", "component") if key in part], numbers)


def voice_message(attachment_id: int, url: str, *, size_bytes: int, duration_s: float) -> Json:
    """Return the fields of a voice message: its flag, and its only attachment, at `url` of the CDN."""
    attachment = {
        "id": str(attachment_id),
        "filename": "voice-message.ogg",
        "size": size_bytes,
        "url": url,
        "proxy_url": url,
        "content_type": "audio/ogg",
        "duration_secs": duration_s,
        "waveform": _WAVEFORM,
    }
    return {"attachments": [attachment], "flags": _IS_VOICE_MESSAGE}


def readable(message: Json, *, user_id: int, intents: int) -> Json:
    """Return a message as a bot sees it: without what was written, unless the bot may read that, wrote it itself or is
    mentioned.
    """
    own = message["author"]["id"] == str(user_id)
    mentioned = any(each["id"] == str(user_id) for each in message["mentions"])
    return message if own or mentioned or intents & Intent.MESSAGE_CONTENT else {**message, **_UNREAD}


def message_text(message: Json) -> str:
    """Return what people read in a message: its text, then the texts of its embeds, one a line."""
    lines = [message["content"]]
    for embed in message["embeds"]:
        lines += [embed.get("title"), embed.get("description")]
        for field in embed.get("fields") or []:
            lines += [field.get("name"), field.get("value")]
        lines.append((embed.get("footer") or {}).get("text"))
    return "\n".join(line for line in lines if line)


def now() -> str:
    """Return the current time in Discord's format."""
    return datetime.datetime.now(datetime.UTC).isoformat()
