"""The voice channel of an evening without sound: who is in it, and a connection that sends as the clock is moved."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.channel.port import ChatError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from bot.channel.port import DroppedFile, Person
    from voice.transport.audio_events import AudioEvent
    from voice.transport.outgoing import FrameSource


class SilentChat:
    """`bot.channel.port.Chat` in which nobody writes anything. `posted`: what the bot did."""

    def __init__(self) -> None:
        self.posted: list[str] = []

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        """Return that there are none."""
        return ()

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        """Refuse: no file was ever dropped."""
        raise ChatError("There are no files in a written evening.")

    async def post(self, text: str) -> None:
        """Keep what is posted."""
        self.posted.append(text)


class ManualLink:
    """`bot.channel.port.Link` that sends frames as the clock is moved, and no sooner."""

    state = "connected"
    removed = False

    def __init__(self, source: FrameSource, sink: Callable[[Sequence[AudioEvent]], None]) -> None:
        self._source = source
        self.hear = sink
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def lost(self) -> str:
        """Wait for a loss that never comes."""
        return await self._lost

    @property
    def counters(self) -> Mapping[str, int]:
        """Return that there are no packets to count."""
        return {}

    def send(self, frames: int) -> int:
        """Send at most so many frames; return how many there were."""
        return sum(self._source.next_frame() is not None for _ in range(frames))


class WrittenChannel:
    """`bot.channel.port.Place` of a written evening. `link`: the connection, once the bot is there."""

    guild_id = 500
    channel_id = 600
    name = "Lounge"
    guild_name = "The Rehearsal"

    def __init__(self, people: Sequence[Person]) -> None:
        """`people`: who is there at first."""
        self._people = list(people)
        self.chat = SilentChat()
        self.link: ManualLink | None = None

    def members(self) -> Sequence[Person]:
        """Return who is here."""
        return tuple(self._people)

    def enter(self, person: Person) -> None:
        """Let somebody in."""
        self._people.append(person)

    def leave(self, person: Person) -> None:
        """Let somebody go; who is not there is not missed."""
        self._people = [each for each in self._people if each != person]

    async def write(self, sentence: str) -> None:
        """Keep what is written into the text channel."""
        self.chat.posted.append(sentence)

    @asynccontextmanager
    async def connect(
        self, source: FrameSource, sink: Callable[[Sequence[AudioEvent]], None], *, excludes: Callable[[int], bool]
    ) -> AsyncIterator[ManualLink]:
        """Open the connection. Nobody is excluded: nobody has opted out."""
        self.link = ManualLink(source, sink)
        yield self.link
