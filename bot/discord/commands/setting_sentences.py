"""The settings of a server in sentences, as `/settings` shows and confirms them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import discord

from bot.channel.markdown import escape_markdown
from bot.discord.access import channel_refusal
from bot.discord.answers import Field
from bot.participation.statistics import MODES
from bot.texts.catalogue import languages
from bot.texts.text import Text, counted, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from bot.guild import VoiceMode
    from bot.server_settings import FollowRule, ServerSettings

FOLLOWS: dict[FollowRule, Text] = {
    "nobody": Text("I follow nobody"),
    "people": Text("I follow the people whom I join"),
    "everybody": Text("I go along when the last of you goes to another channel"),
}

CHANNELS_OF_OPERATOR = Text("I come only into voice channels that whoever runs me has chosen (discord.channels).")
ROLES_OF_OPERATOR = Text(
    "Who calls me needs one of the roles that whoever runs me has chosen (discord.roles); moderators need none."
)


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What applies where a server has chosen nothing, and what it cannot loosen. `retention_days` 0: for ever.
    `channels`: the only voice channels into which the bot comes; empty: all. `limits_roles`: it serves only roles that
    the operator named.
    """

    leave_when_empty_s: float
    retention_days: float
    asks: Callable[[int], bool]
    channels: Collection[int] = ()
    limits_roles: bool = False

    def kept_days(self, settings: ServerSettings) -> float:
        """Return for how many days a server's sessions are kept: the shorter of both times; 0: for ever."""
        chosen = [days for days in (self.retention_days, settings.retention_days or 0) if days]
        return min(chosen, default=0)


def setting_fields(
    settings: ServerSettings,
    operator: OperatorSettings,
    *,
    guild_id: int,
    mode: VoiceMode,
    names: tuple[str, ...],
    voice: Text,
) -> list[Field]:
    """Return all settings of a server with their values, as people read them. `voice`: which one speaks."""
    called = ", ".join(escape_markdown(name) for name in names)
    asks = settings.asks or operator.asks(guild_id)
    return [
        Field(Text("language"), language_sentence(settings)),
        Field(Text("voice"), voice),
        Field(Text("notice"), notice_text(settings)),
        Field(Text("consent"), consent_sentence(asks)),
        Field(Text("when I speak (/voice-mode)"), MODES[mode]),
        Field(Text("my names (/wake-names)"), verbatim(called)),
        Field(Text("channel"), channels_sentence(settings, operator)),
        Field(Text("role"), roles_sentence(settings, operator)),
        Field(Text("auto-join, join-with"), auto_join_sentence(settings, operator)),
        Field(Text("follow"), Text("{rule}.", rule=FOLLOWS[settings.follow])),
        Field(Text("leave-when-empty"), empty_sentence(settings, operator)),
        Field(Text("longest-session"), longest_sentence(settings)),
        Field(Text("retention"), retention_sentence(settings, operator)),
        Field(Text("history (who may read)"), history_sentence(settings)),
        Field(Text("recap"), recap_sentence(settings)),
        Field(Text("catch-up"), catch_up_sentence(settings)),
        Field(Text("live-message"), live_sentence(settings)),
    ]


def language_sentence(settings: ServerSettings) -> Text:
    if settings.language is None:
        return Text("What everybody in a channel reads is in the language of the server.")
    name = languages().get(settings.language, settings.language)
    return Text("What everybody in a channel reads is in this language: {language}.", language=name)


def notice_text(settings: ServerSettings) -> Text:
    if settings.notice is None:
        return Text("as set by whoever runs me")
    return verbatim(discord.utils.escape_mentions(settings.notice))


def consent_sentence(asks: bool) -> Text:
    if asks:
        return Text("I hear only people who press the button below my notice.")
    return Text("I hear everybody in my channel, after my notice.")


def channels_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    limit = CHANNELS_OF_OPERATOR if operator.channels else verbatim("")
    if settings.channels:
        here = Text(
            "I may come into these voice channels only: {channels}.", channels=_mentions("#", settings.channels)
        )
        return joined((here, limit))
    return limit or Text("I may come into all voice channels.")


def roles_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    limit = ROLES_OF_OPERATOR if operator.limits_roles else verbatim("")
    if settings.roles:
        here = Text(
            "Members with one of these roles may call me, and moderators: {roles}.",
            roles=_mentions("@&", settings.roles),
        )
        return joined((here, limit))
    return limit or Text("Everybody may call me.")


def auto_join_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    """Return where and when the bot comes without being called."""
    sentences = []
    allowed = [
        each
        for each in settings.auto_join_channels
        if channel_refusal(each, "", operator.channels, settings.channels) is None
    ]
    shut = [each for each in settings.auto_join_channels if each not in allowed]
    if allowed:
        sentences.append(
            counted(
                settings.auto_join_people,
                "I come into {channels} by myself as soon as {count} person is there.",
                "I come into {channels} by myself as soon as {count} people are there.",
                channels=_mentions("#", allowed),
            )
        )
    if shut:
        # /settings channel or discord.channels may have been restricted later.
        sentences.append(
            Text("I do not come into {channels} by myself: I may not come there.", channels=_mentions("#", shut))
        )
    if settings.auto_join_with:
        people = _mentions("@", settings.auto_join_with)
        sentences.append(Text("I come when one of these people does: {people}.", people=people))
    return joined(sentences) if sentences else Text("I come only when I am called.")


def empty_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    return counted(
        round((settings.leave_when_empty_s or operator.leave_when_empty_s) / 60, 1),
        "I leave a voice channel after {count} minute without people.",
        "I leave a voice channel after {count} minutes without people.",
    )


def longest_sentence(settings: ServerSettings) -> Text:
    if settings.longest_session_h is None:
        return Text("A session may last as long as people stay.")
    return counted(
        settings.longest_session_h,
        "A session ends after {count} hour; /join begins a new one.",
        "A session ends after {count} hours; /join begins a new one.",
    )


def retention_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    days = operator.kept_days(settings)
    if not days:
        return Text("I keep what was said until somebody deletes it.")
    return counted(days, "I delete what was said after {count} day.", "I delete what was said after {count} days.")


def history_sentence(settings: ServerSettings) -> Text:
    if not settings.opens_history:
        return Text("People may read what was said while they were in the channel, and nothing else.")
    if settings.history_role is None:
        return Text("Who may manage the server may read everything in the channels that they may enter.")
    return Text(
        "Who may manage the server, and members with the role {role}, may read everything in the channels that they "
        "may enter.",
        role=_mentions("@&", [settings.history_role]),
    )


def recap_sentence(settings: ServerSettings) -> Text:
    if settings.posts_recap:
        return Text("When a session ends, I post in the channel what it was about.")
    return Text("When a session ends, I post nothing about it.")


def catch_up_sentence(settings: ServerSettings) -> Text:
    if settings.offers_catch_up:
        return Text("Who comes back after five minutes is offered once in a session what was said meanwhile.")
    return Text("Who comes back is offered nothing; /catch-up tells them what was said.")


def live_sentence(settings: ServerSettings) -> Text:
    if settings.live_message:
        return Text("One message in the channel shows how a session goes.")
    return Text("No message shows how a session goes; /status tells.")


def _mentions(kind: str, ids: Iterable[int]) -> Text:
    """Return Discord's mentions of channels (`#`), roles (`@&`) or people (`@`). An answer pings nobody."""
    return verbatim(", ".join(f"<{kind}{number}>" for number in ids))
