"""A house to hold the written evening of three hours in, on a clock that is moved.

The room, its decider, memory, store, search and keeper are the real ones. Ears and mouth are scripted: sound is a loud
tone as long as its words take, and the recogniser knows what is being said.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import rehearsal.scenarios
from bot import events
from bot.brain.quoting import Quoting
from bot.indexer import Indexer
from bot.place import Moved, Person
from bot.recall import Recall, RoomRecall
from bot.settings import RecallSettings
from bot.store.search import SqlRecallIndex
from bot.store.vectorshelf import VectorShelf
from compaction.payload import coverage
from rehearsal.written import Move, Quiet, Talk
from tests.bot.test_room import settle
from tests.bot.test_room_keeping import KeptHouse
from tests.fakes.hearing import speech
from tests.fakes.place import FakePlace
from voice.asr.port import Recognition
from voice.audio import FRAME_MS, duration_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from bot.means import Means
    from bot.place import FrameSource
    from bot.recall import Place as RecallPlace
    from bot.room import Room
    from rehearsal.written import Happening, Line
    from voice.audio import Pcm
    from voice.transport.heard import Heard

ADA, BO, CHLOE, DAN = (Person(number, name, False) for number, name in enumerate(("Ada", "Bo", "Chloe", "Dan"), 1))
EVERYBODY = (ADA, BO, CHLOE, DAN)
WORDS_A_SECOND = 2.8
# In small steps while somebody speaks, in large ones while nobody does.
STEP_S, QUIET_STEP_S = 0.06, 20.0
FRAMES_A_STEP = round(1000 * STEP_S / FRAME_MS)
# After what was said: the end is sure, the text stands, the answer begins.
AFTER_SPEECH_S = 1.6
EVENING = Path(rehearsal.scenarios.__file__).parent / "three-hours" / "evening.jsonl"
WHO = {person.name.casefold(): person for person in EVERYBODY}


class KnowingRecognizer:
    """`voice.asr.port.Recognizer`: what a person is saying now, however often it is asked."""

    def __init__(self) -> None:
        self.saying: dict[int, str] = {}

    async def recognize(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
    ) -> Recognition:
        """Return the words."""
        assert speaker_id is not None
        return Recognition(self.saying[speaker_id], "en", -0.2, 1.0, 0.0, duration_s(pcm), 0.01, 0.99)

    def confirm(self, speaker_id: int) -> None:
        """See `Recognizer.confirm`."""


class TimedLink:
    """A voice connection that sends frames as the clock is moved, and no sooner."""

    state = "connected"

    def __init__(self, source: FrameSource, sink: Callable[[Sequence[Heard]], None]) -> None:
        self._source = source
        self.hear = sink
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def lost(self) -> str:
        """Never be lost."""
        return await self._lost

    @property
    def counters(self) -> Mapping[str, int]:
        """Return that nothing is counted."""
        return {}

    def send(self, frames: int) -> int:
        """Send at most so many frames; return how many there were."""
        return sum(self._source.next_frame() is not None for _ in range(frames))


class QuietPlace(FakePlace):
    """A channel whose link sends in the clock's time."""

    def __init__(self) -> None:
        super().__init__(people=EVERYBODY)
        self.link: TimedLink | None = None

    @asynccontextmanager
    async def connect(  # type: ignore[override]  # a link of its own kind
        self, source: FrameSource, sink: Callable[[Sequence[Heard]], None], *, excludes: Callable[[int], bool]
    ) -> AsyncIterator[TimedLink]:
        """Open the link."""
        self.link = TimedLink(source, sink)
        yield self.link


@dataclass(slots=True)
class Witness:
    """What is kept of an evening: words and figures, no objects of the bot's, so that those can be counted."""

    turns: list[tuple[int, str, tuple[tuple[str, str], ...]]] = field(default_factory=list)
    replies: list[tuple[int, str, bool]] = field(default_factory=list)
    folds: list[tuple[int, int, int]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    missing: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    closed: str = ""

    def see(self, event: events.Event) -> None:
        """Take one event in."""
        match event:
            case events.TurnRecorded(turn=turn):
                parts = tuple((part.speaker, part.text) for part in turn.parts)
                self.turns.append((turn.seq, turn.kind.value, parts))
            case events.ReplySpoken():
                self.replies.append((event.answer_to, event.text, event.interrupted))
            case events.CompactionLanded():
                self.folds.append((event.old_cursor, event.new_cursor, len(event.summary)))
            case events.ContextBuilt():
                self.tokens.append(sum(part.tokens for part in event.parts))
                self.missing.append(coverage(event.parts, event.answer_to).missing)
            case events.UtteranceDropped():
                self.dropped.append(event.reason)
            case events.Problem():
                self.problems.append(event.sentence)
            case events.CompactionFailed():
                self.problems.append(event.reason)
            case events.RoomClosed():
                self.closed = event.reason
            case _:
                pass


class LongHouse(KeptHouse):
    """A house with a keeper, memory search and its index, and people who speak in the clock's time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._searching = AsyncExitStack()
        self.witness = Witness()
        self.ears = KnowingRecognizer()
        self.quiet_place = QuietPlace()
        self.room_here: Room | None = None
        # Frames that the bot has sent since somebody last began to speak.
        self.sent = 0

    async def __aenter__(self) -> LongHouse:
        await super().__aenter__()
        self.place = self.quiet_place
        vectors = VectorShelf(self.database, most=1_000)
        await self._searching.enter_async_context(
            Indexer.running(self.database, vectors, embedder=None, clock=self.clock)
        )
        self._recall = Recall(SqlRecallIndex(self.database, vectors), self.store)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._searching.aclose()
        await super().__aexit__(*exc)

    def means(self) -> Means:
        """Return what the rooms work with."""
        return replace(super().means(), recognizer=self.ears, observe=self.witness.see, quoting=self._quoting)

    def _quoting(self, place: RecallPlace) -> Quoting:
        # The wait is real time, which a busy machine has little of.
        settings = RecallSettings(wait_ms=2_000)
        room = RoomRecall(self._recall, place, reach="session")
        return Quoting(self._recall, room, settings, max_input_tokens=10_000, zone=self.means().zone)

    # -- time ------------------------------------------------------------------------------------------------

    async def live(self, seconds: float) -> None:
        """Let time pass in small steps, the bot's sound being sent in it; `sent` counts the frames."""
        assert self.quiet_place.link is not None
        for _ in range(max(1, round(seconds / STEP_S))):
            self.clock.advance(STEP_S)
            self.sent += self.quiet_place.link.send(FRAMES_A_STEP)
            for _ in range(5):
                await asyncio.sleep(0)

    async def rest(self, seconds: float) -> None:
        """Let time pass in which nothing happens."""
        for _ in range(round(seconds / QUIET_STEP_S)):
            self.clock.advance(QUIET_STEP_S)
            for _ in range(5):
                await asyncio.sleep(0)

    # -- people ----------------------------------------------------------------------------------------------

    async def perform(self, happening: Happening) -> None:
        """Let one thing happen, and wait until the room has dealt with it."""
        match happening:
            case Talk():
                await self._talk(happening)
            case Quiet():
                await self.rest(happening.quiet_s)
            case Move():
                await self._move(WHO[happening.who], joined=happening.move == "join")
            case _:
                assert_never(happening)

    async def _move(self, person: Person, *, joined: bool) -> None:
        assert self.room_here is not None
        here = [*self.place.people, person] if joined else self.place.people
        self.place.people = [each for each in here if joined or each is not person]
        before = len(self.witness.turns)
        self.room_here.moved(Moved(person, joined=joined))
        await settle(lambda: len(self.witness.turns) > before)

    async def _talk(self, talk: Talk) -> None:
        turns, replies = len(self.witness.turns), len(self.witness.replies)
        await self.live(self._speak(talk, talk.over) + AFTER_SPEECH_S)
        await settle(lambda: len(self.witness.turns) > turns)
        if not talk.answer:
            return
        if talk.broken_off is not None:
            await self._until(lambda: self.sent > 0)
            await self.live(0.3)
            turns = len(self.witness.turns)
            await self.live(self._speak(talk.broken_off) + AFTER_SPEECH_S)
            # The broken-off answer, then what broke it off.
            await settle(lambda: len(self.witness.turns) >= turns + 2)
        await self._until(lambda: len(self.witness.replies) > replies)

    def _speak(self, *lines: Line | None) -> float:
        """Put sound in, one line a little after the other; return how long it lasts."""
        assert self.quiet_place.link is not None
        self.sent = 0
        begun, end = self.clock.monotonic(), 0.0
        for number, line in enumerate(each for each in lines if each is not None):
            who = WHO[line.who]
            self.ears.saying[who.id] = line.say
            seconds, after = len(line.say.split()) / WORDS_A_SECOND, 0.8 * number
            self.quiet_place.link.hear(speech(who.id, at=begun + after, seconds=seconds))
            end = max(end, after + seconds)
        return end

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Let time pass, and the database's threads work, until something holds."""
        for _ in range(10_000):
            if holds():
                return
            await self.live(STEP_S)
            await asyncio.sleep(0.0005)
        raise AssertionError("what was waited for did not come")
