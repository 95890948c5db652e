"""A voice channel without Discord. A test sets who is in the channel, puts in sound and reads what was written."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import Context
from typing import TYPE_CHECKING

from bot.channel.port import NO_WORDS_YET, Card, ChannelGoneError, ChatError, EditsLimitedError, Person
from bot.viewers import Viewer
from compaction.memory.digest import Digest
from rehearsal.roomtone.written.channel import ManualConnection, WrittenChannel
from tests.fakes.chat import FakeChat
from voice.errors import VoiceConnectionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.channel.port import CallRequest, ConnectionListener, OnPress, PostContent
    from bot.texts.text import Text
    from voice.transport.audio_events import AudioEvent
    from voice.transport.outgoing import FrameSource

ADA, BO, OTHER_BOT = Person(1, "Ada", False), Person(2, "Bo", False), Person(3, "Juke", True)


class FakeVoiceConnection(ManualConnection):
    """A voice connection. It hears what the test puts in and pulls frames as fast as the event loop runs."""

    privacy_code = "12345 67890"

    def __init__(self, source: FrameSource, sink: Callable[[Sequence[AudioEvent]], None]) -> None:
        # In the context of a thread: with nothing of the room's.
        super().__init__(source, lambda batch: Context().run(sink, batch))
        self.frames_sent = 0
        self.pulling = True

    def pull(self, frames: int) -> None:
        """Send `frames` frames now."""
        self.frames_sent += self.send(frames)

    async def pull_frames(self) -> None:
        """Send frames until the task is cancelled."""
        while True:
            self.pull(self.pulling)
            await asyncio.sleep(0)


class FakeThread:
    """Stores what is written into it. `posted`: the text of each message, the first of which has the id 1."""

    id = 700

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.deleted: set[int] = set()
        # How often something was written since the thread was deleted; None: it is there.
        self.gone: int | None = None

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        """Store a message without words."""
        if self.gone is not None:
            self.gone += 1
            raise ChannelGoneError("It was deleted.")
        self.posted.append("")
        return len(self.posted)

    async def fill(self, message_id: int, content: PostContent) -> bool:
        """Give a message its words, unless it was taken away."""
        assert isinstance(content, str), "a thread has lines"
        is_there = message_id not in self.deleted
        if is_there:
            self.posted[message_id - 1] = content
        return is_there

    async def delete(self, message_id: int) -> bool:
        """Take a message away."""
        self.posted[message_id - 1] = ""
        self.deleted.add(message_id)
        return True


class FakeCall:
    """A call that waits for a press. `outcome`: what the message says at its end."""

    def __init__(self, request: CallRequest, on_press: OnPress) -> None:
        self.request = request
        self.outcome: str | None = None
        self._on_press = on_press

    def press(self, person: Person, *, do_it: bool = True) -> str | None:
        """Press a button as somebody; return why it does not count."""
        return self._on_press(person, do_it)

    async def conclude(self, outcome: Text) -> None:
        """Keep what became of the call."""
        self.outcome = outcome


class FakeRoomChannel(WrittenChannel):
    """Implements `bot.channel.port.RoomChannel` for tests. If `refuse` is set, `connect` raises it."""

    guild_name = "The Lantern Society"
    chat: FakeChat

    def __init__(self, *, guild_id: int = 10, channel_id: int = 20, people: Sequence[Person] = (ADA, BO)) -> None:
        super().__init__(people)
        self.guild_id = guild_id
        self.channel_id = channel_id
        self.written: list[str] = []
        self.talk_offered = 0
        # How many messages without words there were, and those that are gone.
        self.begun = 0
        self.deleted: list[int] = []
        # The messages that Discord lets nobody edit any more.
        self.too_old: set[int] = set()
        # Each recap and file with its message, as it was put there.
        self.recaps: list[tuple[int, Digest]] = []
        self.calls: list[FakeCall] = []
        self.offers: list[tuple[str, int]] = []
        self.chat = FakeChat()
        self.asked_by: list[int | None] = []
        self.connections: list[FakeVoiceConnection] = []
        self.refuse: VoiceConnectionError | None = None
        # Whether somebody has asked for a connection.
        self.connecting = False
        # Clear it, and the voice server does not answer.
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.refused: Text | None = None
        # Whether Discord accepts notices and the mark.
        self.writable = self.markable = True
        self.notices: list[str] = []
        self.asked: list[bool] = []
        self.thread = FakeThread()
        self.takes_threads = True
        self.threads: list[int] = []
        self.files: list[tuple[int, str, str]] = []
        # The message that each card changed, and the card.
        self.cards: list[tuple[int | None, Card]] = []
        self.shown_as_listening = False
        # The other channels that everybody present may enter.
        self.shared: set[int] = set()
        self.refreshed: list[bool] = []

    async def refresh_rights(self, *, newcomers_only: bool = False) -> None:
        """Record the call."""
        self.refreshed.append(newcomers_only)

    def shared_channels(self) -> frozenset[int]:
        """Return this channel and those that the test says are shared."""
        return frozenset({self.channel_id, *self.shared})

    def viewers(self) -> Sequence[Viewer]:
        """Return the people, to whom no history is open."""
        people = (each for each in self.people if not each.is_bot)
        told = self.shared_channels()
        return [Viewer(str(each.id), self.guild_id, told, present_in=self.channel_id) for each in people]

    def chat_for(self, asker_id: int | None) -> FakeChat:
        """Return the chat, and record who asks."""
        self.asked_by.append(asker_id)
        return self.chat

    async def write(self, sentence: Text) -> None:
        """Store a sentence that the bot writes."""
        self.written.append(sentence)

    async def offer_talk(self, sentence: Text) -> None:
        """Store the sentence, and that it has the button."""
        self.written.append(sentence)
        self.talk_offered += 1

    async def write_notice(self, text: Text, *, asks: bool = False) -> bool:
        """Store a notice, unless the test forbids it."""
        if self.writable:
            self.notices.append(text)
            self.asked.append(asks)
        return self.writable

    async def open_thread(self, channel_id: int, *, begun: int | None = None) -> FakeThread:
        """Return the thread, unless the test forbids it. One that is begun is recorded."""
        if not self.takes_threads:
            raise ChatError("No thread here.")
        if begun != self.thread.id:
            self.threads.append(channel_id)
        return self.thread

    async def ask_for_press(self, request: CallRequest, on_press: OnPress) -> FakeCall:
        """Keep the call, unless the test forbids it."""
        if not self.writable:
            raise ChatError("No call here.")
        self.calls.append(FakeCall(request, on_press))
        return self.calls[-1]

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        """Count a message, unless the test forbids it. Its id counts from 1. A card is kept."""
        if not self.writable:
            raise ChatError("No message here.")
        self.begun += 1
        if isinstance(head, Card) and head.text is not None:
            self.cards.append((None, head))
        return self.begun

    async def fill(self, message_id: int, content: PostContent) -> bool:
        """Keep what a message has now, unless the test forbids it, or it was taken away."""
        if not self.writable:
            raise ChatError("No message here.")
        if message_id in self.too_old:
            raise EditsLimitedError("This message is too old.")
        match content:
            case Card():
                self.cards.append((message_id, content))
            case Digest():
                self.recaps.append((message_id, content))
            case (name, of_file):
                self.files.append((message_id, name, of_file.decode()))
            case _:
                raise AssertionError("lines are in threads")
        return message_id not in self.deleted

    async def delete(self, message_id: int) -> bool:
        """Note which message is gone, unless the test forbids it."""
        if self.writable:
            self.deleted.append(message_id)
        return self.writable

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        """Keep the offer."""
        self.offers.append((person.name, minutes))
        return True

    async def show_listening(self, *, on: bool) -> bool:
        """Store whether the mark is visible."""
        self.shown_as_listening = on and self.markable
        return self.shown_as_listening

    def refusal(self) -> Text | None:
        """Return what the test says."""
        return self.refused

    def excludes(self, user_id: int) -> bool:
        """Return whether the room lets nothing of a person be heard now."""
        return self.heard_since(user_id) is None

    @asynccontextmanager
    async def connect(
        self,
        source: FrameSource,
        listener: ConnectionListener,
    ) -> AsyncIterator[FakeVoiceConnection]:
        """Open a fake connection."""
        self.connecting = True
        self.is_owner = listener.is_owner
        self.heard_since = listener.heard_since
        if self.refuse is not None:
            raise self.refuse
        await self.reachable.wait()
        connection = FakeVoiceConnection(source, listener.hear)
        self.connections.append(connection)
        pulling = asyncio.create_task(connection.pull_frames(), name="fake-connection")
        try:
            yield connection
        finally:
            pulling.cancel()
            await asyncio.gather(pulling, return_exceptions=True)
