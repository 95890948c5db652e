"""One person who may share a screen in a room, and what session memory records of their shares.

A share's start and a recap of its end are turns. Notes are stored as they are taken. When the last share ends, live
notes are retired to be folded; no way of ending loses a note. No picture is stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.screen.messages import ShareEnd, format_recap, format_share_start
from compaction.errors import CompactionError, StoreError
from compaction.model import MAX_REASON_CHARS, Note, NoteId, NoteSource, NoteTrigger, Seq, TurnKind, TurnPart
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.token_bucket import TokenBucket

if TYPE_CHECKING:
    from bot.channel.port import Person
    from bot.clock import Clock
    from bot.screen.share import Share
    from bot.words import Lease, Words
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# Seconds for which a share waits for a page whose connection broke.
RECONNECT_WITHIN_S = 45.0
# Longer than a reconnect of the Discord client takes.
ABSENT_S = 6.0
# A recap quotes the last notes.
RECAP_NOTES = 6
# Messages kept for a page that is not connected.
PAGE_MESSAGES = 32
# Pictures in vain that a page may send by accident, for example because of a fast clock.
_OFFENCES = 30.0
_OFFENCES_FORGIVEN_PER_S = 0.5


class Sharer:
    """One person who may share in this room, since they opened their link. Made by `RoomScreens.welcome`.

    `nonce`: identifies the link. `share`: None until they share. Times are monotonic seconds.
    """

    def __init__(self, person: Person, nonce: str) -> None:
        self.person = person
        self.nonce = nonce
        # Of the secret with which the page connects again.
        self.resume_digest = b""
        # The open connection of the page, or the last that was open.
        self.page: object | None = None
        self.share: Share | None = None
        self.task: asyncio.Task[None] | None = None
        self.ended: ShareEnd | None = None
        self.notes = 0
        # Of what the screen shows. `RoomScreens` begins it.
        self.lease: Lease | None = None
        # The first note that was taken since the person had themselves forgotten.
        self._first_known = 0
        self.absent_since: float | None = None
        self.disconnected_since: float | None = None
        self.offences = TokenBucket(rate=_OFFENCES_FORGIVEN_PER_S, burst=_OFFENCES)
        # Messages for the page. The oldest is dropped if too many wait.
        self.for_page: deque[dict[str, object]] = deque(maxlen=PAGE_MESSAGES)
        self.dropped = 0
        self.changed = asyncio.Event()

    def send(self, **message: object) -> None:
        """Queue a message for the page. `message`: as in the protocol (`bot.web.socket`)."""
        self.dropped += len(self.for_page) == PAGE_MESSAGES
        self.for_page.append(message)
        self.changed.set()

    def end(self, ending: ShareEnd) -> None:
        """Mark the share as over: the page is told, and nobody gets a picture of it any more."""
        self.ended = ending
        if self.share is not None:
            self.share.over = True
        self.changed.set()

    def new_note_id(self) -> NoteId:
        """Return the id of the next note of this share."""
        self.notes += 1
        return NoteId(f"{self.nonce}-{self.notes - 1}")

    def took(self, note: Note) -> bool:
        """Return whether a note is of this share, and the person has not had themselves forgotten since."""
        nonce, _, number = note.id.rpartition("-")
        return nonce == self.nonce and int(number) >= self._first_known

    def forget(self) -> None:
        """Drop what the share has shown so far, because the person has themselves forgotten."""
        self._first_known = self.notes
        if self.share is not None:
            self.share.forget()

    def due_end(self, now: float, *, present: bool) -> ShareEnd | None:
        """Return why the share must end now, or None. `present`: its person is in the channel."""
        if present:
            self.absent_since = None
        elif self.absent_since is None:
            self.absent_since = now
        if self.absent_since is not None and now - self.absent_since >= ABSENT_S:
            return ShareEnd.LEFT
        if self.disconnected_since is not None and now - self.disconnected_since >= RECONNECT_WITHIN_S:
            return ShareEnd.LOST
        return None


class ShareRecorder:
    """Records the shares of one room.

    `observe`: told of the turns recorded here, and of the notes. `words`: those of the session; of who is
    excluded nothing is recorded. What cannot be stored is logged; the memory stores it with its next write.
    """

    def __init__(
        self,
        timeline: SessionTimeline,
        *,
        guild_id: int,
        clock: Clock,
        observe: events.Observer,
        words: Words,
    ) -> None:
        self._timeline = timeline
        self._clock = clock
        self._observe = observe
        self._words = words
        # Pages call from tasks whose log context lacks the session.
        self._log = log.bind(session_id=timeline.session_id, guild_id=guild_id)

    async def record_start(self, sharer: Sharer, share: Share) -> None:
        """Record that a share has begun."""
        await self._record(sharer.person, format_share_start(share.who, share.surface))

    async def record_end(self, sharer: Sharer, share: Share) -> None:
        """Record that a share has ended, with a recap of the last notes of it that are not folded yet. A look that
        somebody asked for does not belong in it.
        """
        if self._words.excludes(sharer.person.id):
            return
        lasted_s = self._clock.monotonic() - share.began_at
        notes = (*self._timeline.state.pending_notes, *self._timeline.live_notes)
        seen = [note.what for note in notes if sharer.took(note) and note.trigger is not NoteTrigger.ASKED]
        text = format_recap(share.who, share.surface, lasted_s=lasted_s, seen=seen[-RECAP_NOTES:])
        await self._record(sharer.person, text)

    async def take_note(self, sharer: Sharer, seen: ScreenNote) -> None:
        """Store a note of a share, and show it on the page."""
        note = Note(
            sharer.new_note_id(),
            seen.at,
            sharer.person.name,
            seen.what,
            self._reason(sharer, seen),
            NoteSource(seen.source.value),
            seen.frame_hash,
            person_id=str(sharer.person.id),
            trigger=NoteTrigger(seen.why.value),
        )
        sharer.send(t="note", what=seen.what)
        try:
            await self._timeline.add_note(note)
        except CompactionError as error:
            # The note is in memory and stored with the next write, unless the session has ended.
            self._log.warning("note_not_stored", problem=error)
        self._log.info(
            "screen_noted",
            note_id=note.id,
            trigger=note.trigger.value,
            source=note.source.value,
            char_count=len(note.what),
        )
        self._observe(events.ScreenNoted(note, self._clock.monotonic()))

    def _reason(self, sharer: Sharer, seen: ScreenNote) -> str:
        """Return why a note is taken, in words that a summary may use."""
        match seen.why:
            case ScreenNoteReason.ASKED:
                # The tool is called in the answer to whoever spoke last.
                asker = seen.asker or next(
                    (turn.parts[0].speaker for turn in reversed(self._timeline.turns) if turn.kind is TurnKind.SPEECH),
                    "somebody",
                )
                reason = f"{asker} asked about it"
            case ScreenNoteReason.SHARE_START:
                reason = f"{sharer.person.name} began to share"
            case ScreenNoteReason.CUT:
                reason = "something else was shown"
            case _:
                reason = seen.changed or "new text came up"
        return reason[:MAX_REASON_CHARS]

    async def retire_notes(self) -> None:
        """Leave the live notes to the next compaction: nobody shares a screen any more."""
        try:
            await self._timeline.retire_live_notes()
        except CompactionError as error:
            self._log.warning("notes_not_retired", problem=error)

    async def _record(self, person: Person, text: str) -> None:
        now = self._clock.now()
        part = TurnPart(str(person.id), person.name, text)
        seq = self._timeline.total_turns
        try:
            await self._timeline.append(TurnKind.MEMBERSHIP, (part,), started_at=now, ended_at=now)
        except StoreError as error:
            self._log.warning("screen_turn_not_stored", problem=error)
        except CompactionError as error:
            # The session has ended or belongs to another process, so there is no turn.
            self._log.warning("screen_turn_not_recorded", problem=error)
            return
        except asyncio.CancelledError:
            self._tell(seq)
            raise
        # What is not stored is in memory, and stored with the next write.
        self._tell(seq)

    def _tell(self, seq: int) -> None:
        self._observe(events.TurnRecorded(self._timeline.turn(Seq(seq)), self._clock.monotonic()))
