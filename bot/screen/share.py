"""One person's shared screen, from its first picture to its last: pictures in, notes out.

What is worth reading, when, and what is noted of it is decided by the pure modules of `voice.screen`; this reads, waits
and hands on. The latest picture is kept in memory for whoever asks about it, and goes with the share.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from voice.screen.frame import FrameRefusedError, check_frame
from voice.screen.frame_diff import WHOLE, ChangeDetector, ChangeKind
from voice.screen.note_schedule import LookIntervals, PendingChange
from voice.screen.notes import NoteTaker, ReadFrame, ScreenNote, ScreenNoteReason
from voice.screen.ocr_text import areas_to_read
from voice.screen.port import NoPictureError, VisionError, VisionReading, VisionRequest, VisionSource
from voice.screen.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.clock import Clock
    from bot.screen.readers import ScreenReaders
    from voice.screen.frame import ScreenFrame
    from voice.screen.settings import ScreenSettings

log = structlog.get_logger()

# After a failed reading: whatever broke has a moment to mend.
REST_AFTER_FAILURE_S = 5.0
# Refused pictures that a page may send: a fast clock, a codec's bad moment. More of them are no accident.
_OFFENCES = 30.0
_OFFENCES_FORGIVEN_PER_S = 0.5
DROPPED = "dropped"
# Another screen begins a share anew, with a look at once and a note; who changes faster than this leafs through them.
CHANGE_SPACING_S = 5.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a reader was given to read. `screen`: of which of the share's screens it is, None: of one before."""

    pending: PendingChange
    look: VisionRequest
    frame_hash: str
    screen: int | None


class MisbehavedError(Exception):
    """A page goes on sending what is refused; its share should end."""


class Share:
    """One screen. `who` shares it, `surface` says what it is; `on_note` takes each note, `on_trouble` what keeps it
    from being read, and an empty sentence when nothing does any more. `over` says whether it may be looked at no more.

    *Ownership*: `run` is its room's task. Not thread-safe.
    """

    def __init__(
        self,
        who: str,
        surface: str,
        *,
        readers: ScreenReaders,
        settings: ScreenSettings,
        clock: Clock,
        on_note: Callable[[ScreenNote], Awaitable[None]],
        on_trouble: Callable[[str], None],
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.who = who
        self.surface = surface
        self._readers = readers
        self._clock = clock
        self._on_note = on_note
        self._on_trouble = on_trouble
        self._over = over
        self._pace = LookIntervals() if readers.by_model else None
        self.began_at = clock.monotonic()
        self._bucket = TokenBucket()
        self._offences = TokenBucket(rate=_OFFENCES_FORGIVEN_PER_S, burst=_OFFENCES)
        self._gate = ChangeDetector()
        self._taker = NoteTaker(surface=surface)
        self._frame: ScreenFrame | None = None
        # Whether its page was away since then.
        self._stale = False
        # Whether that is a picture of the screen that is shared now; how many there were before; their last notes.
        self._shown = False
        self._screens = 0
        self._begun_at = self.began_at
        self._left: list[ScreenNote] = []
        self._pending = PendingChange()
        self._reading: _Reading | None = None
        self._changed = asyncio.Event()
        self._looked_at = float("-inf")
        self._failing = False
        self._trouble = ""
        self.counts: Counter[str] = Counter()

    @property
    def trouble(self) -> str:
        """Return what keeps the screen from being read at present, a plain sentence; empty when nothing does."""
        return self._trouble

    def change(self, surface: str) -> bool:
        """Another screen is shared from the next picture on. What waits for a note of the one before is noted.

        Returns whether that begins anew; after so short a time it is one more change of what is shared.
        """
        self.surface = surface
        now = self._clock.monotonic()
        if now - self._begun_at < CHANGE_SPACING_S:
            return False
        self._begun_at = now
        if (note := self._taker.tick(self._clock.now(), last=True)) is not None:
            self._left.append(note)
        self._taker = NoteTaker(surface=surface)
        self._gate, self._pending = ChangeDetector(), PendingChange()
        self._shown = False
        self._screens += 1
        self._changed.set()
        return True

    def resume(self) -> None:
        """The page is back after its connection broke: the picture is one of before, and the next is of now."""
        self._stale = True

    # -- pictures ---------------------------------------------------------------------------------------------

    async def offer(self, data: bytes) -> str:
        """Take a picture; return what became of it: `taken`, `dropped` (too many), or why it was refused.

        Raises `MisbehavedError` when too many in a row are none.
        """
        fate = await self._fate_of(data)
        self.counts[fate] += 1
        if fate != "taken" and not self._offences.take(self._clock.monotonic()):
            raise MisbehavedError
        return fate

    async def _fate_of(self, data: bytes) -> str:
        if not self._bucket.take(self._clock.monotonic()):
            return DROPPED
        try:
            # Some milliseconds in which somebody else's sound may come in.
            frame = await asyncio.to_thread(check_frame, data)
        except FrameRefusedError as error:
            return error.reason.value
        self._frame, self._shown, self._stale = frame, True, False
        verdict = self._gate.look(frame.luma)
        if verdict.change is not ChangeKind.SAME:
            self.counts["changed"] += 1
            self._pending = self._pending.with_verdict(verdict)
            self._changed.set()
        return "taken"

    # -- the life of a share ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read what changes and take notes, for ever."""
        while True:
            await self._until_due()
            if self._due_now():
                await self._read()
            await self._tick()

    def _due_now(self) -> bool:
        due_at = self._pending.due_at(self._looked_at, self._pace)
        return due_at is not None and due_at <= self._clock.monotonic()

    async def _until_due(self) -> None:
        """Wait until a look or a note is due, or another change comes in that may bring it forward."""
        now = self._clock.monotonic()
        hours = []
        look_at = self._pending.due_at(self._looked_at, self._pace)
        if look_at is not None:
            hours.append(look_at - now)
        if self._taker.due_at is not None:
            hours.append(self._taker.due_at - self._clock.now())
        if hours and min(hours) <= 0:
            return
        self._changed.clear()
        changed: asyncio.Task[object] = asyncio.create_task(self._changed.wait(), name="screen-changed")
        waiting: set[asyncio.Task[object]] = {changed}
        if hours:
            waiting.add(asyncio.create_task(self._clock.sleep(min(hours)), name="screen-due"))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _read(self) -> None:
        """Read what has changed, as it is when the reader's turn comes, and take the note it is worth."""
        urgent = self._pending.change is ChangeKind.FIRST
        self._reading = None
        try:
            reading = await self._readers.read(self._take, urgent=urgent)
        except NoPictureError:
            # It is ended in a moment.
            self._pending = self._unread()
            await self._clock.sleep(REST_AFTER_FAILURE_S)
            return
        except VisionError as error:
            await self._failed(error)
            return
        finally:
            self._looked_at = self._clock.monotonic()
        self._failing = False
        self._tell_trouble(self._readers.shortcoming)
        self.counts["read"] += 1
        taken = self._taken()
        if taken.screen != self._screens:
            # Of a screen that is not shared any more.
            return
        why = taken.pending.why(self._pace)
        await self._noted(ReadFrame(reading, why, taken.look.boxes, taken.frame_hash, self._clock.now()))

    def _taken(self) -> _Reading:
        assert self._reading is not None, "who has read has asked what"
        return self._reading

    def _take(self) -> VisionRequest:
        """Return the latest picture and what is to be read of it."""
        self._refuse_when_over()
        assert self._frame is not None, "a change comes with a picture"
        # A reader that failed is followed by another: what it took has still to be read.
        pending, self._pending = self._unread(), PendingChange()
        whole = self._pace is not None or pending.change in {ChangeKind.FIRST, ChangeKind.CUT}
        boxes = (WHOLE,) if whole else areas_to_read(pending.boxes, self._taker.lines)
        look = VisionRequest(self._frame.jpeg, boxes=boxes, who=self.who, before=self._taker.last)
        self._reading = _Reading(pending, look, self._frame.hash, self._screens if self._shown else None)
        return look

    def _unread(self) -> PendingChange:
        """Return what has changed and was given to no reader, or to one that did not read it."""
        if self._reading is None or self._reading.screen != self._screens:
            return self._pending
        return self._reading.pending.together(self._pending)

    async def _failed(self, error: VisionError) -> None:
        """Tell a trouble once, keep what was to be read, and wait a moment. That somebody shares is noted anyway."""
        self.counts["unread"] += 1
        if not self._failing:
            self._failing = True
            log.warning("screen_not_read", problem=str(error))
        self._tell_trouble(str(error))
        pending = self._unread()
        if pending.change is ChangeKind.FIRST:
            nothing = ReadFrame(
                VisionReading(VisionSource.OCR), ScreenNoteReason.SHARE_START, (WHOLE,), "", self._clock.now()
            )
            await self._noted(nothing)
            pending = PendingChange(ChangeKind.CUT, (WHOLE,))
        self._pending = pending
        await self._clock.sleep(REST_AFTER_FAILURE_S)

    def _tell_trouble(self, sentence: str) -> None:
        if sentence != self._trouble:
            self._trouble = sentence
            self._on_trouble(sentence)

    async def finish(self) -> None:
        """Take the note of what still waits for one."""
        await self._tell_left()
        note = self._taker.tick(self._clock.now(), last=True)
        if note is not None:
            await self._tell(note)

    async def _tell_left(self) -> None:
        """Tell the last notes of screens that are not shared any more."""
        while self._left:
            await self._tell(self._left.pop(0))

    async def _tick(self) -> None:
        await self._tell_left()
        name = self._frame.hash if self._frame is not None else ""
        note = self._taker.tick(self._clock.now(), frame_hash=name)
        if note is not None:
            await self._tell(note)

    async def _noted(self, seen: ReadFrame) -> None:
        note = self._taker.handle(seen)
        if note is not None:
            await self._tell(note)

    async def _tell(self, note: ScreenNote) -> None:
        self.counts["noted"] += 1
        await self._on_note(note)

    # -- who asks ---------------------------------------------------------------------------------------------

    async def look(self, question: str) -> str:
        """Return what is on the screen now about `question`: a model's answer, or the screen's text.

        Raises `VisionError`.
        """
        name, screen = self._of_now().hash, self._screens

        def latest() -> VisionRequest:
            return VisionRequest(self._of_now().jpeg, who=self.who, question=question)

        reading = await self._readers.read(latest, urgent=True)
        self._refuse_when_over()
        self.counts["asked"] += 1
        if screen == self._screens:
            await self._noted(ReadFrame(reading, ScreenNoteReason.ASKED, (WHOLE,), name, self._clock.now()))
        if reading.source is VisionSource.MODEL:
            return reading.description
        if not reading.lines:
            return "There is no text on it that I can read."
        return "\n".join(line.text for line in reading.lines)

    def _of_now(self) -> ScreenFrame:
        """Return the latest picture of what is shared now. Raises `NoPictureError`."""
        self._refuse_when_over()
        if self._frame is None or not self._shown or self._stale:
            raise NoPictureError("No picture of the screen has come yet. Ask again in a moment.")
        return self._frame

    def _refuse_when_over(self) -> None:
        if self._over():
            raise NoPictureError("The share is over.")
