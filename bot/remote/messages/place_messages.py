"""What a room's process asks of its voice channel, and is told of it: the members of `bot.channel.port.Place`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Base64Bytes

from bot.channel.port import DroppedFile, Person
from bot.remote.messages.frames import Notice, Request
from bot.remote.messages.voice_messages import VoiceFacts
from bot.remote.messages.wire_text import WireText
from compaction.memory.digest import Digest


@dataclass(frozen=True, slots=True)
class PlaceFacts(Notice):
    """Everything that a room reads of its channel without asking. Sent whole, whenever something has changed."""

    name: str
    guild_name: str
    occasions: tuple[str, ...]
    language: str
    members: tuple[Person, ...]
    shared_channels: frozenset[int]
    audible: bool
    muted: bool
    deafened: bool
    refusal: WireText | None
    voice: VoiceFacts


@dataclass(frozen=True, slots=True)
class AskCurrent(Request[bool]):
    """Answered with True, after everything that commands have changed before: messages stay in their order."""


@dataclass(frozen=True, slots=True)
class RefreshRights(Request[None]):
    """The facts that come of it are told before the answer."""

    newcomers_only: bool


@dataclass(frozen=True, slots=True)
class WriteSentence(Request[None]):
    """See `Place.write`."""

    sentence: WireText


@dataclass(frozen=True, slots=True)
class WriteNotice(Request[bool]):
    """See `Place.write_notice`."""

    text: WireText
    asks: bool


@dataclass(frozen=True, slots=True)
class ShowCard(Request[int | None]):
    """See `Place.show_card`."""

    title: WireText
    text: WireText
    fields: tuple[tuple[WireText, WireText], ...]
    edits: int | None


@dataclass(frozen=True, slots=True)
class OpenThread(Request[int]):
    """See `Place.open_thread`. Answered with the thread's id, for `PostInThread`."""

    channel_id: int
    begun: int | None


@dataclass(frozen=True, slots=True)
class PostInThread(Request[bool]):
    """False: this gateway process does not know the thread; somebody has started it again."""

    thread: int
    text: str


@dataclass(frozen=True, slots=True)
class PostFile(Request[None]):
    """See `Place.post_file`."""

    name: str
    content: Base64Bytes
    text: WireText


@dataclass(frozen=True, slots=True)
class WriteRecap(Request[int | None]):
    """See `Place.write_recap`."""

    digest: Digest


@dataclass(frozen=True, slots=True)
class RenewRecap(Request[bool]):
    """See `Place.renew_recap`."""

    message_id: int
    digest: Digest | None


@dataclass(frozen=True, slots=True)
class OfferCatchUp(Request[bool]):
    """See `Place.offer_catch_up`."""

    person: Person
    minutes: int


@dataclass(frozen=True, slots=True)
class ShowListening(Request[bool]):
    """See `Place.show_listening`."""

    on: bool


@dataclass(frozen=True, slots=True)
class ListFiles(Request[tuple[DroppedFile, ...]]):
    """With the permissions of `asker_id`, which are worked out where the token is."""

    asker_id: int | None
    most: int


@dataclass(frozen=True, slots=True)
class FetchFile(Request[Base64Bytes]):
    """See `Chat.fetch`; `asker_id`: see `ListFiles`."""

    asker_id: int | None
    file: DroppedFile
    max_bytes: int


@dataclass(frozen=True, slots=True)
class PostInChat(Request[None]):
    """See `Chat.post`; `asker_id`: see `ListFiles`."""

    asker_id: int | None
    text: str
