"""What a setting of a server is: how it is chosen, what people may write in it, and the sentences that tell what
holds. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bot.brain.wakeword import MOST_WORDS
from bot.channel.markdown import escape_markdown
from bot.discord.access import channel_refusal
from bot.errors import BotError
from bot.guild import VoiceMode
from bot.outgoing_address import host_of
from bot.server_settings import MOST_LANGUAGES, MOST_NAMES, MOST_PERSONAS, ServerSettings, ServerSettingsBook
from bot.texts.text import Text, counted, joined, verbatim
from compaction.model import Mode
from voice.asr.language_names import LANGUAGE_CODES, language_code

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    import discord

    from bot.discord.commands.voice import VoiceCommands
    from bot.settings import RoomSettings
    from bot.webhook_sender import WebhookSender

    Changes = Mapping[str, Any]

AT_ONCE = Text("This starts now.")
MOST_NAME_CHARS = 32
# At least two letters in a row, and no signs with which it could look like another part of a prompt.
_SPEAKABLE = re.compile(r"(?=.*[^\W\d_]{2})[\w .'’*-]+")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these is chosen; with `several` any of them, or none. `options`: of a server, by what is stored. `now`:
    what holds.
    """

    options: Callable[[SettingStores, int], Mapping[str, Text]]
    now: Callable[[Here], tuple[str, ...]]
    several: bool = False


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


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """One setting. `about`: at most 100 characters, as Discord shows it beside the name.

    `control`: how it is chosen. `changes`: what to store for what was chosen: ids or keys of options, or the one text
    that was written; raises `BotError`. `describe`: returns what holds. `prepare`: done before it is stored; raises
    `BotError`. `shows_secret`: the secret of the webhook is told right after it was chosen, and never again.
    """

    key: str
    name: Text
    about: Text
    control: OneOf | SomeOf | Written
    changes: Callable[[list[str], Here], Changes]
    describe: Callable[[Here], Text]
    effect: Text = AT_ONCE
    prepare: Callable[[Changes, SettingStores, discord.Interaction], Awaitable[None]] | None = None
    shows_secret: bool = False


class SettingError(BotError):
    """What somebody chose cannot be. The message says what can."""


def written_text(written: list[str]) -> str | None:
    return "".join(written).strip() or None


def written_number(written: list[str], least: float, most: float) -> float | None:
    """Return what somebody wrote as a number; None if they wrote nothing. A comma may be the decimal sign."""
    text = written_text(written)
    if text is None:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise SettingError(Text("Write a number from {least} to {most}, or write nothing.", least=least, most=most))
    return number


def written_names(written: list[str]) -> tuple[str, ...] | None:
    """Return the names that somebody wrote, with commas between them; None if they wrote nothing."""
    text = written_text(written)
    if text is None:
        return None
    # As the recogniser writes them.
    composed = unicodedata.normalize("NFC", text)
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in composed.split(",") if name.strip()))
    if not 1 <= len(names) <= MOST_NAMES or not all(map(_is_name, names)):
        raise SettingError(
            Text(
                "Write one to {most} names, with commas between them. Each name must have at least "
                "two letters. It can have {words} words and {chars} characters at most.",
                most=MOST_NAMES,
                words=MOST_WORDS,
                chars=MOST_NAME_CHARS,
            )
        )
    return names


def written_languages(written: list[str], among: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes of the languages that somebody wrote, by code or English name, with commas between them.
    `among`: the operator's; empty: any.
    """
    names = [name for name in written[0].split(",") if name.strip()]
    codes = tuple(dict.fromkeys(map(language_code, names)))
    known = among or tuple(LANGUAGE_CODES.values())
    if len(codes) > MOST_LANGUAGES or not set(codes) <= set(known):
        raise SettingError(
            Text(
                "Write at most {most} languages, with commas between them. I know these: {known}.",
                most=MOST_LANGUAGES,
                known=", ".join(known),
            )
        )
    return codes


def written_language(written: list[str]) -> str:
    """Return the code of the language that somebody wrote, by code or English name; empty if they wrote nothing."""
    codes = written_languages(written, ())
    if len(codes) > 1:
        raise SettingError(Text("Write one language, for example: de"))
    return "".join(codes)


def channel_persona(written: list[str], here: Here) -> Changes:
    """Return the personas of voice channels with what somebody wrote for the one where they are."""
    if here.channel_id is None:
        raise SettingError(
            Text("First join a voice channel, or use /settings in its chat. Then you can choose its persona.")
        )
    text = written_text(written)
    # Those of deleted channels go.
    others = {each: own for each, own in here.server.personas.items() if each in here.channels - {here.channel_id}}
    if text is None:
        return {"personas": others}
    if len(others) >= MOST_PERSONAS:
        sentence = Text(
            "{most} channels already have their own persona, and more are not possible: {channels}. "
            "First delete one of these personas."
        )
        raise SettingError(sentence.fill(most=MOST_PERSONAS, channels=mentions("#", others)))
    return {"personas": others | {here.channel_id: text}}


def _is_name(name: str) -> bool:
    # The signs at letters are vowels in many scripts.
    letters = "".join(sign for sign in name if unicodedata.category(sign)[0] != "M")
    return len(name) <= MOST_NAME_CHARS and len(name.split()) <= MOST_WORDS and bool(_SPEAKABLE.fullmatch(letters))


# So much of the notice and the persona is shown beside the other settings.
_SHOWN_CHARS = 300
AS_OPERATOR = Text("the choice of the owner of this bot")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What applies where a server has chosen nothing, and what it cannot loosen. `retention_days` 0: for ever.
    `searchable`: there is a memory search, which the mode `rolling` needs. `fixed`: keys of settings that servers don't
    change.
    """

    leave_when_empty_s: float
    retention_days: float
    room: RoomSettings
    mode: Mode = Mode.SUMMARY
    budget_enabled: bool = True
    max_input_tokens: int = 0
    searchable: bool = True
    voice_mode: VoiceMode = VoiceMode.ENGAGED
    wake_names: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    fixed: frozenset[str] = frozenset()

    def kept_days(self, settings: ServerSettings) -> float:
        """Return for how many days a server's sessions are kept: the shorter of both times; 0: for ever."""
        chosen = [days for days in (self.retention_days, settings.retention_days or 0) if days]
        return min(chosen, default=0)


@dataclass(frozen=True, slots=True)
class SettingStores:
    """What the settings are read from and stored in. `webhooks`: tries an address."""

    servers: ServerSettingsBook
    operator: OperatorSettings
    voices: VoiceCommands
    webhooks: WebhookSender


@dataclass(frozen=True, slots=True)
class Here:
    """What holds on one server. `channel_id`: the voice channel where somebody chooses, if there is one. `channels`:
    those that the server has.
    """

    stores: SettingStores
    guild_id: int
    server: ServerSettings
    channel_id: int | None = None
    channels: frozenset[int] = frozenset()

    @property
    def operator(self) -> OperatorSettings:
        return self.stores.operator

    @property
    def names(self) -> tuple[str, ...]:
        return self.server.wake_names or self.operator.wake_names

    @property
    def voice_mode(self) -> VoiceMode:
        return self.server.voice_mode or self.operator.voice_mode


MODES_OF_MEMORY = {
    Mode.SUMMARY.value: Text("summary: I see the last 50 things that were said, and a summary of the older ones"),
    Mode.ROLLING.value: Text("rolling: I see as much as the language model can take, and search finds the rest"),
    Mode.OFF.value: Text(
        "off: I see the last 50 things that were said. I see older ones only if memory search finds them"
    ),
}


def mode_sentence(here: Here) -> Text:
    """Return how the server's sessions remember."""
    mode = here.server.mode or here.operator.mode
    sentence = Text("{mode} ({source}).", mode=MODES_OF_MEMORY[mode.value], source=_source(here.server.mode))
    if mode is Mode.ROLLING and not here.operator.searchable:
        missing = Text("I have no memory search at the moment, so I work as in the mode summary.")
        return joined((sentence, missing))
    return sentence


def budget_sentence(here: Here) -> Text:
    chosen = here.server.budget_enabled
    if not (here.operator.budget_enabled if chosen is None else chosen):
        return Text("Budget off: I send the language model everything ({source}).", source=_source(chosen))
    limit = here.operator.max_input_tokens
    return Text(
        "Budget on: I send the language model at most {limit} tokens at a time ({source}).",
        limit=limit,
        source=_source(chosen),
    )


def _source(chosen: object) -> Text:
    return Text("my settings") if chosen is None else Text("chosen here")


def spoken_sentence(here: Here) -> Text:
    if languages := here.server.languages_spoken(here.operator.languages):
        return Text("I understand only these languages: {languages}.", languages=", ".join(languages))
    return Text("I understand every language that I know.")


def channels_sentence(here: Here) -> Text:
    if chosen := here.server.channels:
        return Text("I am allowed to join only these voice channels: {channels}.", channels=mentions("#", chosen))
    return Text("I am allowed to join all voice channels.")


def roles_sentence(here: Here) -> Text:
    if chosen := here.server.roles:
        return Text("Server managers and members with these roles can call me: {roles}.", roles=mentions("@&", chosen))
    return Text("Everybody can call me.")


def auto_join_sentence(here: Here) -> Text:
    """Return where and when the bot comes without being called."""
    settings = here.server
    allowed = [each for each in settings.auto_join_channels if channel_refusal(each, "", settings.channels) is None]
    sentences = []
    if allowed:
        sentences.append(
            counted(
                settings.auto_join_people,
                "When {count} person is in one of these channels, I join by myself: {channels}.",
                "When {count} people are in one of these channels, I join by myself: {channels}.",
                channels=mentions("#", allowed),
            )
        )
    if shut := [each for each in settings.auto_join_channels if each not in allowed]:
        # The server's channels or those of the operator may have been restricted later.
        sentences.append(
            Text(
                "I do not join {channels} by myself, because I am not allowed to be there.",
                channels=mentions("#", shut),
            )
        )
    if settings.auto_join_with:
        people = mentions("@", settings.auto_join_with)
        sentences.append(Text("When one of these people joins a voice channel, I join too: {people}.", people=people))
    return joined(sentences) if sentences else Text("I come only if somebody calls me.")


def empty_sentence(here: Here) -> Text:
    return counted(
        round((here.server.leave_when_empty_s or here.operator.leave_when_empty_s) / 60, 1),
        "I leave a voice channel when nobody has been there for {count} minute.",
        "I leave a voice channel when nobody has been there for {count} minutes.",
    )


def longest_sentence(here: Here) -> Text:
    if here.server.longest_session_h is None:
        return Text("A session can go on as long as people stay.")
    return counted(
        here.server.longest_session_h,
        "A session ends after {count} hour. Use /join to begin a new one.",
        "A session ends after {count} hours. Use /join to begin a new one.",
    )


def retention_sentence(here: Here) -> Text:
    days = here.operator.kept_days(here.server)
    if not days:
        return Text("I keep what was said until somebody deletes it.")
    return counted(days, "After {count} day, I delete what was said.", "After {count} days, I delete what was said.")


def chat_sentence(here: Here) -> Text:
    if here.server.chat_channel is None:
        return Text("I answer people who mention me in the chat of my voice channel.")
    return Text(
        "I answer people who mention me in the chat of my voice channel or in {channel}. Everybody "
        "who can read {channel} reads my answers. My answers can repeat what was said in my voice "
        "channel.",
        channel=mentions("#", [here.server.chat_channel]),
    )


def history_sentence(here: Here) -> Text:
    if not here.server.opens_history:
        return Text("People can only read what was said while they were in the channel.")
    if here.server.history_role is None:
        return Text("Server managers can read everything that I wrote down in the channels that they can enter.")
    return Text(
        "Server managers and members with the role {role} can read everything that I wrote down in the channels that "
        "they can enter.",
        role=mentions("@&", [here.server.history_role]),
    )


def captions_sentence(here: Here) -> Text:
    if not here.server.captions_language:
        return Text("I write captions in the language that people speak.")
    return Text("I translate captions into: {language}", language=here.server.captions_language)


def webhook_sentence(here: Here) -> Text:
    if here.server.webhook is None:
        return Text("I do not send my recaps to any web address.")
    return Text(
        "When a session ends, I send its recap and transcript to {host}.", host=host_of(here.server.webhook.address)
    )


def webhook_secret(here: Here) -> str:
    if here.server.webhook is None:
        return ""
    return Text(
        "With this secret, your computer can check that a message comes from me. I show it only now: {secret}",
        secret=verbatim(f"`{here.server.webhook.secret}`"),
    )


def own_words(text: str | None) -> Text:
    return AS_OPERATOR if text is None else verbatim(escape_markdown(text[:_SHOWN_CHARS]))


def persona_sentence(here: Here) -> Text:
    """Return the persona in force in the voice channel where somebody is, and which channels have another one."""
    own, usual = here.server.personas, own_words(here.server.persona)
    if here.channel_id in own:
        channel = mentions("#", [here.channel_id])
        usual = Text(
            "{persona} (in {channel}; elsewhere: {usual})",
            persona=own_words(own[here.channel_id]),
            channel=channel,
            usual=usual,
        )
    others = [each for each in own if each != here.channel_id]
    if not others:
        return usual
    return joined(
        (usual, Text("These channels have another persona: {channels}", channels=mentions("#", others))), "\n"
    )


def mentions(kind: str, ids: Iterable[int]) -> Text:
    """Return Discord's mentions of channels (`#`), roles (`@&`) or people (`@`). An answer pings nobody."""
    return verbatim(", ".join(f"<{kind}{number}>" for number in ids))
