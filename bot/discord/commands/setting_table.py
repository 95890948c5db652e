"""The settings of a server in one table: what each is called, what can be chosen, what holds, and where it is stored.

`bot.discord.commands.settings` shows the table as a panel. A row knows nothing of messages and buttons.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bot.brain.wakeword import MOST_WORDS
from bot.channel.markdown import escape_markdown
from bot.discord.access import channel_refusal
from bot.discord.commands.voice import make_ready, voice_facts, voice_sentence
from bot.errors import BotError
from bot.guild import VoiceMode
from bot.models.voices import VOICES, find_voice
from bot.participation.statistics import MODES
from bot.server_settings import (
    LONGEST_SESSION_H,
    MOST_CHANNELS,
    MOST_NOTICE_CHARS,
    MOST_PEOPLE,
    MOST_ROLES,
    SHORTEST_SESSION_H,
)
from bot.texts.catalogue import languages
from bot.texts.text import Text, counted, joined, verbatim
from compaction.model import Mode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from bot.discord.commands.voice import VoiceCommands
    from bot.guild import GuildChoice, GuildChoices
    from bot.participation.all_guilds import GuildParticipations
    from bot.participation.guild_participation import GuildParticipation
    from bot.server_settings import ServerSettings, ServerSettingsBook

    Changes = Mapping[str, Any]

# The persona costs tokens in every prompt of the server.
MOST_PERSONA_CHARS = 1_500
# So much of the notice and the persona is shown beside the other settings.
_SHOWN_CHARS = 300
MOST_NAMES = 5
MOST_NAME_CHARS = 32
# At least two letters in a row, and no signs with which it could look like another part of a prompt.
_SPEAKABLE = re.compile(r"(?=.*[^\W\d_]{2})[\w .'’*-]+")
DEFAULT, ON, OFF = "default", "on", "off"

AT_ONCE = Text("This takes effect at once.")
NEXT_REPLY = Text("This takes effect at my next reply.")
NEXT_SESSION = Text("This takes effect with the next session.")
NEXT_COMER = Text("This takes effect when somebody next comes into a voice channel.")
AS_OPERATOR = Text("as set by whoever runs me")
CHANNELS_OF_OPERATOR = Text("I come only into voice channels that whoever runs me has chosen (discord.channels).")
ROLES_OF_OPERATOR = Text(
    "Who calls me needs one of the roles that whoever runs me has chosen (discord.roles); moderators need none."
)


class SettingError(BotError):
    """What somebody chose cannot be. The message says what can."""


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What applies where a server has chosen nothing, and what it cannot loosen. `retention_days` 0: for ever.
    `channels`: the only voice channels into which the bot comes; empty: all. `limits_roles`: it serves only roles that
    the operator named. `searchable`: there is a memory search, which the mode `rolling` needs.
    """

    leave_when_empty_s: float
    retention_days: float
    asks: Callable[[int], bool]
    channels: Collection[int] = ()
    limits_roles: bool = False
    mode: Mode = Mode.SUMMARY
    budget_enabled: bool = True
    max_input_tokens: int = 0
    searchable: bool = True

    def kept_days(self, settings: ServerSettings) -> float:
        """Return for how many days a server's sessions are kept: the shorter of both times; 0: for ever."""
        chosen = [days for days in (self.retention_days, settings.retention_days or 0) if days]
        return min(chosen, default=0)


@dataclass(frozen=True, slots=True)
class SettingStores:
    """What the settings are read from and stored in."""

    servers: ServerSettingsBook
    choices: GuildChoices
    participation: GuildParticipations
    operator: OperatorSettings
    voices: VoiceCommands


@dataclass(frozen=True, slots=True)
class Here:
    """What holds on one server."""

    stores: SettingStores
    guild_id: int
    server: ServerSettings
    choice: GuildChoice
    takes_part: GuildParticipation

    @property
    def operator(self) -> OperatorSettings:
        return self.stores.operator


@dataclass(frozen=True, slots=True)
class Change:
    """One choice of a manager on a server. `report`: shows them how far it is."""

    stores: SettingStores
    guild_id: int
    by: int
    report: Callable[[Text], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these is chosen. `options`: of a server, by what is stored. `now`: the one that holds."""

    options: Callable[[SettingStores, int], Mapping[str, Text]]
    now: Callable[[Here], str]


@dataclass(frozen=True, slots=True)
class SomeOf:
    """Some channels, roles or people are chosen, `most` of them at most. `now`: those that hold."""

    kind: Literal["channels", "text channels", "roles", "people"]
    most: int
    now: Callable[[Here], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Written:
    """Something is written. Nothing written: the default."""

    most_chars: int
    now: Callable[[Here], str]


async def in_server_settings(change: Change, changes: Changes) -> None:
    await change.stores.servers.change(change.guild_id, lambda now: replace(now, **changes), by=change.by)


async def in_guild_choice(change: Change, changes: Changes) -> None:
    await change.stores.choices.choose(change.guild_id, lambda now: replace(now, **changes), by=change.by)


async def in_participation(change: Change, changes: Changes) -> None:
    participation = change.stores.participation
    if "voice_mode" in changes:
        await participation.choose_mode(change.guild_id, changes["voice_mode"], by=change.by)
    else:
        await participation.choose_names(change.guild_id, changes["wake_names"], by=change.by)


async def voice_once_loaded(change: Change, changes: Changes) -> None:
    """Download and load the voice if needed, then store the choice."""
    voice = None if changes["voice"] is None else find_voice(changes["voice"])
    if voice is not None and (why := await make_ready(voice, change.stores.voices.voices, change.report)) is not None:
        raise SettingError(joined((why, Text("I go on with the voice that I have."))))
    await in_server_settings(change, changes)


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """One setting. `about`: at most 100 characters, as Discord shows it beside the name.

    `control`: how it is chosen. `changes`: what to store for what was chosen: ids or keys of options, or the one text
    that was written; raises `SettingError`. `told`: what holds.
    """

    key: str
    name: Text
    about: Text
    control: OneOf | SomeOf | Written
    changes: Callable[[list[str], OperatorSettings], Changes]
    told: Callable[[Here], Text]
    effect: Text = AT_ONCE
    store: Callable[[Change, Changes], Awaitable[None]] = in_server_settings


def _ids(chosen: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(int, chosen))


def _text(written: list[str]) -> str | None:
    return "".join(written).strip() or None


def _number(written: list[str], least: float, most: float) -> float | None:
    """Return what somebody wrote as a number; None if they wrote nothing. A comma may be the decimal sign."""
    text = _text(written)
    if text is None:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise SettingError(Text("Write a number from {least} to {most}, or nothing.", least=least, most=most))
    return number


def _days(written: list[str], operator: OperatorSettings) -> Changes:
    return {"retention_days": _number(written, 1, operator.retention_days or 36_500)}


def _names(written: list[str], _: OperatorSettings) -> Changes:
    text = _text(written)
    names = None if text is None else parse_names(text)
    if names == ():
        raise SettingError(
            Text(
                "Give me one to {most} names of two letters or more, with commas between them, each of at most {words} "
                "words and {chars} characters.",
                most=MOST_NAMES,
                words=MOST_WORDS,
                chars=MOST_NAME_CHARS,
            )
        )
    return {"wake_names": names}


def parse_names(names: str) -> tuple[str, ...]:
    """Parse a list of names; empty if it is not usable."""
    # As the recogniser writes them.
    composed = unicodedata.normalize("NFC", names)
    wanted = tuple(dict.fromkeys(" ".join(name.split()) for name in composed.split(",") if name.strip()))
    usable = all(
        len(name) <= MOST_NAME_CHARS and len(name.split()) <= MOST_WORDS and _SPEAKABLE.fullmatch(_without_marks(name))
        for name in wanted
    )
    return wanted if usable and len(wanted) <= MOST_NAMES else ()


def _without_marks(name: str) -> str:
    """Return the letters of a name without the signs at them, which are vowels in many scripts."""
    return "".join(sign for sign in name if unicodedata.category(sign)[0] != "M")


def _unless_default(chosen: str) -> str | None:
    return None if chosen == DEFAULT else chosen


def _languages(_: SettingStores, __: int) -> Mapping[str, Text]:
    known = {code: verbatim(name) for code, name in languages().items()}
    return {DEFAULT: Text("the language of the server")} | known


def _voices(stores: SettingStores, _: int) -> Mapping[str, Text]:
    known = {voice.name: voice_facts(voice, stores.voices.voices) for voice in VOICES}
    return {DEFAULT: Text("my usual voice, as set by whoever runs me")} | known


_ASKS = Text("only people who press the button below my notice")


def _consents(stores: SettingStores, guild_id: int) -> Mapping[str, Text]:
    # A server may be stricter than the operator, and never laxer.
    if stores.operator.asks(guild_id):
        return {"ask": _ASKS}
    return {"notice": Text("everybody in my channel, after my notice"), "ask": _ASKS}


def _fixed(options: Mapping[str, Text]) -> Callable[[SettingStores, int], Mapping[str, Text]]:
    return lambda _, __: options


def _option(control: OneOf) -> Callable[[Here], Text]:
    """Return what tells the option that holds."""
    return lambda here: control.options(here.stores, here.guild_id)[control.now(here)]


def _switch(
    key: str, name: Text, about: Text, field: str, on: Text, off: Text, effect: Text = AT_ONCE
) -> ServerSetting:
    """Return a setting that is on or off. `field`: of `ServerSettings`."""
    control = OneOf(_fixed({ON: on, OFF: off}), lambda here: ON if getattr(here.server, field) else OFF)
    return ServerSetting(
        key, name, about, control, lambda chosen, _: {field: chosen[0] == ON}, _option(control), effect
    )


_LANGUAGE = OneOf(_languages, lambda here: here.server.language or DEFAULT)
_CONSENT = OneOf(_consents, lambda here: "ask" if here.server.asks or here.operator.asks(here.guild_id) else "notice")
_FOLLOW = OneOf(
    _fixed(
        {
            "nobody": Text("I follow nobody"),
            "people": Text("I follow the people whom I join"),
            "everybody": Text("I go along when the last of you goes to another channel"),
        }
    ),
    lambda here: here.server.follow,
)
_MODES_OF_MEMORY = {
    Mode.SUMMARY.value: Text("summary: what leaves the last 50 turns is folded into a summary"),
    Mode.ROLLING.value: Text("rolling: when the model is full the oldest turns are dropped, and search finds them"),
    Mode.OFF.value: Text("off: I see the last 50 turns, and older ones only where memory search finds them"),
}


def mode_sentence(here: Here) -> Text:
    """Return how the server's sessions remember."""
    mode = here.choice.mode or here.operator.mode
    told = Text("{mode} ({source}).", mode=_MODES_OF_MEMORY[mode.value], source=_source(here.choice.mode))
    if mode is Mode.ROLLING and not here.operator.searchable:
        missing = Text("There is no memory search to find dropped turns, so I work as in summary until there is.")
        return joined((told, missing))
    return told


def budget_sentence(here: Here) -> Text:
    chosen = here.choice.budget_enabled
    if not (here.operator.budget_enabled if chosen is None else chosen):
        return Text("Budget off: calls are sent as they are ({source}).", source=_source(chosen))
    limit = here.operator.max_input_tokens
    return Text("Budget on: at most {limit} tokens go into a call ({source}).", limit=limit, source=_source(chosen))


def _source(chosen: object) -> Text:
    return Text("my settings") if chosen is None else Text("chosen here")


def channels_sentence(here: Here) -> Text:
    limit = CHANNELS_OF_OPERATOR if here.operator.channels else verbatim("")
    if chosen := here.server.channels:
        only = Text("I may come into these voice channels only: {channels}.", channels=_mentions("#", chosen))
        return joined((only, limit))
    return limit or Text("I may come into all voice channels.")


def roles_sentence(here: Here) -> Text:
    limit = ROLES_OF_OPERATOR if here.operator.limits_roles else verbatim("")
    if chosen := here.server.roles:
        only = Text(
            "Members with one of these roles may call me, and moderators: {roles}.", roles=_mentions("@&", chosen)
        )
        return joined((only, limit))
    return limit or Text("Everybody may call me.")


def auto_join_sentence(here: Here) -> Text:
    """Return where and when the bot comes without being called."""
    settings = here.server
    allowed = [
        each
        for each in settings.auto_join_channels
        if channel_refusal(each, "", here.operator.channels, settings.channels) is None
    ]
    sentences = []
    if allowed:
        sentences.append(
            counted(
                settings.auto_join_people,
                "I come into {channels} by myself as soon as {count} person is there.",
                "I come into {channels} by myself as soon as {count} people are there.",
                channels=_mentions("#", allowed),
            )
        )
    if shut := [each for each in settings.auto_join_channels if each not in allowed]:
        # The server's channels or those of the operator may have been restricted later.
        sentences.append(
            Text("I do not come into {channels} by myself: I may not come there.", channels=_mentions("#", shut))
        )
    if settings.auto_join_with:
        people = _mentions("@", settings.auto_join_with)
        sentences.append(Text("I come when one of these people does: {people}.", people=people))
    return joined(sentences) if sentences else Text("I come only when I am called.")


def empty_sentence(here: Here) -> Text:
    return counted(
        round((here.server.leave_when_empty_s or here.operator.leave_when_empty_s) / 60, 1),
        "I leave a voice channel after {count} minute without people.",
        "I leave a voice channel after {count} minutes without people.",
    )


def longest_sentence(here: Here) -> Text:
    if here.server.longest_session_h is None:
        return Text("A session may last as long as people stay.")
    return counted(
        here.server.longest_session_h,
        "A session ends after {count} hour; /join begins a new one.",
        "A session ends after {count} hours; /join begins a new one.",
    )


def retention_sentence(here: Here) -> Text:
    days = here.operator.kept_days(here.server)
    if not days:
        return Text("I keep what was said until somebody deletes it.")
    return counted(days, "I delete what was said after {count} day.", "I delete what was said after {count} days.")


def history_sentence(here: Here) -> Text:
    if not here.server.opens_history:
        return Text("People may read what was said while they were in the channel, and nothing else.")
    if here.server.history_role is None:
        return Text("Who may manage the server may read everything in the channels that they may enter.")
    return Text(
        "Who may manage the server, and members with the role {role}, may read everything in the channels that they "
        "may enter.",
        role=_mentions("@&", [here.server.history_role]),
    )


def chat_sentence(here: Here) -> Text:
    if here.server.chat_channel is None:
        return Text("Who mentions me in the chat of my voice channel is answered there.")
    return Text(
        "Who mentions me in the chat of my voice channel, or in {channel}, is answered there.",
        channel=_mentions("#", [here.server.chat_channel]),
    )


def _own_words(text: str | None) -> Text:
    return AS_OPERATOR if text is None else verbatim(escape_markdown(text[:_SHOWN_CHARS]))


def _mentions(kind: str, ids: Iterable[int]) -> Text:
    """Return Discord's mentions of channels (`#`), roles (`@&`) or people (`@`). An answer pings nobody."""
    return verbatim(", ".join(f"<{kind}{number}>" for number in ids))


def _written(number: float | None, *, per: float = 1) -> str:
    return "" if number is None else f"{number / per:g}"


# In the order of the panel.
SETTINGS: tuple[ServerSetting, ...] = (
    ServerSetting(
        "language",
        Text("Language"),
        Text("The language of what everybody in a channel reads."),
        _LANGUAGE,
        lambda chosen, _: {"language": _unless_default(chosen[0])},
        _option(_LANGUAGE),
    ),
    ServerSetting(
        "voice",
        Text("Voice"),
        Text("The voice that I speak with. /voice plays one."),
        OneOf(_voices, lambda here: here.server.voice or DEFAULT),
        lambda chosen, _: {"voice": _unless_default(chosen[0])},
        lambda here: voice_sentence(here.stores.voices, here.server.voice),
        Text("This takes effect with my next sentence."),
        voice_once_loaded,
    ),
    ServerSetting(
        "names",
        Text("Names"),
        Text("What I am called here: up to five names with commas between them."),
        Written(200, lambda here: ", ".join(here.takes_part.wake_names)),
        _names,
        lambda here: verbatim(escape_markdown(", ".join(here.takes_part.wake_names))),
        store=in_participation,
    ),
    ServerSetting(
        "voice-mode",
        Text("When I speak"),
        Text("Whether I wait to be called by name."),
        OneOf(
            _fixed({mode.value: told for mode, told in MODES.items()} | {DEFAULT: AS_OPERATOR}),
            lambda here: here.takes_part.voice_mode.value,
        ),
        lambda chosen, _: {"voice_mode": None if chosen[0] == DEFAULT else VoiceMode(chosen[0])},
        lambda here: MODES[here.takes_part.voice_mode],
        store=in_participation,
    ),
    ServerSetting(
        "persona",
        Text("Persona"),
        Text("How I behave here, in your own words. For example: You are a dry old innkeeper."),
        Written(MOST_PERSONA_CHARS, lambda here: here.choice.persona or ""),
        lambda written, _: {"persona": _text(written)},
        lambda here: _own_words(here.choice.persona),
        NEXT_REPLY,
        in_guild_choice,
    ),
    ServerSetting(
        "memory",
        Text("Memory"),
        Text("How I remember what no longer fits the model."),
        OneOf(
            _fixed(_MODES_OF_MEMORY | {DEFAULT: AS_OPERATOR}),
            lambda here: DEFAULT if here.choice.mode is None else here.choice.mode.value,
        ),
        lambda chosen, _: {"mode": None if chosen[0] == DEFAULT else Mode(chosen[0])},
        mode_sentence,
        NEXT_REPLY,
        in_guild_choice,
    ),
    ServerSetting(
        "budget",
        Text("Budget"),
        Text("Whether every call is kept within the model's room."),
        OneOf(
            _fixed(
                {
                    ON: Text("every call is kept within it"),
                    OFF: Text("calls are sent as they are"),
                    DEFAULT: AS_OPERATOR,
                }
            ),
            lambda here: {None: DEFAULT, True: ON, False: OFF}[here.choice.budget_enabled],
        ),
        lambda chosen, _: {"budget_enabled": {ON: True, OFF: False}.get(chosen[0])},
        budget_sentence,
        NEXT_REPLY,
        in_guild_choice,
    ),
    ServerSetting(
        "notice",
        Text("Notice"),
        Text("The first sentences of my notice that I listen, in your words."),
        Written(MOST_NOTICE_CHARS, lambda here: here.server.notice or ""),
        lambda written, _: {"notice": _text(written)},
        lambda here: _own_words(here.server.notice),
        NEXT_SESSION,
    ),
    ServerSetting(
        "consent",
        Text("Consent"),
        Text("Whom I hear: everybody after my notice, or only people who agree."),
        _CONSENT,
        lambda chosen, _: {"asks": chosen[0] == "ask"},
        _option(_CONSENT),
        NEXT_SESSION,
    ),
    ServerSetting(
        "channels",
        Text("Voice channels"),
        Text("The voice channels that I may come into. None chosen: all."),
        SomeOf("channels", MOST_CHANNELS, lambda here: here.server.channels),
        lambda chosen, _: {"channels": _ids(chosen)},
        channels_sentence,
    ),
    ServerSetting(
        "roles",
        Text("Roles"),
        Text("The roles whose members may call me. None chosen: everybody. Moderators always may."),
        SomeOf("roles", MOST_ROLES, lambda here: here.server.roles),
        lambda chosen, _: {"roles": _ids(chosen)},
        roles_sentence,
    ),
    ServerSetting(
        "auto-join",
        Text("Coming by myself"),
        Text("The voice channels that I come into without being called."),
        SomeOf("channels", MOST_CHANNELS, lambda here: here.server.auto_join_channels),
        lambda chosen, _: {"auto_join_channels": _ids(chosen)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "auto-join-people",
        Text("How many people first"),
        Text("How many people have to be in such a channel before I come."),
        Written(2, lambda here: str(here.server.auto_join_people)),
        lambda written, _: {"auto_join_people": round(_number(written, 1, 99) or 2)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "join-with",
        Text("Joining people"),
        Text("People whom I join when they come into a voice channel."),
        SomeOf("people", MOST_PEOPLE, lambda here: here.server.auto_join_with),
        lambda chosen, _: {"auto_join_with": _ids(chosen)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "follow",
        Text("Following"),
        Text("Whether I go along when people go to another voice channel."),
        _FOLLOW,
        lambda chosen, _: {"follow": chosen[0]},
        _option(_FOLLOW),
    ),
    ServerSetting(
        "leave-when-empty",
        Text("Empty channel"),
        Text("How many minutes I stay in a voice channel without people."),
        Written(6, lambda here: _written(here.server.leave_when_empty_s, per=60)),
        lambda written, _: {"leave_when_empty_s": 60 * (_number(written, 0, 1440) or 0) or None},
        empty_sentence,
    ),
    ServerSetting(
        "longest-session",
        Text("Longest session"),
        Text("After how many hours a session ends by itself. Nothing: never."),
        Written(5, lambda here: _written(here.server.longest_session_h)),
        lambda written, _: {"longest_session_h": _number(written, SHORTEST_SESSION_H, LONGEST_SESSION_H)},
        longest_sentence,
    ),
    ServerSetting(
        "retention",
        Text("Retention"),
        Text("For how many days I keep what was said here. Nothing: as set by whoever runs me."),
        Written(6, lambda here: _written(here.server.retention_days)),
        _days,
        retention_sentence,
        Text("This takes effect within a day, when I next tidy up."),
    ),
    ServerSetting(
        "history",
        Text("Who may read"),
        Text("Who may read what was said while they were not in the channel."),
        OneOf(
            _fixed({OFF: Text("nobody"), ON: Text("who may manage the server, and the role that they choose for it")}),
            lambda here: ON if here.server.opens_history else OFF,
        ),
        lambda chosen, _: {"opens_history": chosen[0] == ON},
        history_sentence,
        Text("This takes effect at once. My notice says it from the next session on."),
    ),
    ServerSetting(
        "history-role",
        Text("A role that may read"),
        Text("A role whose members may read it too."),
        SomeOf("roles", 1, lambda here: () if here.server.history_role is None else (here.server.history_role,)),
        lambda chosen, _: {"history_role": int(chosen[0]), "opens_history": True} if chosen else {"history_role": None},
        history_sentence,
        Text("This takes effect at once. My notice says it from the next session on."),
    ),
    ServerSetting(
        "chat",
        Text("Typed talk"),
        Text("A text channel in which I answer people in my voice channel who mention me."),
        SomeOf(
            "text channels", 1, lambda here: () if here.server.chat_channel is None else (here.server.chat_channel,)
        ),
        lambda chosen, _: {"chat_channel": int(chosen[0]) if chosen else None},
        chat_sentence,
    ),
    _switch(
        "recap",
        Text("Recap"),
        Text("Whether I post in the channel what it was about when a session ends."),
        "posts_recap",
        Text("When a session ends, I post in the channel what it was about."),
        Text("When a session ends, I post nothing about it."),
        Text("This takes effect when a session next ends."),
    ),
    _switch(
        "catch-up",
        Text("Catching up"),
        Text("Whether I offer who comes back to tell them what was said."),
        "offers_catch_up",
        Text("Who comes back after five minutes is offered once in a session what was said meanwhile."),
        Text("Who comes back is offered nothing; /recap tells them what was said."),
    ),
    _switch(
        "live-message",
        Text("Live message"),
        Text("Whether one message in the channel shows how a session goes."),
        "live_message",
        Text("One message in the channel shows how a session goes."),
        Text("No message shows how a session goes; /status tells."),
        NEXT_SESSION,
    ),
)
BY_KEY: Mapping[str, ServerSetting] = {setting.key: setting for setting in SETTINGS}
