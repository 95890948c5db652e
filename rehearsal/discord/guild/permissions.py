"""Discord's permission bits, and the sets of permissions that the local guild grants."""

from __future__ import annotations

from enum import IntFlag


class DiscordPermission(IntFlag):
    """The permission bits that decide about something here. Discord has more."""

    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    CONNECT = 1 << 20
    SPEAK = 1 << 21
    MUTE_MEMBERS = 1 << 22
    MOVE_MEMBERS = 1 << 24
    CHANGE_NICKNAME = 1 << 26
    REQUEST_TO_SPEAK = 1 << 32
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    SEND_MESSAGES_IN_THREADS = 1 << 38
    SET_VOICE_CHANNEL_STATUS = 1 << 48


_P = DiscordPermission
# What a new Discord guild grants to @everyone, and what moderators have besides (Discord's reference, "Permissions").
_EVERYONE_BITS = (0, 6, 9, 10, 11, 14, 15, 16, 17, 18, 20, 21, 25, 26, 31, 32, 35, 38, 39, 42, 46, 48, 49)
_MODERATOR_BITS = (1, 4, 5, 8, 13, 22, 23, 24, 27, 34, 40)
EVERYONE = sum(1 << bit for bit in _EVERYONE_BITS)
MODERATOR = EVERYONE + sum(1 << bit for bit in _MODERATOR_BITS)
# What Roomtone's invitation asks for (a test compares them).
INVITED = (
    _P.VIEW_CHANNEL | _P.SEND_MESSAGES | _P.EMBED_LINKS | _P.ATTACH_FILES | _P.READ_MESSAGE_HISTORY | _P.CONNECT
) | (_P.SPEAK | _P.CHANGE_NICKNAME | _P.REQUEST_TO_SPEAK | _P.CREATE_PUBLIC_THREADS | _P.SEND_MESSAGES_IN_THREADS)
# Every bit that Discord documents; the guild's owner has all of them.
ALL = (1 << 53) - 1
