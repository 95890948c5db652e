"""One person's shared screen: has its pictures read when they change, and yields notes.

Of a page's pictures only so many a second are taken, and only those that can be decoded. The pure modules of
`voice.screen` decide what is worth reading and noting. The latest picture is kept in memory for questions about the
screen, until the share ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from bot.texts.text import Text, sentence_of, verbatim
from voice.screen.frame import FrameRefusedError
from voice.screen.frame_diff import WHOLE, ChangeDetector, ChangeKind
from voice.screen.notes import (
    TEXT_SPACING_S,
    LookIntervals,
    NoteTaker,
    PendingChange,
    ReadFrame,
    ScreenNote,
    ScreenNoteReason,
)
from voice.screen.ocr_text import areas_to_read
from voice.screen.port import NoPictureError, VisionError, VisionReading, VisionRequest, VisionSource
from voice.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.clock import Clock
    from bot.screen.readers import ScreenReaders
    from voice.screen.frame import ScreenFrame

log = structlog.get_logger()

# The page sends two pictures each second. A rate of three allows for a fast clock, and a burst of six for a network
# that stalled.
_PICTURES_PER_S = 3.0
_BURST = 6.0
# Refused pictures that a page may send by accident, for example because of a fast clock.
_OFFENCES = 30.0
_OFFENCES_FORGIVEN_PER_S = 0.5
TAKEN = "taken"
DROPPED = "dropped"
# No process could be started to decode the picture, which is not the page's fault.
UNDECODED = "undecoded"
# Pause after a failed reading.
FAILURE_PAUSE_S = 5.0
NO_PICTURE = Text("No picture of the screen has come yet. Ask again in a moment.")
# A change of screen starts over with an immediate look and a note, but not more often than this.
CHANGE_SPACING_S = 5.0


class MisbehavedError(Exception):
    """A page keeps sending pictures that are refused; its share should end."""


@dataclass(slots=True, eq=False)
class _Screen:
    """One of the person's screens while it is shared: what is noted of it, and what of its pictures is not read yet.

    `started_at`: monotonic seconds.
    """

    notes: NoteTaker
    started_at: float
    changes: ChangeDetector = field(default_factory=ChangeDetector)
    pending: PendingChange = field(default_factory=PendingChange)


@dataclass(frozen=True, slots=True)
class _Picture:
    """The latest picture, and which screen it shows. `stale`: the page has reconnected since."""

    frame: ScreenFrame
    screen: _Screen
    stale: bool = False


@dataclass(frozen=True, slots=True)
class _Reading:
    """A request that a reader took. `screen`: the one in the picture, which may be an earlier screen."""

    pending: PendingChange
    look: VisionRequest
    frame_hash: str
    screen: _Screen


class Share:
    """What one person shares. `who`: name of the person. `surface`: what is shared now, as a phrase.

    `on_note`: gets each note. `on_trouble`: gets a sentence when the screen can't be read, an empty one when it can
    again. `over`: returns whether the share has ended. *Ownership*: `run` is a task of the room. Not thread-safe.
    """

    def __init__(
        self,
        who: str,
        surface: str,
        *,
        readers: ScreenReaders,
        clock: Clock,
        on_note: Callable[[ScreenNote], Awaitable[None]],
        on_trouble: Callable[[Text], None],
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.who = who
        self.surface = surface
        self._readers = readers
        self._clock = clock
        self._on_note = on_note
        self._on_trouble = on_trouble
        self._over = over
        # How often a model looks; None: the screen's text is read, at every change.
        self._intervals = LookIntervals() if readers.by_model else None
        self.began_at = clock.monotonic()
        self._rate = TokenBucket(rate=_PICTURES_PER_S, burst=_BURST)
        self._offences = TokenBucket(rate=_OFFENCES_FORGIVEN_PER_S, burst=_OFFENCES)
        # Whether no process could be started for the latest picture.
        self._undecoded = False
        self._screen = _Screen(NoteTaker(surface=surface), self.began_at)
        self._picture: _Picture | None = None
        # The last notes of earlier screens and scenes, which nobody has got yet.
        self._unsent: list[ScreenNote] = []
        # How often the person has had themselves forgotten.
        self._forgettings = 0
        self._reading: _Reading | None = None
        self._changed = asyncio.Event()
        self._looked_at = float("-inf")
        self._failing = False
        # Why the screen can't be read now, a plain sentence; empty if it can.
        self.trouble = verbatim("")
        self.counts: Counter[str] = Counter()

    def change(self, surface: str) -> bool:
        """Switch to another screen from the next picture on. The last note of the previous screen is kept.

        Returns False if the last switch was so recent that this counts as a change within the same screen.
        """
        self.surface = surface
        now = self._clock.monotonic()
        if now - self._screen.started_at < CHANGE_SPACING_S:
            return False
        self._take_last_note()
        self._begin_screen(now)
        return True

    def _take_last_note(self) -> None:
        """Have the text that waits noted without a pause, because what showed it is over."""
        if (note := self._screen.notes.tick(self._clock.now(), last=True)) is not None:
            self._unsent.append(note)

    def forget(self) -> None:
        """Drop all pictures and all text that is not noted yet, also what is being read, because the person has
        themselves forgotten. The next picture begins anew.
        """
        self._picture = None
        self._unsent.clear()
        self._forgettings += 1
        self._begin_screen(self._screen.started_at)

    def _begin_screen(self, started_at: float) -> None:
        self._screen = _Screen(NoteTaker(surface=self.surface), started_at)
        self._changed.set()

    def resume(self) -> None:
        """Mark the latest picture as stale, because the page has reconnected."""
        if self._picture is not None:
            self._picture = replace(self._picture, stale=True)

    # -- pictures ---------------------------------------------------------------------------------------------

    async def offer(self, data: bytes) -> str:
        """Take a picture. Returns `taken`, `dropped` (too many), `undecoded`, or the reason for refusing it.

        Raises `MisbehavedError` if too many pictures were dropped or refused.
        """
        outcome = await self._take(data)
        self.counts[outcome] += 1
        if outcome not in {TAKEN, UNDECODED} and not self._offences.take(self._clock.monotonic()):
            raise MisbehavedError
        return outcome

    async def _take(self, data: bytes) -> str:
        """Decode a picture, show it, and return what became of it."""
        if not self._rate.take(self._clock.monotonic()):
            return DROPPED
        forgettings = self._forgettings
        try:
            frame = await self._readers.check(data)
        except FrameRefusedError as error:
            return error.reason.value
        except VisionError as error:
            self._undecoded = True
            self._report_trouble(sentence_of(error))
            return UNDECODED
        if self._undecoded:
            self._undecoded = False
            self._report_trouble(self._readers.limitation)
        if forgettings != self._forgettings:
            return DROPPED
        self._show(frame)
        return TAKEN

    def _show(self, frame: ScreenFrame) -> None:
        """Keep a picture of the current screen, and note what has changed in it."""
        self._picture = _Picture(frame, self._screen)
        verdict = self._screen.changes.look(frame.luma)
        if verdict.change is not ChangeKind.SAME:
            self.counts["changed"] += 1
            self._screen.pending = self._screen.pending.with_verdict(verdict)
            self._changed.set()

    # -- reading -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read changes and take notes, for ever."""
        while True:
            await self._until_due()
            if self._due_now():
                await self._read()
            await self._tick()

    def _due_now(self) -> bool:
        due_at = self._screen.pending.due_at(self._looked_at, self._intervals)
        return due_at is not None and due_at <= self._clock.monotonic()

    async def _until_due(self) -> None:
        """Wait until a look or a note is due, or a change comes in that may bring it forward."""
        now = self._clock.monotonic()
        waits = []
        look_at = self._screen.pending.due_at(self._looked_at, self._intervals)
        if look_at is not None:
            waits.append(look_at - now)
        if self._screen.notes.due_at is not None:
            # Not longer if the clock was set back.
            waits.append(min(TEXT_SPACING_S, self._screen.notes.due_at - self._clock.now()))
        if waits and min(waits) <= 0:
            return
        self._changed.clear()
        changed: asyncio.Task[object] = asyncio.create_task(self._changed.wait(), name="screen-changed")
        waiting: set[asyncio.Task[object]] = {changed}
        if waits:
            waiting.add(asyncio.create_task(self._clock.sleep(min(waits)), name="screen-due"))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _read(self) -> None:
        """Have the changes read, from the latest picture when the reader is free, and note them if worth it."""
        urgent = self._screen.pending.change is ChangeKind.FIRST
        self._reading = None
        try:
            reading = await self._readers.read(self._take_request, urgent=urgent)
        except NoPictureError:
            # The share is about to end, or the picture was forgotten.
            self._screen.pending = self._unread()
            await self._clock.sleep(FAILURE_PAUSE_S)
            return
        except VisionError as error:
            await self._failed(error)
            return
        finally:
            self._looked_at = self._clock.monotonic()
        self._failing = False
        self._report_trouble(self._readers.limitation)
        self.counts["read"] += 1
        taken = self._last_taken()
        why = taken.pending.why(self._intervals)
        if why is ScreenNoteReason.CUT and taken.screen is self._screen:
            # The text that waits was in the scene before.
            self._take_last_note()
            await self._emit_unsent()
        if taken.screen is not self._screen:
            # The picture shows a screen that is no longer shared.
            return
        await self._take_note(ReadFrame(reading, why, taken.look.boxes, taken.frame_hash, self._clock.now()))

    def _last_taken(self) -> _Reading:
        assert self._reading is not None, "who has read has asked what"
        return self._reading

    def _take_request(self) -> VisionRequest:
        """Return the latest picture and the areas to read. Raises `NoPictureError`."""
        self._refuse_when_over()
        if (picture := self._picture) is None:
            # A change comes with a picture, which the person has had forgotten meanwhile.
            raise NoPictureError(NO_PICTURE)
        # If a reader failed, its fallback calls this again: the areas that the first reader took are still unread.
        pending, self._screen.pending = self._unread(), PendingChange()
        whole = self._intervals is not None or pending.change in {ChangeKind.FIRST, ChangeKind.CUT}
        boxes = (WHOLE,) if whole else areas_to_read(pending.boxes, self._screen.notes.lines)
        look = VisionRequest(picture.frame.jpeg, boxes=boxes, who=self.who, before=self._screen.notes.last)
        self._reading = _Reading(pending, look, picture.frame.hash, picture.screen)
        return look

    def _unread(self) -> PendingChange:
        if self._reading is None or self._reading.screen is not self._screen:
            return self._screen.pending
        return self._reading.pending.together(self._screen.pending)

    async def _failed(self, error: VisionError) -> None:
        """Report the trouble once, keep the changes unread, and pause. The start of a share is noted nevertheless."""
        self.counts["unread"] += 1
        if not self._failing:
            self._failing = True
            log.warning("screen_not_read", problem=error)
        self._report_trouble(sentence_of(error))
        pending = self._unread()
        if pending.change is ChangeKind.FIRST:
            nothing = ReadFrame(
                VisionReading(VisionSource.OCR), ScreenNoteReason.SHARE_START, (WHOLE,), "", self._clock.now()
            )
            await self._take_note(nothing)
            pending = PendingChange(ChangeKind.CUT, (WHOLE,))
        self._screen.pending = pending
        await self._clock.sleep(FAILURE_PAUSE_S)

    def _report_trouble(self, sentence: Text) -> None:
        if sentence != self.trouble:
            self.trouble = sentence
            self._on_trouble(sentence)

    async def finish(self) -> None:
        """Emit the notes that are left, of this screen and of earlier ones. Call it when `run` has ended."""
        self._take_last_note()
        await self._emit_unsent()

    async def _emit_unsent(self) -> None:
        """Emit the last notes of earlier screens and scenes."""
        while self._unsent:
            await self._emit(self._unsent.pop(0))

    async def _tick(self) -> None:
        await self._emit_unsent()
        name = self._picture.frame.hash if self._picture is not None else ""
        await self._emit(self._screen.notes.tick(self._clock.now(), frame_hash=name))

    async def _take_note(self, seen: ReadFrame) -> None:
        await self._emit(self._screen.notes.handle(seen))

    async def _emit(self, note: ScreenNote | None) -> None:
        if note is not None:
            self.counts["noted"] += 1
            await self._on_note(note)

    # -- questions ---------------------------------------------------------------------------------------------

    async def look(self, question: str, *, asker: str = "") -> str:
        """Return a vision model's answer to `question`, or the screen's text. `asker`: who asks, if it is known.

        Raises `VisionError`.
        """
        name, screen, forgettings = self._current_frame().hash, self._screen, self._forgettings

        def latest() -> VisionRequest:
            return VisionRequest(self._current_frame().jpeg, who=self.who, question=question)

        reading = await self._readers.read(latest, urgent=True)
        self._refuse_when_over()
        if forgettings != self._forgettings:
            raise NoPictureError(NO_PICTURE)
        self.counts["asked"] += 1
        if screen is self._screen:
            await self._take_note(ReadFrame(reading, ScreenNoteReason.ASKED, (WHOLE,), name, self._clock.now(), asker))
        if reading.source is VisionSource.MODEL:
            return reading.description
        if not reading.lines:
            return Text("There is no text on it that I can read.")
        return "\n".join(line.text for line in reading.lines)

    @property
    def has_picture(self) -> bool:
        """Return whether there is a picture of the current screen, from the page's current connection."""
        picture = self._picture
        return picture is not None and picture.screen is self._screen and not picture.stale

    def _current_frame(self) -> ScreenFrame:
        """Return the latest picture of the current screen. Raises `NoPictureError`."""
        self._refuse_when_over()
        if self._picture is None or not self.has_picture:
            raise NoPictureError(NO_PICTURE)
        return self._picture.frame

    def _refuse_when_over(self) -> None:
        if self._over():
            raise NoPictureError(Text("The share is over."))
