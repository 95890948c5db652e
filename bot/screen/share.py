"""One person's shared screen: has its pictures read when they change, and yields notes.

Of a page's pictures only so many a second are taken, and only those that can be decoded. The pure modules of
`voice.screen` decide what is worth reading and noting. The latest picture is kept in memory for questions about the
screen, until the share ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.texts.text import Text, sentence_of, verbatim
from voice.screen.frame import FrameRefusedError, ScreenFrame
from voice.screen.frame_diff import WHOLE, Box, ChangeDetector, ChangeKind, FrameChange
from voice.screen.notes import (
    TEXT_SPACING_S,
    NoteTaker,
    ReadFrame,
    ScreenNote,
    ScreenNoteReason,
    look_due_at,
    reason_for,
)
from voice.screen.ocr_text import areas_to_read
from voice.screen.port import NoPictureError, VisionError, VisionReading, VisionRequest, VisionSource
from voice.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.clock import Clock
    from bot.llm.model_calls import Payer
    from bot.screen.readers import ScreenReaders

log = structlog.get_logger()

# The page sends two pictures each second. A rate of three allows for a fast clock, and a burst of six for a network
# that stalled.
_PICTURES_PER_S = 3.0
_BURST = 6.0
TAKEN = "taken"
DROPPED = "dropped"
REFUSED = "refused"
# No process could be started to decode the picture, which is not the page's fault.
UNDECODED = "undecoded"
# Pause after a failed reading.
FAILURE_PAUSE_S = 5.0
NO_PICTURE = Text("I have no picture of the screen yet. Ask again in a moment.")
# A change of screen starts over with an immediate look and a note, but not more often than this.
CHANGE_SPACING_S = 5.0


@dataclass(slots=True, eq=False)
class _Screen:
    """One of the person's screens while it is shared: its latest picture, and what of it is not noted or read yet.

    `started_at`: monotonic seconds. `picture`: None until the page, once it is connected, has sent one.
    """

    notes: NoteTaker
    started_at: float
    changes: ChangeDetector = field(default_factory=ChangeDetector)
    pending: FrameChange = field(default_factory=FrameChange)
    picture: ScreenFrame | None = None


@dataclass(slots=True)
class _Reading:
    """What a reader has taken: the changes, the parts of the picture to read, and which picture it is."""

    changes: FrameChange = field(default_factory=FrameChange)
    boxes: tuple[Box, ...] = ()
    frame_hash: str = ""


class Share:
    """What one person shares. `who`: name of the person. `surface`: what is shared now, as a phrase. `payer`: pays for
    the looks of a vision model.

    `on_note`: gets each note. `on_trouble`: gets a sentence when the screen can't be read, an empty one when it can
    again. `over`: set it when the share has ended, and nobody gets a picture of it any more. *Ownership*: `run` is a
    task of the room. Not thread-safe.
    """

    def __init__(
        self,
        who: str,
        surface: str,
        *,
        readers: ScreenReaders,
        payer: Payer,
        clock: Clock,
        on_note: Callable[[ScreenNote], Awaitable[None]],
        on_trouble: Callable[[Text], None],
    ) -> None:
        self.who = who
        self.surface = surface
        self._readers = readers
        self._payer = payer
        self._clock = clock
        self._on_note = on_note
        self._on_trouble = on_trouble
        self.over = False
        # Whether a model looks now and then; otherwise the screen's text is read, at every change.
        self._by_model = readers.by_model
        self.began_at = clock.monotonic()
        self._rate = TokenBucket(rate=_PICTURES_PER_S, burst=_BURST)
        # Whether no process could be started for the latest picture.
        self._undecoded = False
        self._screen = _Screen(NoteTaker(surface=surface), self.began_at)
        # Notes that nobody has got yet, the oldest first.
        self._unsent: list[ScreenNote] = []
        self._changed = asyncio.Event()
        self._looked_at = float("-inf")
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

    def forget(self) -> None:
        """Drop all pictures and all text that is not noted yet, also what is being read, because the person has
        themselves forgotten. The next picture begins anew.
        """
        self._unsent.clear()
        self._begin_screen(self._screen.started_at)

    def _begin_screen(self, started_at: float) -> None:
        self._screen = _Screen(NoteTaker(surface=self.surface), started_at)
        self._changed.set()

    def resume(self) -> None:
        """Drop the latest picture, because the page has reconnected: its screen may show something else by now."""
        self._screen.picture = None

    # -- pictures ---------------------------------------------------------------------------------------------

    async def offer(self, data: bytes) -> str:
        """Take a picture. Returns `taken`, `dropped` (too many), `undecoded` or `refused` (`FrameRefusedError`)."""
        outcome = await self._take(data)
        self.counts[outcome] += 1
        return outcome

    async def _take(self, data: bytes) -> str:
        """Decode a picture, show it, and return what became of it."""
        if not self._rate.take(self._clock.monotonic()):
            return DROPPED
        screen = self._screen
        try:
            frame = await self._readers.check(data)
        except FrameRefusedError:
            return REFUSED
        except VisionError as error:
            self._undecoded = True
            self._report_trouble(sentence_of(error))
            return UNDECODED
        if self._undecoded:
            self._undecoded = False
            self._report_trouble(self._readers.limitation(self._payer))
        if screen is not self._screen:
            # It shows what was shared before, or what the person has had forgotten.
            return DROPPED
        screen.picture = frame
        verdict = screen.changes.look(frame.luma)
        if verdict.change is not ChangeKind.SAME:
            self.counts["changed"] += 1
            screen.pending = screen.pending.together(verdict)
            self._changed.set()
        return TAKEN

    def _picture_of(self, screen: _Screen) -> ScreenFrame:
        """Return the latest picture of a screen. Raises `NoPictureError` if there is none, or if the screen is not
        shared any more.
        """
        if self.over:
            raise NoPictureError(Text("This screen is no longer shared."))
        if screen is not self._screen or screen.picture is None:
            raise NoPictureError(NO_PICTURE)
        return screen.picture

    # -- reading -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read changes and take notes, for ever."""
        while True:
            await self._until_due()
            if self._due_now():
                await self._read(self._screen)
            picture = self._screen.picture
            name = "" if picture is None else picture.hash
            self._add_note(self._screen.notes.tick(self._clock.now(), frame_hash=name))
            await self._send_notes()

    def _due_now(self) -> bool:
        due_at = look_due_at(self._screen.pending.change, self._looked_at, by_model=self._by_model)
        return due_at is not None and due_at <= self._clock.monotonic()

    async def _until_due(self) -> None:
        """Wait until a look or a note is due, or a change comes in that may bring it forward."""
        waits = []
        look_at = look_due_at(self._screen.pending.change, self._looked_at, by_model=self._by_model)
        if look_at is not None:
            waits.append(look_at - self._clock.monotonic())
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

    async def _read(self, screen: _Screen) -> None:
        """Have a screen's changes read, from its latest picture when the reader is free, and note them if worth it."""
        taken = _Reading()
        urgent = screen.pending.change is ChangeKind.FIRST
        try:
            request = partial(self._take_request, screen, taken)
            reading = await self._readers.read(request, payer=self._payer, urgent=urgent)
        except NoPictureError:
            screen.pending = taken.changes.together(screen.pending)
            if screen is self._screen:
                # The share is about to end, or its page has just reconnected.
                await self._clock.sleep(FAILURE_PAUSE_S)
        except VisionError as error:
            screen.pending = taken.changes.together(screen.pending)
            await self._failed(screen, error)
        else:
            self._report_trouble(self._readers.limitation(self._payer))
            self.counts["read"] += 1
            if screen is self._screen:
                self._note_reading(reading, taken)
        finally:
            self._looked_at = self._clock.monotonic()

    def _take_request(self, screen: _Screen, taken: _Reading) -> VisionRequest:
        """Return the latest picture and the areas to read. Raises `NoPictureError`."""
        picture = self._picture_of(screen)
        # If a reader failed, its fallback calls this again: the areas that the first reader took are still unread.
        taken.changes, screen.pending = taken.changes.together(screen.pending), FrameChange()
        whole = self._by_model or taken.changes.change in {ChangeKind.FIRST, ChangeKind.CUT}
        taken.boxes = (WHOLE,) if whole else areas_to_read(taken.changes.boxes, screen.notes.lines)
        taken.frame_hash = picture.hash
        return VisionRequest(picture.jpeg, boxes=taken.boxes, who=self.who, before=screen.notes.last)

    def _note_reading(self, reading: VisionReading, taken: _Reading) -> None:
        why = reason_for(taken.changes.change, by_model=self._by_model)
        if why is ScreenNoteReason.CUT:
            # The text that waits was in the scene before.
            self._take_last_note()
        seen = ReadFrame(reading, why, taken.boxes, taken.frame_hash, self._clock.now())
        self._add_note(self._screen.notes.handle(seen))

    async def _failed(self, screen: _Screen, error: VisionError) -> None:
        """Report the trouble once, and pause. The changes stay unread. The start of a share is noted nevertheless."""
        self.counts["unread"] += 1
        if self._report_trouble(sentence_of(error)):
            log.warning("screen_not_read", problem=error)
        if screen is self._screen and screen.pending.change is ChangeKind.FIRST:
            screen.pending = FrameChange(ChangeKind.CUT, (WHOLE,))
            nothing = VisionReading(VisionSource.OCR)
            self._note_reading(nothing, _Reading(FrameChange(ChangeKind.FIRST), (WHOLE,)))
            await self._send_notes()
        await self._clock.sleep(FAILURE_PAUSE_S)

    def _report_trouble(self, sentence: Text) -> bool:
        """Report why the screen can't be read; empty: it can. Return whether this is new."""
        if sentence == self.trouble:
            return False
        self.trouble = sentence
        self._on_trouble(sentence)
        return True

    # -- notes ---------------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Send the notes that are left, of this screen and of earlier ones. Call it when `run` has ended."""
        self._take_last_note()
        await self._send_notes()

    def _take_last_note(self) -> None:
        """Have the text that waits noted without a pause, because what showed it is over."""
        self._add_note(self._screen.notes.tick(self._clock.now(), last=True))

    def _add_note(self, note: ScreenNote | None) -> None:
        if note is not None:
            self._unsent.append(note)

    async def _send_notes(self) -> None:
        while self._unsent:
            self.counts["noted"] += 1
            await self._on_note(self._unsent.pop(0))

    # -- questions ---------------------------------------------------------------------------------------------

    async def look(self, question: str, *, asker: str = "") -> str:
        """Return a vision model's answer to `question`, or the screen's text. `asker`: who asks, if it is known.

        Raises `VisionError`.
        """
        screen = self._screen
        name = self._picture_of(screen).hash

        def latest() -> VisionRequest:
            return VisionRequest(self._picture_of(screen).jpeg, who=self.who, question=question)

        reading = await self._readers.read(latest, payer=self._payer, urgent=True)
        # Nothing is told of what is not shared any more, or was forgotten.
        self._picture_of(screen)
        self.counts["asked"] += 1
        seen = ReadFrame(reading, ScreenNoteReason.ASKED, (WHOLE,), name, self._clock.now(), asker)
        self._add_note(screen.notes.handle(seen))
        await self._send_notes()
        if reading.source is VisionSource.MODEL:
            return reading.description
        if not reading.lines:
            return Text("I cannot read any text on it.")
        return "\n".join(line.text for line in reading.lines)

    @property
    def has_picture(self) -> bool:
        """Return whether there is a picture of the current screen, from the page's current connection."""
        return self._screen.picture is not None
