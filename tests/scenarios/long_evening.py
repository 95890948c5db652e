"""What four people say, do and ask on an evening of three hours, and a house to hold it in on a clock that is moved.

The room, its decider, memory, store, search and keeper are the real ones. Ears and mouth are scripted: sound is a loud
tone as long as its words take, and the recogniser knows what is being said.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Literal

from bot import events
from bot.brain.quoting import Quoting
from bot.indexer import Indexer
from bot.place import Moved, Person
from bot.recall import Recall, RoomRecall
from bot.settings import RecallSettings
from bot.store.search import SqlRecallIndex
from bot.store.vectorshelf import VectorShelf
from compaction.payload import coverage
from tests.bot.test_room import settle
from tests.bot.test_room_keeping import KeptHouse
from tests.fakes.hearing import speech
from tests.fakes.place import FakePlace
from voice.asr.port import Recognition
from voice.audio import FRAME_MS, duration_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from bot.means import Means
    from bot.place import FrameSource
    from bot.recall import Place as RecallPlace
    from bot.room import Room
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
# Nobody is taken for still talking to the bot after this.
DISENGAGED_S = 45.0

Kind = Literal["say", "ask", "join", "leave", "quiet"]


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing on the evening. `who` says `text`; a question is answered with all of `told`.

    `over`: somebody else speaks at the same time, and says `over_text`. `talked_over`: who breaks the answer off.
    """

    kind: Kind
    who: Person = ADA
    text: str = ""
    told: tuple[str, ...] = ()
    over: Person | None = None
    over_text: str = ""
    talked_over: Person | None = None
    seconds: float = 0.0


# Said once, in the first quarter of an hour, and asked for in the last.
EARLY = (
    (CHLOE, "My sister's wedding will be in Porto in the second week of June.", "wedding of Chloe's sister", "Porto"),
    (BO, "The spare key of the cabin lies under the third flower pot.", "spare key of the cabin", "third flower pot"),
    (DAN, "I am allergic to walnuts, so please no walnut cake for me.", "Dan allergic to", "walnuts"),
    (ADA, "The landlord wants the rent of the workshop on the fifteenth.", "rent of the workshop", "fifteenth"),
)
_THINGS = ("lantern", "kettle", "violin", "ladder", "blanket", "compass", "puzzle", "teapot", "bicycle", "mirror")
_PLACES = ("attic", "cellar", "garden", "harbour", "library", "kitchen", "station", "tower", "market", "bakery")
_DOINGS = ("painted", "repaired", "borrowed", "measured", "photographed", "polished", "carried", "wrapped", "hidden")


def script(seed: int = 7) -> list[Happening]:
    """Return the evening: talk, questions, comings and goings, quiet stretches, and at the end the early things."""
    random = Random(seed)
    made: list[Happening] = []
    here = list(EVERYBODY)
    said = 0

    def remark(who: Person) -> str:
        nonlocal said
        said += 1
        thing, place, doing = random.choice(_THINGS), random.choice(_PLACES), random.choice(_DOINGS)
        return f"Parcel {said} with the {thing} was {doing} near the {place} by {who.name}."

    def talk(number: int) -> None:
        for _ in range(number):
            who = random.choice(here)
            others = [other for other in here if other is not who]
            if others and random.random() < 0.12:
                over = random.choice(others)
                made.append(Happening("say", who, remark(who), over=over, over_text=remark(over)))
            else:
                made.append(Happening("say", who, remark(who)))

    def question() -> None:
        """Somebody asks about something that was said a moment ago; everybody takes their time after the answer."""
        who = random.choice(here)
        text = remark(who)
        number = said
        talked_over = random.choice([other for other in here if other is not who]) if random.random() < 0.2 else None
        made.append(Happening("say", who, text))
        asker = random.choice(here)
        words = f"Roomtone, where was parcel {number}?"
        made.append(Happening("ask", asker, words, told=(f"Parcel {number} ",), talked_over=talked_over))
        made.append(Happening("quiet", seconds=DISENGAGED_S))

    for who, text, _, _ in EARLY:
        made.append(Happening("say", who, text))
        talk(3)
    for part in range(12):
        talk(30)
        question()
        if part % 3 == 1:
            gone = random.choice(here)
            here.remove(gone)
            made.append(Happening("leave", gone))
            talk(6)
            made.append(Happening("quiet", seconds=random.uniform(400, 600)))
            here.append(gone)
            made.append(Happening("join", gone))
        else:
            made.append(Happening("quiet", seconds=random.uniform(550, 800)))
    for _, _, about, told in EARLY:
        asker = random.choice(here)
        made.append(Happening("ask", asker, f"Roomtone, what about the {about}?", told=(told,)))
        made.append(Happening("quiet", seconds=DISENGAGED_S))
    return made


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
    async def connect(self, source: FrameSource, sink: Callable[[Sequence[Heard]], None]) -> AsyncIterator[TimedLink]:  # type: ignore[override]
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

    async def live(self, seconds: float) -> int:
        """Let time pass in small steps, the bot's sound being sent in it; return how many frames that were."""
        assert self.quiet_place.link is not None
        sent = 0
        for _ in range(max(1, round(seconds / STEP_S))):
            self.clock.advance(STEP_S)
            sent += self.quiet_place.link.send(FRAMES_A_STEP)
            for _ in range(5):
                await asyncio.sleep(0)
        return sent

    async def rest(self, seconds: float) -> None:
        """Let time pass in which nothing happens."""
        for _ in range(round(seconds / QUIET_STEP_S)):
            self.clock.advance(QUIET_STEP_S)
            for _ in range(5):
                await asyncio.sleep(0)

    # -- people ----------------------------------------------------------------------------------------------

    async def perform(self, happening: Happening) -> None:
        """Let one thing happen, and wait until the room has dealt with it."""
        match happening.kind:
            case "say":
                await self._say(happening)
            case "ask":
                await self._say(happening)
                await self._listen_to_the_answer(happening)
            case "quiet":
                await self.rest(happening.seconds)
            case "join" | "leave":
                joined = happening.kind == "join"
                here = [*self.place.people, happening.who] if joined else self.place.people
                self.place.people = [person for person in here if joined or person is not happening.who]
                before = len(self.witness.turns)
                assert self.room_here is not None
                self.room_here.moved(Moved(happening.who, joined=joined))
                await settle(lambda: len(self.witness.turns) > before)

    async def _say(self, happening: Happening) -> None:
        turns = len(self.witness.turns)
        said = [(happening.who, happening.text)]
        if happening.over is not None:
            said.append((happening.over, happening.over_text))
        longest = self._speak(said)
        await self.live(longest + AFTER_SPEECH_S)
        await settle(lambda: len(self.witness.turns) > turns)

    def _speak(self, said: Sequence[tuple[Person, str]]) -> float:
        """Put sound in; return how long it lasts."""
        assert self.quiet_place.link is not None
        begun, end = self.clock.monotonic(), 0.0
        for number, (who, text) in enumerate(said):
            self.ears.saying[who.id] = text
            seconds, after = len(text.split()) / WORDS_A_SECOND, 0.8 * number
            self.quiet_place.link.hear(speech(who.id, at=begun + after, seconds=seconds))
            end = max(end, after + seconds)
        return end

    async def _listen_to_the_answer(self, happening: Happening) -> None:
        replies = len(self.witness.replies)
        if happening.talked_over is not None:
            await self._until_sound()
            await self.live(0.3)
            turns = len(self.witness.turns)
            words = f"Wait, {happening.talked_over.name} has found it already, number {replies}, thank you."
            await self.live(self._speak([(happening.talked_over, words)]) + AFTER_SPEECH_S)
            # The broken-off answer, then what broke it off.
            await settle(lambda: len(self.witness.turns) >= turns + 2)
        while len(self.witness.replies) == replies:
            await self.live(STEP_S)
            await asyncio.sleep(0.0005)

    async def _until_sound(self) -> None:
        for _ in range(10_000):
            if await self.live(STEP_S):
                return
            await asyncio.sleep(0.0005)
        raise AssertionError("the bot did not answer")
