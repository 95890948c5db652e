"""Discord's permission bits, and the three sets of permissions that the local guild grants."""

from __future__ import annotations

from enum import IntFlag


class DiscordPermission(IntFlag):
    """The permission bits that matter to a voice bot and the people in its guild."""

    CREATE_INSTANT_INVITE = 1 << 0
    KICK_MEMBERS = 1 << 1
    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    PRIORITY_SPEAKER = 1 << 8
    STREAM = 1 << 9
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_EXTERNAL_EMOJIS = 1 << 18
    CONNECT = 1 << 20
    SPEAK = 1 << 21
    MUTE_MEMBERS = 1 << 22
    DEAFEN_MEMBERS = 1 << 23
    MOVE_MEMBERS = 1 << 24
    USE_VAD = 1 << 25
    CHANGE_NICKNAME = 1 << 26
    MANAGE_NICKNAMES = 1 << 27
    USE_APPLICATION_COMMANDS = 1 << 31
    REQUEST_TO_SPEAK = 1 << 32
    CREATE_PUBLIC_THREADS = 1 << 35
    SEND_MESSAGES_IN_THREADS = 1 << 38
    USE_EMBEDDED_ACTIVITIES = 1 << 39
    MODERATE_MEMBERS = 1 << 40
    USE_SOUNDBOARD = 1 << 42
    SEND_VOICE_MESSAGES = 1 << 46
    SET_VOICE_CHANNEL_STATUS = 1 << 48
    SEND_POLLS = 1 << 49


# The permissions that a new Discord guild grants to @everyone.
EVERYONE = (
    DiscordPermission.CREATE_INSTANT_INVITE
    | DiscordPermission.ADD_REACTIONS
    | DiscordPermission.STREAM
    | DiscordPermission.VIEW_CHANNEL
    | DiscordPermission.SEND_MESSAGES
    | DiscordPermission.EMBED_LINKS
    | DiscordPermission.ATTACH_FILES
    | DiscordPermission.READ_MESSAGE_HISTORY
    | DiscordPermission.MENTION_EVERYONE
    | DiscordPermission.USE_EXTERNAL_EMOJIS
    | DiscordPermission.CONNECT
    | DiscordPermission.SPEAK
    | DiscordPermission.USE_VAD
    | DiscordPermission.CHANGE_NICKNAME
    | DiscordPermission.USE_APPLICATION_COMMANDS
    | DiscordPermission.REQUEST_TO_SPEAK
    | DiscordPermission.CREATE_PUBLIC_THREADS
    | DiscordPermission.SEND_MESSAGES_IN_THREADS
    | DiscordPermission.USE_EMBEDDED_ACTIVITIES
    | DiscordPermission.USE_SOUNDBOARD
    | DiscordPermission.SEND_VOICE_MESSAGES
    | DiscordPermission.SET_VOICE_CHANNEL_STATUS
    | DiscordPermission.SEND_POLLS
)
MODERATOR = (
    EVERYONE
    | DiscordPermission.KICK_MEMBERS
    | DiscordPermission.MANAGE_CHANNELS
    | DiscordPermission.MANAGE_GUILD
    | DiscordPermission.PRIORITY_SPEAKER
    | DiscordPermission.MANAGE_MESSAGES
    | DiscordPermission.MUTE_MEMBERS
    | DiscordPermission.DEAFEN_MEMBERS
    | DiscordPermission.MOVE_MEMBERS
    | DiscordPermission.MANAGE_NICKNAMES
    | DiscordPermission.MODERATE_MEMBERS
)
# Every bit that Discord documents; the guild's owner has all of them.
ALL = (1 << 53) - 1
