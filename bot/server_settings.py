"""What the managers of a server have chosen about the bot there, beside the operator's settings.

`ServerSettings` is a value; `ServerSettingsBook` has those of all servers in memory.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import pydantic_core
import structlog
from pydantic import Field, TypeAdapter, ValidationError

from bot.guild import Silence, VoiceMode
from bot.texts.text import ENGLISH
from compaction.model import Mode  # noqa: TC001 - pydantic reads the annotation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = structlog.get_logger()

# Whom the bot follows into another voice channel: nobody; the people whom it joins; or everybody, once nobody is left.
FollowRule = Literal["nobody", "people", "everybody"]
# What tells somebody who waits for an answer that they were heard.
HeardSignKind = Literal["off", "sound", "word"]
# Where what is said is written down.
ListenTarget = Literal["file", "thread"]

MOST_CHANNELS = 25
MOST_ROLES = 25
MOST_PEOPLE = 10
MOST_NOTICE_CHARS = 1_000
# The persona costs tokens in every prompt of the server.
MOST_PERSONA_CHARS = 1_500
# Voice channels with a persona of their own.
MOST_PERSONAS = 10
MOST_NAMES = 5
MOST_LANGUAGES = 10
MOST_ADDRESS_CHARS = 500
# An hour at least, so that nobody ends sessions by mistake; a day at most, like Discord's own longest stage.
SHORTEST_SESSION_H, LONGEST_SESSION_H = 1, 24

_Channels = Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(max_length=MOST_CHANNELS)]
_Roles = Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(max_length=MOST_ROLES)]
_People = Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(max_length=MOST_PEOPLE)]
_Persona = Annotated[str, Field(min_length=1, max_length=MOST_PERSONA_CHARS)]
_Language = Annotated[str, Field(pattern=r"^([a-z]{2,3})?$")]


@dataclass(frozen=True, slots=True)
class ListenRequest:
    """What is said is to be written down: into a file at the end, or into a thread meanwhile.

    `channel_id`: the text channel for the thread. `captions`: the bot takes part besides, else it says nothing.
    `language`: the code of the language into which lines in a thread are translated; empty: they are not.
    """

    target: ListenTarget
    channel_id: int
    captions: bool = False
    language: _Language = ""


@dataclass(frozen=True, slots=True)
class ListenOnly:
    """A session that somebody has asked to be written down. `thread_id`: the thread that was begun for it."""

    session_id: str
    request: ListenRequest
    thread_id: int | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the recap and the transcript of each session go. `secret` signs them. `since`: when it was chosen, in UTC
    epoch seconds, which tells it from another one.
    """

    address: Annotated[str, Field(max_length=MOST_ADDRESS_CHARS)] = field(repr=False)
    secret: str = field(repr=False)
    since: float


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The choices of one server. None: the operator's setting applies.

    `language`: of what everybody in a channel reads, as a Discord locale; None: the server's own. `asks`: the bot hears
    only people who agreed. `channels`, `roles`: the only ones that the bot serves, beside the operator's; empty: all.
    """

    language: Annotated[str, Field(max_length=10)] | None = None
    voice: Annotated[str, Field(max_length=100)] | None = None
    notice: Annotated[str, Field(min_length=1, max_length=MOST_NOTICE_CHARS)] | None = None
    asks: bool = False
    channels: _Channels = ()
    roles: _Roles = ()
    # Joining without being called: the channels (empty: none), how many people have to be there, or who has to come.
    auto_join_channels: _Channels = ()
    auto_join_people: Annotated[int, Field(ge=1, le=99)] = 2
    auto_join_with: _People = ()
    follow: FollowRule = "nobody"
    leave_when_empty_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    longest_session_h: Annotated[float, Field(ge=SHORTEST_SESSION_H, le=LONGEST_SESSION_H)] | None = None
    # Whether who may manage the server, and the members of a role, read what was said while they were not there.
    opens_history: bool = False
    history_role: Annotated[int, Field(gt=0)] | None = None
    retention_days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    posts_recap: bool = False
    # Whether people may have the bot write down what is said in a file or a thread, which whoever sees it reads.
    posts_transcripts: bool = False
    # Whether every session in which the bot takes part has captions in its voice channel's chat, and the code of the
    # language into which captions are translated (empty: they are not).
    captions: bool = False
    captions_language: _Language = ""
    webhook: Webhook | None = None
    # Whether who comes back after some minutes is offered what was said meanwhile.
    offers_catch_up: bool = True
    live_message: bool = True
    # A text channel in which people talk with the bot in writing, beside the chat of its voice channel.
    chat_channel: Annotated[int, Field(gt=0)] | None = None
    listen_only: ListenOnly | None = None
    # How sessions remember, and whether a prompt is kept within the model's room.
    mode: Mode | None = None
    budget_enabled: bool | None = None
    voice_mode: VoiceMode | None = None
    heard_sign: HeardSignKind = "off"
    wake_names: Annotated[tuple[str, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    # The bot's character, in the words of whoever may manage the server.
    persona: _Persona | None = None
    # By voice channel, in place of that.
    personas: Annotated[dict[Annotated[int, Field(gt=0)], _Persona], Field(max_length=MOST_PERSONAS)] = field(
        default_factory=dict
    )
    # Codes of the languages that are spoken there; empty: those of the operator.
    spoken: Annotated[tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...], Field(max_length=MOST_LANGUAGES)] = ()
    silence: Silence = field(default_factory=Silence)

    def written_down(self, session_id: str) -> ListenOnly | None:
        """Return how somebody has asked for a session to be written down; None: nobody has, or may any more."""
        asked = self.listen_only
        if asked is None or asked.session_id != session_id:
            return None
        return asked if self.posts_transcripts or not asked.request.captions else None

    def captions_of(self, session_id: str, channel_id: int) -> ListenRequest | None:
        """Return the captions of a session in a voice channel: those that somebody has asked for, or that each session
        has; None: there are none.
        """
        if (asked := self.written_down(session_id)) is not None:
            return asked.request if asked.request.captions else None
        if not self.captions:
            return None
        return ListenRequest("thread", channel_id, captions=True, language=self.captions_language)

    def languages_spoken(self, operators: tuple[str, ...]) -> tuple[str, ...]:
        """Return the languages in which people are heard; empty: any. `operators`: the operator's, which a server
        narrows and never widens.
        """
        return tuple(each for each in self.spoken if each in operators or not operators) or operators


DEFAULTS = ServerSettings()
_VALUES: TypeAdapter[ServerSettings] = TypeAdapter(ServerSettings)


def to_json(settings: ServerSettings) -> str:
    """Return the choices that differ from the defaults."""
    return _VALUES.dump_json(settings, exclude_defaults=True).decode()


def from_json(text: str) -> ServerSettings:
    """Return stored choices. Raises `ValueError` if they are no such choices."""
    try:
        return _VALUES.validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{error.error_count()} of its values are not valid") from error


def from_damaged(text: str) -> ServerSettings:
    """Return what is valid of stored choices that are not valid as a whole.

    Nobody can tell what else was chosen. So the bot hears only people there who agree, until a manager chooses again,
    and is silent until a manager lets it talk if a silence may have been chosen that cannot be read.
    """
    values: object = None
    with suppress(ValueError):
        values = pydantic_core.from_json(text)
    valid: dict[str, object] = {}
    for name, value in (values if isinstance(values, dict) else {}).items():
        with suppress(ValidationError):
            _VALUES.validate_json(pydantic_core.to_json({name: value}))
            valid[name] = value
    found = replace(_VALUES.validate_json(pydantic_core.to_json(valid)), asks=True)
    maybe_silenced = not isinstance(values, dict) or "silence" in values.keys() - valid.keys()
    return replace(found, silence=Silence(always=True)) if maybe_silenced else found


def without_person(settings: ServerSettings, person_id: int) -> ServerSettings:
    """Return the choices without this person in them."""
    others = tuple(each for each in settings.auto_join_with if each != person_id)
    return replace(settings, auto_join_with=others)


class ServerSettingsStore(Protocol):
    """Keeps the settings of all servers; `bot.store.servers.SqlServerSettings` implements it. Raises `StoreError`."""

    async def all(self) -> Mapping[int, ServerSettings]:
        """Return what each server has chosen, by its id. Of damaged choices it is `from_damaged`, and logged."""

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        """Replace what a server has chosen. `by`: the member who chose; None: the bot itself."""


class ServerSettingsBook:
    """The settings of all servers, in memory. All changes go through it. For one event loop; not thread-safe."""

    def __init__(self, store: ServerSettingsStore) -> None:
        self._store = store
        self._known: dict[int, ServerSettings] = {}
        # By server: the silence that holds there, as long as it is not stored.
        self._unstored_silences: dict[int, Silence] = {}
        # A change is made of what holds, and writing it may take seconds; another one begun meanwhile would be lost.
        self._one_at_a_time = asyncio.Lock()

    async def load(self) -> None:
        """Read what is stored. Call it again when people may have been forgotten by another process. Raises
        `StoreError`.
        """
        async with self._one_at_a_time:
            self._known = dict(await self._store.all())

    def of(self, guild_id: int) -> ServerSettings:
        """Return what a server has chosen, with the silence that holds there, stored or not."""
        known = self._known.get(guild_id, DEFAULTS)
        silence = self._unstored_silences.get(guild_id)
        return known if silence is None else replace(known, silence=silence)

    def all(self) -> Mapping[int, ServerSettings]:
        """Return what is stored of all servers that have chosen anything."""
        return self._known

    async def write_down(self, guild_id: int, session_id: str, request: ListenRequest | None) -> None:
        """Store how somebody has asked for a session to be written down; None: no longer. Raises `StoreError`."""
        asked = None if request is None else ListenOnly(session_id, request)
        await self.change(guild_id, lambda now: replace(now, listen_only=asked), by=None)

    def hold_silence(self, guild_id: int, silence: Silence) -> None:
        """Let a silence apply to a server at once. The next change there stores it."""
        self._unstored_silences[guild_id] = silence

    async def change(
        self, guild_id: int, change: Callable[[ServerSettings], ServerSettings], *, by: int | None
    ) -> ServerSettings:
        """Store a server's new choices, let them apply, and return them. Raises `StoreError` and what `change` raises;
        then nothing is changed.

        `change`: makes the new choices of those that hold when the changes begun before are stored. Take nothing from
        `of` for it: another change may be under way.
        """
        async with self._one_at_a_time:
            # People may have been forgotten meanwhile, by `roomtone memory forget`. They do not come back.
            self._known = dict(await self._store.all())
            settings = change(self.of(guild_id))
            await self._store.put(guild_id, settings, by=by)
            self._known[guild_id] = settings
            # Another silence may have begun meanwhile.
            if self._unstored_silences.get(guild_id) == settings.silence:
                del self._unstored_silences[guild_id]
        log.info("server_settings_changed", guild_id=guild_id, user_id=by)
        return settings


class MemoryServerSettings:
    """Keeps settings in memory only: for replays, rehearsals and tests. Passes the tests of the store."""

    def __init__(self) -> None:
        self._rows: dict[int, str] = {}

    async def all(self) -> Mapping[int, ServerSettings]:
        return {guild_id: from_json(text) for guild_id, text in self._rows.items()}

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        self._rows[guild_id] = to_json(settings)


def no_server_settings() -> ServerSettingsBook:
    """Return a book in which every server has the defaults."""
    return ServerSettingsBook(MemoryServerSettings())


# What Discord tells of a server whose managers have chosen no language.
_UNCHOSEN_LOCALE = "en-US"


def language_in(settings: ServerSettings, guild_locale: str) -> str:
    """Return the language of what everybody in a channel reads. `guild_locale`: the server's own on Discord."""
    return settings.language or guild_locale or ENGLISH


def language_to_assume(settings: ServerSettings, locale: str) -> str:
    """Return the code of the language in which to hear speech whose language is not sure; empty: the operator's.

    `locale`: what `language_in` returns.
    """
    chosen = settings.language or ("" if locale == _UNCHOSEN_LOCALE else locale)
    return chosen.partition("-")[0]
