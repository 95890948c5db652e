"""A room with shared screens for tests, without Discord, browser and real reader: tests pass pictures and get notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from bot import events
from bot.llm.model_calls import OPERATOR, Payer
from bot.screen.screen_room import RoomScreens
from bot.screen.screens import Screens
from bot.texts.text import Text, verbatim
from bot.words import Words
from compaction.model import Mode, Note, SessionId, Turn
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel
from tests.fakes.turn_store import InMemoryTurnStore
from tests.voice.screen.screens import jpeg, own_frame, screen
from voice.screen.frame import ScreenFrame
from voice.screen.frame_diff import Box
from voice.screen.ocr_text import OcrLine
from voice.screen.port import LatestRequest, VisionError, VisionReading, VisionRequest, VisionSource

EVENING = SessionId("evening")
PICTURES = {
    name: jpeg(screen((), scene=scene, brightness=light))
    for name, scene, light in [("dark", 1, 40), ("bright", 2, 200), ("grey", 3, 120)]
}
# The same scene as the dark one, with a line of text.
PICTURES |= {
    name: jpeg(screen(((60, top, "First kill by Ada"),), scene=1, brightness=40))
    for name, top in [("line", 200), ("other line", 500)]
}


class FakeReaders:
    """`ScreenReaders` with prepared results. `texts`: the lines on the screen; `words`: the description by a model.

    `holding`: if set, a read waits for this event before it takes its picture. `thinking`: if set, a read waits for
    this event after it has taken its picture.
    """

    def __init__(self, *, by_model: bool = False) -> None:
        self.by_model = by_model
        self.texts: list[str] = []
        self.words = ""
        self.trouble: str | None = None
        self.undecodable = ""
        self.looks: list[VisionRequest] = []
        self.urgent: list[bool] = []
        self.limited = verbatim("")
        self.unloads = 0
        self.holding: asyncio.Event | None = None
        self.waiting = asyncio.Event()
        self.thinking: asyncio.Event | None = None

    def limitation(self, payer: Payer) -> Text:
        """Return why the model is not asked now."""
        return self.limited

    async def read(self, latest: LatestRequest, *, payer: Payer, urgent: bool = False) -> VisionReading:
        """Return the prepared result, after the events."""
        if self.holding is not None:
            self.waiting.set()
            await self.holding.wait()
        self.looks.append(latest())
        self.urgent.append(urgent)
        if self.thinking is not None:
            await self.thinking.wait()
        if self.trouble is not None:
            raise VisionError(self.trouble)
        if self.by_model:
            return VisionReading(VisionSource.MODEL, description=self.words)
        return VisionReading(VisionSource.OCR, self._lines())

    async def check(self, data: bytes) -> ScreenFrame:
        """Check and decode the picture in this process, unless `undecodable` is set."""
        if self.undecodable:
            raise VisionError(self.undecodable)
        return own_frame(data)

    async def unload(self) -> None:
        """Count the call."""
        self.unloads += 1

    def _lines(self) -> tuple[OcrLine, ...]:
        return tuple(OcrLine(text, Box(0.1, 0.05 * n, 0.3, 0.05 * n + 0.04)) for n, text in enumerate(self.texts))


@dataclass
class Watching:
    """Shared screens with all their fake surroundings."""

    channel: FakeRoomChannel = field(default_factory=FakeRoomChannel)
    clock: FakeClock = field(default_factory=FakeClock)
    readers: FakeReaders = field(default_factory=FakeReaders)
    store: InMemoryTurnStore = field(default_factory=InMemoryTurnStore)
    enabled: bool = True
    most_shares: int = 4
    seen: list[events.Event] = field(default_factory=list)
    opted_out: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.words = Words(lambda user_id: user_id in self.opted_out)
        self.screens = Screens(
            cast("Any", self.readers),
            clock=self.clock,
            bot_name="Roomtone",
            reading=verbatim("Read here."),
            enabled=self.enabled,
            most_shares=self.most_shares,
        )

    @asynccontextmanager
    async def room(self) -> AsyncIterator[RoomScreens]:
        """Open a room and run its task. Leaving the context without `finish` counts as a crash."""
        async with SessionTimeline.open(
            EVENING,
            store=self.store,
            summariser=ExtractiveSummariser(),
            mode=Mode.SUMMARY,
            clock=self.clock,
        ) as timeline:
            self.timeline = timeline
            with self.screens.room_for(
                EVENING,
                self.channel,
                timeline=timeline,
                observe=self.seen.append,
                words=self.words,
                payer=OPERATOR,
            ) as room:
                running = asyncio.create_task(room.run())
                try:
                    yield room
                finally:
                    running.cancel()
                    await asyncio.wait({running})
                if not running.cancelled() and (error := running.exception()) is not None:
                    raise error

    @property
    def notes(self) -> list[Note]:
        return [event.note for event in self.seen if isinstance(event, events.ScreenNoted)]

    @property
    def turns(self) -> list[Turn]:
        return [event.turn for event in self.seen if isinstance(event, events.TurnRecorded)]

    def told(self) -> list[str]:
        """Return the texts of all notes so far."""
        return [note.what for note in self.notes]

    async def stored_notes(self) -> tuple[set[str], set[str]]:
        """Return the texts of the live and the pending notes in the store."""
        stored = await self.store.load(EVENING)
        return {note.what for note in stored.live_notes}, {note.what for note in stored.state.pending_notes}
