"""The interface between a room and its voice channel and text chat. `bot.discord` implements it; tests use fakes.

The room also gets its voice connection here, so that it does not depend on Discord's library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from bot.errors import BotError
from bot.texts.text import Text, verbatim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.viewers import Viewer
    from compaction.memory.digest import Digest
    from voice.errors import VoiceConnectionError
    from voice.queue_figures import QueueFigures
    from voice.transport.audio_events import AudioEvent
    from voice.transport.counters import PacketCounters
    from voice.transport.outgoing import FrameSource

    # Takes a press by somebody, with their roles of now: whether it is *Do it*. Returns why it does not count, for that
    # person alone, or None if it does.
    OnPress = Callable[["Person", bool], Text | None]
    # Lines or another text, a card, what a session was about, or a file (its name and content).
    PostContent: TypeAlias = "str | Card | Digest | tuple[str, bytes]"

COMING = Text("I am coming to {channel}.")
RECAP = Text("What people talked about in {channel}")
# What a message says until it has words.
NO_WORDS_YET = verbatim("…")
IN_NO_CHANNEL = Text("I am not in a voice channel here. Join a voice channel and use /join.")
HERE_ALREADY = Text("I am already in {channel}. Use /leave first.")


@dataclass(frozen=True, slots=True)
class Person:
    """A member of the channel, with the name that Discord shows now."""

    id: int
    name: str
    is_bot: bool
    # As far as they are known: the ids of their roles, that of everybody included, and whether they may read what is in
    # the channel's chat.
    roles: frozenset[int] = frozenset()
    reads_chat: bool = False


@dataclass(frozen=True, slots=True)
class UnfinishedWords:
    """What is recognised so far of somebody who still speaks. `name`: theirs."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """Somebody joined the channel or left it. Never the bot itself."""

    person: Person
    joined: bool


@dataclass(frozen=True, slots=True)
class Card:
    """A message with a title and fields (name, value) for everybody in the channel. What people said is escaped."""

    title: Text
    text: Text | None = None
    fields: tuple[tuple[Text, Text], ...] = ()


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call that waits for a press. `asker`: the name of who asked. `server`: the MCP server that has the tool;
    empty: it is our own. `arguments`: all of them; None: it runs already, and may be stopped.
    """

    asker: str
    tool: str
    server: str
    arguments: Mapping[str, object] | None


class CallMessage(Protocol):
    """The message with a call and its buttons."""

    async def conclude(self, outcome: Text) -> None:
        """Take the buttons away and write what became of the call. A failure is logged."""


class ChatError(BotError):
    """The chat could not be read or written. The message is a plain sentence with the remedy."""


class ChannelGoneError(ChatError):
    """The thread or channel was deleted, so nothing more can be written there."""


class EditsLimitedError(ChatError):
    """Discord takes no more edits of this message for now: it is older than an hour, and few of those may be edited."""


class ChannelNotAllowedError(BotError):
    """The bot cannot or may not come into that voice channel. The message says why."""


@dataclass(frozen=True, slots=True)
class DroppedFile:
    """A file that somebody posted in the chat. `by`: their name. `by_id`: who they are. `at`: UTC epoch seconds.
    `content_type`: Discord's guess.
    """

    id: int
    name: str
    size_bytes: int
    content_type: str
    by: str
    by_id: int
    at: float


@dataclass(frozen=True, slots=True)
class Recording:
    """A voice message, as Discord describes it. `fetch`: returns its content, or raises `ChatError`. `to_bot`: it
    replies to the bot; else it is for everybody in the chat of its room.
    """

    duration_s: float
    size_bytes: int
    fetch: Callable[[], Awaitable[bytes]]
    to_bot: bool


class TypedMessage(Protocol):
    """A message that a person has typed to the bot, or spoken into a voice message."""

    @property
    def person(self) -> Person:
        """Return who typed it."""

    @property
    def text(self) -> str:
        """Return what they typed, without the mention of the bot, on one line; empty for a voice message."""

    @property
    def recording(self) -> Recording | None:
        """Return the voice message that it is; None: it is typed."""

    async def answer(self, text: str) -> bool:
        """Reply to it without mentioning anybody; return whether Discord accepted that. A refusal is logged."""


class Chat(Protocol):
    """The voice channel's own chat, used by a tool with the permissions of the person who asks.

    Each call works out anew what that person may do, and raises `ChatError` for what they may not do themselves.
    """

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        """Return the newest files that others than the bot have posted, newest first. Raises `ChatError`."""

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        """Return a file's content. Raises `ChatError`, also if it is larger than `max_bytes`."""

    async def post(self, text: str, *, calls_asker: bool = False) -> None:
        """Write into the chat. It mentions nobody, or with `calls_asker` who asks. Raises `ChatError`."""


class Posts(Protocol):
    """The messages of the bot in a thread that it has begun, or in the chat of a voice channel."""

    @property
    def id(self) -> int:
        """Return the id of the thread, for `RoomChannel.open_thread`, or of the channel."""

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        """Post a message without words of people, which calls nobody, and return its id: their words go only into one
        that is noted. Raises `ChatError`, `ChannelGoneError` if there is no such channel any more.
        """

    async def fill(self, message_id: int, content: PostContent) -> bool:
        """Replace what a message has; return False if somebody has deleted it. Mentions nobody. Raises `ChatError`, for
        one that is too old `EditsLimitedError`, and `ChannelGoneError` as `begin`.
        """

    async def delete(self, message_id: int) -> bool:
        """Delete a message; return whether it is gone. A failure is logged."""


class VoiceConnection(Protocol):
    """An open voice connection."""

    async def lost(self) -> VoiceConnectionError:
        """Wait until the connection is lost for good and return the reason."""

    @property
    def removed(self) -> bool:
        """Return whether the connection ended because somebody removed the bot from the channel."""

    @property
    def connected(self) -> bool:
        """Return whether the connection is up."""

    @property
    def down_since(self) -> float | None:
        """Return since when the connection is down, in monotonic seconds; None while it is up."""

    @property
    def unheard(self) -> bool:
        """Return whether somebody speaks and no sound arrives from anybody."""

    @property
    def end_to_end(self) -> bool:
        """Return whether the call is end-to-end encrypted at the moment."""

    @property
    def privacy_code(self) -> str:
        """Return the digits that Discord shows everybody in the call, or an empty text if it is not encrypted."""

    @property
    def round_trip_s(self) -> float | None:
        """Return how long the voice server takes to answer, in seconds; None while it is not known."""

    @property
    def queue(self) -> QueueFigures:
        """Return how much received sound waits to be heard."""

    def counters(self) -> PacketCounters:
        """Return the number of packets by outcome, since the bot joined."""


class ConnectionListener(Protocol):
    """What a voice connection tells, on the event loop, and asks. `bot.room.room` implements it."""

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        """Take the sound of people. It must be quick."""

    def heard_since(self, user_id: int) -> float | None:
        """Return since when a person may be heard, in monotonic seconds. What came before, or all if it is None, is
        dropped without decrypting it; packets of bots always are. The connection's thread asks for every packet.
        """

    def on_change(self) -> None:
        """The connection broke or came back."""

    async def is_owner(self) -> bool:
        """Return whether Discord may be asked to let the bot in or out."""


class RoomChannel(Protocol):
    """One voice channel of one guild, with its own text chat."""

    # -- which channel it is -------------------------------------------------------------------------------

    @property
    def guild_id(self) -> int:
        """Return the id of the Discord server."""

    @property
    def channel_id(self) -> int:
        """Return the id of the voice channel."""

    @property
    def name(self) -> str:
        """Return the voice channel's name."""

    @property
    def guild_name(self) -> str:
        """Return the guild's name, for the recogniser's glossary."""

    @property
    def language(self) -> str:
        """Return the language of what everybody in the channel reads, as a Discord locale."""

    @property
    def occasions(self) -> Sequence[str]:
        """Return what people here may speak of: topics, and the titles of events that go on or come. They can read it.

        Written by anybody who may; for the recogniser's glossary only.
        """

    # -- who is there, and what they may do ----------------------------------------------------------------

    def members(self) -> Sequence[Person]:
        """Return the members of the channel now, without the bot itself."""

    async def refresh_rights(self, *, newcomers_only: bool = False) -> None:
        """Ask Discord what the members present may do, since it does not tell when a role is taken away.

        Until it is known of somebody, they have no roles, and only this channel is shared. A failure is logged.
        """

    def shared_channels(self) -> frozenset[int]:
        """Return this channel and the guild's other voice channels that everybody present may see and enter now.

        What was said in these may be told here. If it is not known who is present, only this channel.
        """

    def viewers(self) -> Sequence[Viewer]:
        """Return everybody present but bots, as `bot.viewers` knows people: all of them hear what is said."""

    # -- what the bot writes -------------------------------------------------------------------------------

    async def write(self, sentence: Text) -> None:
        """Write into the text chat. A failure is logged and not raised, because nothing depends on it."""

    async def offer_talk(self, sentence: Text) -> None:
        """Write that the bot is silent, with the button *Talk again*. A failure is logged and not raised."""

    async def write_notice(self, text: Text, *, asks: bool = False) -> bool:
        """Write into the voice channel's own chat; return whether Discord accepted it. A refusal is logged.

        `asks`: with buttons by which people agree to be heard, or do not.
        """

    @property
    def posts(self) -> Posts:
        """Return the messages in the channel's own chat."""

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        """Offer to tell somebody who comes back what was said; return whether Discord accepted it. Calls nobody."""

    async def open_thread(self, channel_id: int, *, begun: int | None = None) -> Posts:
        """Begin a thread in a text channel of the server, for a transcript. Raises `ChatError`.

        `begun`: the id of the thread to go on with; another one is begun if it is gone or locked.
        A voice channel's own chat has no threads: there the chat itself is returned.
        """

    def chat_for(self, asker_id: int | None) -> Chat:
        """Return the text chat with the permissions of one member, for tools. None: nobody asked."""

    async def ask_for_press(self, request: CallRequest, on_press: OnPress) -> CallMessage:
        """Post a call in full in the channel's own chat, with the buttons *Do it* and *Don't*; one that runs already,
        with *Stop*. Raises `ChatError`.
        """

    # -- the voice connection ------------------------------------------------------------------------------

    def refusal(self) -> Text | None:
        """Return why the bot cannot or may not come in now, or None: a permission is missing, the channel is full."""

    def connect(
        self,
        source: FrameSource,
        listener: ConnectionListener,
    ) -> AbstractAsyncContextManager[VoiceConnection]:
        """Join the channel, pass received audio to `listener`, and send the frames of `source`. Raises
        `VoiceConnectionError`.
        """

    @property
    def audible(self) -> bool:
        """Return whether people can hear the bot: nobody has muted it, and on a stage it is a speaker."""

    @property
    def muted(self) -> bool:
        """Return whether somebody has muted the bot on the server."""

    @property
    def deafened(self) -> bool:
        """Return whether somebody has deafened the bot on the server, so that Discord sends it no sound."""

    async def show_listening(self, *, on: bool) -> bool:
        """Mark the bot's name or the channel as listening, or remove the mark. Return whether the mark is visible.

        A refusal is logged.
        """
