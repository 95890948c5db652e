"""One person who may share a screen in a room: their page, their share, and when it must end without their doing."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from bot.screen.messages import ShareEnd
from bot.texts.text import Text, counted
from bot.time_phrases import format_duration
from compaction.model import NoteId

if TYPE_CHECKING:
    from bot.channel.port import Person
    from bot.screen.share import Share
    from compaction.model import Note

# Seconds for which a share waits for a page whose connection broke.
RECONNECT_WITHIN_S = 45.0
# Longer than a reconnect of the Discord client takes.
ABSENT_S = 6.0
# A recap quotes the last notes.
RECAP_NOTES = 6
# Messages kept for a page that is not connected.
PAGE_MESSAGES = 32


class Sharer:
    """One person who may share in this room, since they opened their link. Made by `RoomScreens.welcome`.

    `nonce`: identifies the link. `share`: None until they share. Times are monotonic seconds.
    """

    def __init__(self, person: Person, nonce: str, memory_changes: int = 0) -> None:
        self.person = person
        # `SessionMemory.external_changes` when `seen` began.
        self.memory_changes = memory_changes
        self.nonce = nonce
        self.share: Share | None = None
        self.task: asyncio.Task[None] | None = None
        self.ended: ShareEnd | None = None
        self.seen: deque[str] = deque(maxlen=RECAP_NOTES)
        self.notes = 0
        self.absent_since: float | None = None
        self.disconnected_since: float | None = None
        # Messages for the page. The oldest is dropped if too many wait.
        self.outbox: deque[dict[str, object]] = deque(maxlen=PAGE_MESSAGES)
        self.dropped = 0
        self.changed = asyncio.Event()

    def tell(self, **message: object) -> None:
        """Queue a message for the page. `message`: as in the protocol (`bot.web.socket`)."""
        self.dropped += len(self.outbox) == PAGE_MESSAGES
        self.outbox.append(message)
        self.changed.set()

    def new_note_id(self) -> NoteId:
        """Return the id of the next note of this share."""
        self.notes += 1
        return NoteId(f"{self.nonce}-{self.notes - 1}")

    def took(self, note: Note) -> bool:
        """Return whether a note is of this share."""
        return note.id.rpartition("-")[0] == self.nonce

    def due_end(self, now: float, *, present: bool, excluded: bool) -> ShareEnd | None:
        """Return why the share must end now, or None. `present`: in the channel; `excluded`: they have opted out."""
        if present:
            self.absent_since = None
        elif self.absent_since is None:
            self.absent_since = now
        if excluded:
            return ShareEnd.OPTED_OUT
        if self.absent_since is not None and now - self.absent_since >= ABSENT_S:
            return ShareEnd.LEFT
        if self.disconnected_since is not None and now - self.disconnected_since >= RECONNECT_WITHIN_S:
            return ShareEnd.LOST
        return None

    def status(self, now: float) -> tuple[Text, ...]:
        """Return plain sentences about the share; none if they have only opened the page."""
        if self.share is None:
            return ()
        shares = Text(
            "{name} has shared {surface} for {minutes}; I took {notes}.",
            name=self.person.name,
            surface=self.share.surface,
            minutes=format_duration(now - self.share.began_at),
            notes=counted(self.notes, "{count} note", "{count} notes"),
        )
        return shares, self.share.trouble
