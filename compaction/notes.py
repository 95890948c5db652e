"""Notes of what was seen on shared screens: a short live list, and those that wait to be folded.

A note is live, then pending, then folded. It leaves pending only when the run that carried it has landed, by
its id, so a note that arrives while a run is in flight waits for the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from compaction.model import Note, NoteId

# Spec 1: the screen-watch buffer has 8 to 12 entries.
LIVE_NOTES = 12
# So many pending notes are worth a run of their own when no batch of turns is due: a quiet evening of watching.
PENDING_NOTES_RUN = 48


@dataclass(frozen=True, slots=True)
class NoteBuffer:
    """Live and pending notes of one session, each oldest first."""

    live: tuple[Note, ...] = ()
    pending: tuple[Note, ...] = ()

    def added(self, note: Note, *, limit: int = LIVE_NOTES) -> NoteBuffer:
        """Return the buffer with one more live note; the oldest beyond `limit` become pending. A note whose id
        is here already changes nothing."""
        if any(each.id == note.id for each in (*self.live, *self.pending)):
            return self
        live = (*self.live, note)
        cut = max(0, len(live) - limit)
        return NoteBuffer(live=live[cut:], pending=(*self.pending, *live[:cut]))

    def retired(self) -> NoteBuffer:
        """Return the buffer after its share ended: every live note is pending."""
        return NoteBuffer(pending=(*self.pending, *self.live))

    def folded(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without the pending notes that a landed run carried."""
        return replace(self, pending=tuple(note for note in self.pending if note.id not in note_ids))

    def newly_pending(self, before: NoteBuffer) -> tuple[NoteId, ...]:
        """Return the ids of the notes that are pending here and were live in `before`."""
        were_live = {note.id for note in before.live}
        return tuple(note.id for note in self.pending if note.id in were_live)
