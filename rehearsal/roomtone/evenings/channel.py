"""The voice channel of a simulated evening as one process sees it: sound, what is posted, and the connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from bot.background_task import background_task
from bot.channel.port import (
    NO_WORDS_YET,
    CallMessage,
    CallRequest,
    Card,
    ChatError,
    ConnectionListener,
    Person,
    Recording,
)
from bot.texts.text import Text
from compaction.memory.digest import Digest
from rehearsal.roomtone.evenings.plan import Fault
from rehearsal.roomtone.evenings.world import GRID_S, GUILD_ID, Line, World
from rehearsal.roomtone.written.channel import DOWN, ManualConnection, WrittenChannel
from voice.audio import FRAME_MS, LISTEN_RATE_HZ
from voice.errors import VoiceConnectionError
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames, TalkspurtEnded
from voice.transport.outgoing import FrameSource

if TYPE_CHECKING:
    from bot.channel.port import OnPress, PostContent


# How long a word takes.
WORD_S: Final = 0.4
# The loudness of the first word. Each has its own, by which the recogniser knows it.
LOUDNESS: Final = 8_000
# What is posted so goes when its words are forgotten. The rest stays (docs/privacy.md).
_RENEWED = frozenset({"file", "recap", "deleted", "edited"})


class EveningCall:
    """A call that waits for a press. `is_pressed`: somebody has pressed *Do it*, and that counts."""

    def __init__(self, world: World, asker: str, arguments: str, on_press: OnPress) -> None:
        self.asker, self.arguments, self.press = asker, arguments, on_press
        self.is_over = self.is_pressed = False
        self._world = world

    async def conclude(self, outcome: Text) -> None:
        if self.is_over:
            self._world.breaks(f"the call of {self.asker} has ended twice")
        self.is_over = True
        self._world.used("concluded", outcome)


class EveningChannel(WrittenChannel):
    """`bot.channel.port.RoomChannel` of one process."""

    guild_id = GUILD_ID

    def __init__(self, world: World) -> None:
        super().__init__(())
        self._world = world
        self._listener: ConnectionListener | None = None
        self._line: ManualConnection | None = None
        self.calls: list[EveningCall] = []

    def members(self) -> Sequence[Person]:
        return tuple(self._world.present)

    # -- sound ---------------------------------------------------------------------------------------------------

    def utter(self, line: Line, *, number: int) -> None:
        """Let one word of somebody be heard, if the connection takes it. `number`: of the word."""
        now, world = self._world.clock.monotonic(), self._world
        since = None if self._listener is None else self._listener.heard_since(line.person)
        if since is None or since > now or self._line is None or world.has(Fault.LINE):
            line.is_excused = True
            return
        if not world.hears(line.person):
            world.breaks(f"{line.person} is heard, who may not be")
        pcm = np.full(round(WORD_S * LISTEN_RATE_HZ), LOUDNESS + number, dtype=np.int16)
        self._line.hear([SpeechFrames(line.person, line.person, now, pcm)])

    def fall_silent(self, person: int, *, leaves: bool = False) -> None:
        """Somebody has ended what they said, or has left."""
        now = self._world.clock.monotonic()
        ending: AudioEvent = SpeakerLeft(person, now) if leaves else TalkspurtEnded(person, person, now)
        if self._line is not None:
            self._line.hear([ending])

    def drop(self) -> None:
        """Lose the connection for good."""
        if self._line is not None:
            self._line.lose()

    def set_down(self, *, down: bool) -> None:
        if self._line is not None:
            self._line.down_since = self._world.clock.monotonic() if down else None

    @asynccontextmanager
    async def connect(
        self,
        source: FrameSource,
        listener: ConnectionListener,
    ) -> AsyncIterator[ManualConnection]:
        """Open the connection, unless the line is down."""
        if self._world.has(Fault.LINE):
            raise VoiceConnectionError(DOWN)
        connection = ManualConnection(source, listener.hear)
        self._line, self._listener = connection, listener
        try:
            async with background_task(self._send(connection), name="evening-sender"):
                yield connection
        finally:
            self._line = self._listener = None

    async def _send(self, connection: ManualConnection) -> None:
        while True:
            await self._world.clock.sleep(GRID_S)
            connection.send(round(1000 * GRID_S / FRAME_MS))

    # -- what is posted ------------------------------------------------------------------------------------------

    def _post(self, where: str, text: str, *, edits: int | None = None) -> int | None:
        """Show a message; return its id. None: Discord refuses it."""
        if self._world.is_halted or self._world.has(Fault.CHAT):
            return None
        self._world.used(where, text)
        message_id = next(self._world.message_ids) if edits is None else edits
        if where in _RENEWED:
            self._world.renewed_posts[message_id] = text
        return message_id

    async def write(self, sentence: Text) -> None:
        self._post("wrote", sentence)

    async def offer_talk(self, sentence: Text) -> None:
        self._post("offered talk", sentence)

    async def write_notice(self, text: Text, *, asks: bool = False) -> bool:
        return self._post("notice", text) is not None

    def _must_post(self, where: str, text: str, *, edits: int | None = None) -> int:
        """Show a message; return its id. Raises `ChatError` if Discord refuses it."""
        posted = self._post(where, text, edits=edits)
        if posted is None:
            raise ChatError(DOWN)
        return posted

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        return self._must_post("begun", str(head))

    async def fill(self, message_id: int, content: PostContent) -> bool:
        match content:
            case Card():
                fields = (f"{name}: {value}" for name, value in content.fields)
                self._must_post("card", "\n".join((content.title, content.text or "", *fields)), edits=message_id)
            case Digest():
                self._must_post("recap", str(content), edits=message_id)
            case (_, of_file):
                self._must_post("file", of_file.decode(), edits=message_id)
            case _:
                self._must_post("edited", content, edits=message_id)
        return True

    async def delete(self, message_id: int) -> bool:
        return self._post("deleted", "", edits=message_id) is not None

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        return self._post("offered", person.name) is not None

    async def ask_for_press(self, request: CallRequest, on_press: OnPress) -> CallMessage:
        if self._post("call", f"{request.tool} {request.arguments}") is None:
            raise ChatError(DOWN)
        self.calls.append(EveningCall(self._world, request.asker, str(request.arguments), on_press))
        return self.calls[-1]

    def find_channel(self, guild_id: int, channel_id: int) -> EveningChannel | None:
        """Return the channel: it is the only one (`bot.posts.renewal.MessageEditor`)."""
        return self

    def find_posts(self, guild_id: int, channel_id: int) -> EveningChannel | None:
        return self


class TypedLine:
    """What somebody types to the bot (`bot.channel.port.TypedMessage`). `answered`: how often it was."""

    def __init__(self, world: World, person: Person, text: str) -> None:
        self.person, self.text = person, text
        self._world = world
        self._answered = False
        self.recording: Recording | None = None

    async def answer(self, text: str) -> bool:
        """Take the answer, unless Discord refuses it."""
        if self._world.has(Fault.CHAT):
            return False
        if self._answered:
            self._world.breaks(f"{self.person.name} was answered twice in writing")
        self._answered = True
        self._world.used("answered", text)
        return True
