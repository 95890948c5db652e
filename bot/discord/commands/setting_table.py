"""The settings of a server in one table: what each is called, what can be chosen, and how that is stored.

`bot.discord.commands.settings` shows the table as a panel. A row knows nothing of messages and buttons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.channel.markdown import escape_markdown
from bot.discord.commands.setting_values import (
    AS_OPERATOR,
    MODES_OF_MEMORY,
    OneOf,
    ServerSetting,
    SettingError,
    SomeOf,
    Written,
    auto_join_sentence,
    budget_sentence,
    captions_sentence,
    channel_persona,
    channels_sentence,
    chat_sentence,
    empty_sentence,
    history_sentence,
    longest_sentence,
    mode_sentence,
    own_words,
    persona_sentence,
    retention_sentence,
    roles_sentence,
    spoken_sentence,
    webhook_sentence,
    written_language,
    written_languages,
    written_names,
    written_number,
    written_text,
)
from bot.discord.commands.voice import make_ready, voice_facts, voice_sentence
from bot.guild import VoiceMode
from bot.models.voices import VOICES, find_voice
from bot.participation.statistics import MODES
from bot.server_settings import (
    LONGEST_SESSION_H,
    MOST_ADDRESS_CHARS,
    MOST_CHANNELS,
    MOST_NOTICE_CHARS,
    MOST_PEOPLE,
    MOST_PERSONA_CHARS,
    MOST_ROLES,
    SHORTEST_SESSION_H,
)
from bot.texts.text import Text, joined, languages, verbatim
from compaction.model import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import discord

    from bot.discord.commands.setting_values import Changes, Here, SettingStores

DEFAULT, ON, OFF, ALWAYS = "default", "on", "off", "always"

NEXT_REPLY = Text("This starts with my next answer.")
NEXT_SESSION = Text("This starts with the next session.")
IN_NEXT_NOTICE = Text("This starts now. My notice says it from the next session on.")
NEXT_COMER = Text("This starts when somebody next joins a voice channel.")


async def load_voice(changes: Changes, stores: SettingStores, interaction: discord.Interaction) -> None:
    """Download and load the voice that was chosen, if needed. The answer to `interaction` shows how far it is."""
    voice = None if changes["voice"] is None else find_voice(changes["voice"])
    if voice is not None and (why := await make_ready(voice, stores.voices.voices, interaction)) is not None:
        raise SettingError(joined((why, Text("I keep the voice that I have."))))


def _webhook(written: list[str], here: Here) -> Changes:
    address = written_text(written)
    return {"webhook": None if address is None else here.stores.webhooks.new(address)}


async def greet_webhook(changes: Changes, stores: SettingStores, _: discord.Interaction) -> None:
    """Send a first request to the webhook that was chosen. Raises `BotError` if nothing there takes it."""
    if changes["webhook"] is not None:
        await stores.webhooks.greet(changes["webhook"])


def _ids(chosen: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(int, chosen))


def _days(written: list[str], here: Here) -> Changes:
    return {"retention_days": written_number(written, 1, here.operator.retention_days or 36_500)}


def _unless_default(chosen: str) -> str | None:
    return None if chosen == DEFAULT else chosen


def _languages(_: SettingStores, __: int) -> Mapping[str, Text]:
    known = {code: verbatim(name) for code, name in languages().items()}
    return {DEFAULT: Text("the language of the server")} | known


def _voices(stores: SettingStores, _: int) -> Mapping[str, Text]:
    known = {voice.name: voice_facts(voice, stores.voices.voices) for voice in VOICES}
    return {DEFAULT: Text("my usual voice; the owner of this bot has chosen it")} | known


_ASKS = Text("only people who press the button below my notice")


def _consents(stores: SettingStores, guild_id: int) -> Mapping[str, Text]:
    # A server may be stricter than the operator, and never laxer.
    if stores.operator.room.asks(guild_id):
        return {"ask": _ASKS}
    return {"notice": Text("everybody in my channel, after I tell them that I listen"), "ask": _ASKS}


def _fixed(options: Mapping[str, Text]) -> Callable[[SettingStores, int], Mapping[str, Text]]:
    return lambda _, __: options


def _option(control: OneOf) -> Callable[[Here], Text]:
    """Return what tells the option that holds."""
    return lambda here: control.options(here.stores, here.guild_id)[control.now(here)[0]]


_LANGUAGE = OneOf(_languages, lambda here: (here.server.language or DEFAULT,))
_CONSENT = OneOf(
    _consents, lambda here: ("ask",) if here.server.asks or here.operator.room.asks(here.guild_id) else ("notice",)
)
_FOLLOW = OneOf(
    _fixed(
        {
            "nobody": Text("I follow nobody"),
            "people": Text("I follow the people that I came for"),
            "everybody": Text("When the last of you goes to another channel, I go too"),
        }
    ),
    lambda here: (here.server.follow,),
)
_HEARD_SIGN = OneOf(
    _fixed(
        {
            "off": Text("I give no sign before I answer"),
            "sound": Text("I make a soft sound, if my answer takes longer than a second"),
            "word": Text("I say 'Hm.', if my answer takes longer than a second"),
        }
    ),
    lambda here: (here.server.heard_sign,),
)
_WRITES_DOWN = OneOf(
    _fixed(
        {
            ON: Text(
                "I post what is said only after /join with `listen` or `captions`. Everybody in the chat can read it."
            ),
            ALWAYS: Text(
                "I always write captions into the chat of my voice channel. After /join I can also post what is said."
            ),
            OFF: Text("I do not post what is said."),
        }
    ),
    lambda here: (ALWAYS if here.server.captions else ON if here.server.posts_transcripts else OFF,),
)
# By the field of `ServerSettings`.
_POSTED = {
    "posts_recap": Text("When a session ends, I write in the channel what people talked about."),
    "offers_catch_up": Text(
        "If you were away for five minutes, I offer to tell you what was said. I do it once in a session."
    ),
    "live_message": Text("I write one message in the channel that shows what happens in a session."),
}
_POSTS = OneOf(
    _fixed(_POSTED), lambda here: tuple(field for field in _POSTED if getattr(here.server, field)), several=True
)


def _written(number: float | None, *, per: float = 1) -> str:
    return "" if number is None else f"{number / per:g}"


SETTINGS: tuple[ServerSetting, ...] = (
    ServerSetting(
        "language",
        Text("Language"),
        Text("The language of my messages that everybody in a channel reads."),
        _LANGUAGE,
        lambda chosen, _: {"language": _unless_default(chosen[0])},
        _option(_LANGUAGE),
    ),
    ServerSetting(
        "spoken",
        Text("Spoken languages"),
        Text("The languages that people speak here, such as: en, de. Nothing: the owner of this bot decides."),
        Written(60, lambda here: ", ".join(here.server.spoken)),
        lambda written, here: {"spoken": written_languages(written, here.operator.languages)},
        spoken_sentence,
    ),
    ServerSetting(
        "voice",
        Text("Voice"),
        Text("The voice that I speak with. Use /voice to hear one."),
        OneOf(_voices, lambda here: (here.server.voice or DEFAULT,)),
        lambda chosen, _: {"voice": _unless_default(chosen[0])},
        lambda here: voice_sentence(here.stores.voices, here.server.voice),
        Text("This starts with my next sentence."),
        load_voice,
    ),
    ServerSetting(
        "names",
        Text("Names"),
        Text("My names here. Write up to five names, with commas between them."),
        Written(200, lambda here: ", ".join(here.names)),
        lambda written, _: {"wake_names": written_names(written)},
        lambda here: verbatim(escape_markdown(", ".join(here.names))),
    ),
    ServerSetting(
        "voice-mode",
        Text("When I speak"),
        Text("Whether I wait until somebody says my name."),
        OneOf(
            _fixed({mode.value: words for mode, words in MODES.items()} | {DEFAULT: AS_OPERATOR}),
            lambda here: (here.voice_mode.value,),
        ),
        lambda chosen, _: {"voice_mode": None if chosen[0] == DEFAULT else VoiceMode(chosen[0])},
        lambda here: MODES[here.voice_mode],
    ),
    ServerSetting(
        "heard-sign",
        Text("Sign that I heard you"),
        Text("How I show you that I heard you while I think."),
        _HEARD_SIGN,
        lambda chosen, _: {"heard_sign": chosen[0]},
        _option(_HEARD_SIGN),
    ),
    ServerSetting(
        "persona",
        Text("Persona"),
        Text("How I behave here. Use your own words, for example: You are a funny old sailor."),
        Written(MOST_PERSONA_CHARS, lambda here: here.server.persona or ""),
        lambda written, _: {"persona": written_text(written)},
        persona_sentence,
        NEXT_REPLY,
    ),
    ServerSetting(
        "channel-persona",
        Text("Persona of this channel"),
        Text("Another persona for your voice channel. Write nothing to use the server's persona."),
        Written(MOST_PERSONA_CHARS, lambda here: here.server.personas.get(here.channel_id or 0, "")),
        channel_persona,
        persona_sentence,
        NEXT_REPLY,
    ),
    ServerSetting(
        "memory",
        Text("Memory"),
        Text("How I remember long conversations."),
        OneOf(
            _fixed(MODES_OF_MEMORY | {DEFAULT: AS_OPERATOR}),
            lambda here: (DEFAULT if here.server.mode is None else here.server.mode.value,),
        ),
        lambda chosen, _: {"mode": None if chosen[0] == DEFAULT else Mode(chosen[0])},
        mode_sentence,
        NEXT_REPLY,
    ),
    ServerSetting(
        "budget",
        Text("Budget"),
        Text("Whether I send the language model only as much as it can take at a time."),
        OneOf(
            _fixed(
                {
                    ON: Text("I send only as much as it can take"),
                    OFF: Text("I send everything"),
                    DEFAULT: AS_OPERATOR,
                }
            ),
            lambda here: ({None: DEFAULT, True: ON, False: OFF}[here.server.budget_enabled],),
        ),
        lambda chosen, _: {"budget_enabled": {ON: True, OFF: False}.get(chosen[0])},
        budget_sentence,
        NEXT_REPLY,
    ),
    ServerSetting(
        "notice",
        Text("Notice"),
        Text("What I write first when I begin to listen. Write it in your own words."),
        Written(MOST_NOTICE_CHARS, lambda here: here.server.notice or ""),
        lambda written, _: {"notice": written_text(written)},
        lambda here: own_words(here.server.notice),
        NEXT_SESSION,
    ),
    ServerSetting(
        "consent",
        Text("Consent"),
        Text("Whether I hear everybody, or only people who agree."),
        _CONSENT,
        lambda chosen, _: {"asks": chosen[0] == "ask"},
        _option(_CONSENT),
        NEXT_SESSION,
    ),
    ServerSetting(
        "channels",
        Text("Voice channels"),
        Text("The voice channels that I am allowed to join. If you choose none: all."),
        SomeOf("channels", MOST_CHANNELS, lambda here: here.server.channels),
        lambda chosen, _: {"channels": _ids(chosen)},
        channels_sentence,
    ),
    ServerSetting(
        "roles",
        Text("Roles"),
        Text("Who can call me. If you choose no role: everybody. Server managers always can."),
        SomeOf("roles", MOST_ROLES, lambda here: here.server.roles),
        lambda chosen, _: {"roles": _ids(chosen)},
        roles_sentence,
    ),
    ServerSetting(
        "auto-join",
        Text("Coming by myself"),
        Text("I join these voice channels even if nobody calls me."),
        SomeOf("channels", MOST_CHANNELS, lambda here: here.server.auto_join_channels),
        lambda chosen, _: {"auto_join_channels": _ids(chosen)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "auto-join-people",
        Text("How many people must be there"),
        Text("How many people must be in such a channel before I join it."),
        Written(2, lambda here: str(here.server.auto_join_people)),
        lambda written, _: {"auto_join_people": round(written_number(written, 1, 99) or 2)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "join-with",
        Text("Joining people"),
        Text("I join these people when they go into a voice channel."),
        SomeOf("people", MOST_PEOPLE, lambda here: here.server.auto_join_with),
        lambda chosen, _: {"auto_join_with": _ids(chosen)},
        auto_join_sentence,
        NEXT_COMER,
    ),
    ServerSetting(
        "follow",
        Text("Following"),
        Text("Whether I go with you when you change to another voice channel."),
        _FOLLOW,
        lambda chosen, _: {"follow": chosen[0]},
        _option(_FOLLOW),
    ),
    ServerSetting(
        "leave-when-empty",
        Text("Empty channel"),
        Text("How many minutes I stay in a voice channel when nobody is there."),
        Written(6, lambda here: _written(here.server.leave_when_empty_s, per=60)),
        lambda written, _: {"leave_when_empty_s": 60 * (written_number(written, 0, 1440) or 0) or None},
        empty_sentence,
    ),
    ServerSetting(
        "longest-session",
        Text("Longest session"),
        Text("After how many hours a session ends. Write nothing, and it never ends by itself."),
        Written(5, lambda here: _written(here.server.longest_session_h)),
        lambda written, _: {"longest_session_h": written_number(written, SHORTEST_SESSION_H, LONGEST_SESSION_H)},
        longest_sentence,
    ),
    ServerSetting(
        "retention",
        Text("Retention"),
        Text("For how many days I keep what was said here. Nothing: the owner of this bot decides."),
        Written(6, lambda here: _written(here.server.retention_days)),
        _days,
        retention_sentence,
        Text("This starts within a day, when I next delete old things."),
    ),
    ServerSetting(
        "history",
        Text("Who may read"),
        Text("Who else can read what was said in a channel, besides the people who were there."),
        OneOf(
            _fixed({OFF: Text("nobody"), ON: Text("server managers, and members with a role that they choose")}),
            lambda here: (ON if here.server.opens_history else OFF,),
        ),
        lambda chosen, _: {"opens_history": chosen[0] == ON},
        history_sentence,
        IN_NEXT_NOTICE,
    ),
    ServerSetting(
        "history-role",
        Text("A role that can read"),
        Text("Members with this role can read it too."),
        SomeOf("roles", 1, lambda here: () if here.server.history_role is None else (here.server.history_role,)),
        lambda chosen, _: {"history_role": int(chosen[0]), "opens_history": True} if chosen else {"history_role": None},
        history_sentence,
        IN_NEXT_NOTICE,
    ),
    ServerSetting(
        "chat",
        Text("Written questions"),
        Text("In this text channel I also answer people from my voice channel, if they mention me."),
        SomeOf(
            "text channels", 1, lambda here: () if here.server.chat_channel is None else (here.server.chat_channel,)
        ),
        lambda chosen, _: {"chat_channel": int(chosen[0]) if chosen else None},
        chat_sentence,
        IN_NEXT_NOTICE,
    ),
    ServerSetting(
        "posts",
        Text("What I post by myself"),
        Text("What I write into the chat of the voice channel even if nobody asks me."),
        _POSTS,
        lambda chosen, _: {field: field in chosen for field in _POSTED},
        lambda here: joined([_POSTED[field] for field in _POSTS.now(here)]) or Text("Only my notice."),
        Text("This starts now. The message that shows how a session goes starts with the next session."),
    ),
    ServerSetting(
        "writing-down",
        Text("Writing down"),
        Text("Whether I can post everything that is said, if the person who calls me wants it."),
        _WRITES_DOWN,
        lambda chosen, _: {"posts_transcripts": chosen[0] != OFF, "captions": chosen[0] == ALWAYS},
        _option(_WRITES_DOWN),
    ),
    ServerSetting(
        "captions-language",
        Text("Language of captions"),
        Text("I translate captions into this language, for example: de. Nothing: I do not translate."),
        Written(30, lambda here: here.server.captions_language),
        lambda written, _: {"captions_language": written_language(written)},
        captions_sentence,
    ),
    ServerSetting(
        "webhook",
        Text("Webhook"),
        Text("I send the recap and transcript of each session to this https address. Nothing: I send none."),
        Written(MOST_ADDRESS_CHARS, lambda here: "" if here.server.webhook is None else here.server.webhook.address),
        _webhook,
        webhook_sentence,
        NEXT_SESSION,
        greet_webhook,
        shows_secret=True,
    ),
)
BY_KEY: Mapping[str, ServerSetting] = {setting.key: setting for setting in SETTINGS}
# What the panel shows together, in its order.
GROUPS: Mapping[Text, Sequence[str]] = {
    Text("Speaking"): (
        "language",
        "spoken",
        "voice",
        "names",
        "voice-mode",
        "heard-sign",
        "persona",
        "channel-persona",
        "chat",
        "posts",
    ),
    Text("Privacy"): (
        "notice",
        "consent",
        "history",
        "history-role",
        "writing-down",
        "captions-language",
        "webhook",
        "retention",
    ),
    Text("Joining"): (
        "channels",
        "roles",
        "auto-join",
        "auto-join-people",
        "join-with",
        "follow",
        "leave-when-empty",
        "longest-session",
    ),
    Text("Memory"): ("memory", "budget"),
}
