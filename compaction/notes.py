"""Notes of what was seen on shared screens: a short live list, and those that wait to be folded.

A note is live, then pending, then folded. It leaves pending only when the run that carried it has landed, by
its id, so a note that arrives while a run is in flight waits for the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.wording import concepts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compaction.model import Note, NoteId

# Spec 1: the screen-watch buffer has 8 to 12 entries.
LIVE_NOTES = 12
# So many pending notes are worth a run of their own when no batch of turns is due: a quiet evening of watching.
PENDING_NOTES_RUN = 48
# Spec 1: CONTEXT_COMPACTION_MAX_NOTE_CHARS.
MAX_NOTE_CHARS = 400
# '; 21:04 's screen: ' around each note.
_NOTE_FRAME_CHARS = 20
# A note whose words are so largely known from newer ones adds nothing: the same screen, read again.
_NOTE_ADDS = 0.3


@dataclass(frozen=True, slots=True)
class NoteBuffer:
    """Live and pending notes of one session, each oldest first."""

    live: tuple[Note, ...] = ()
    pending: tuple[Note, ...] = ()

    def with_note(self, note: Note, *, limit: int = LIVE_NOTES) -> NoteBuffer:
        """Return the buffer with one more live note; the oldest beyond `limit` become pending. A note whose id
        is here already changes nothing."""
        if any(each.id == note.id for each in (*self.live, *self.pending)):
            return self
        live = (*self.live, note)
        cut = max(0, len(live) - limit)
        return NoteBuffer(live=live[cut:], pending=(*self.pending, *live[:cut]))

    def with_all_pending(self) -> NoteBuffer:
        """Return the buffer after its share ended: every live note is pending."""
        return NoteBuffer(pending=(*self.pending, *self.live))

    def without_folded(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without the pending notes that a landed run carried."""
        return replace(self, pending=tuple(note for note in self.pending if note.id not in note_ids))

    def without(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without these notes, wherever they are: somebody wanted them forgotten."""
        return NoteBuffer(
            live=tuple(note for note in self.live if note.id not in note_ids),
            pending=tuple(note for note in self.pending if note.id not in note_ids),
        )

    def newly_pending(self, before: NoteBuffer) -> tuple[NoteId, ...]:
        """Return the ids of the notes that are pending here and were live in `before`."""
        were_live = {note.id for note in before.live}
        return tuple(note.id for note in self.pending if note.id in were_live)


def condense_notes(notes: Sequence[Note], *, max_chars: int = MAX_NOTE_CHARS) -> tuple[Note, ...]:
    """Return the notes that a fold tells of: from the newest back, those that add something, while their texts
    stay within `max_chars` together; oldest first. All of them count as folded, and all stay stored whole."""
    chosen: list[Note] = []
    covered: set[str] = set()
    room = max_chars
    for note in reversed(notes):
        about = concepts(f"{note.who} {note.what}").all
        cost = len(note.what) + len(note.who) + _NOTE_FRAME_CHARS
        if cost > room or (about and len(about - covered) / len(about) < _NOTE_ADDS):
            continue
        chosen.append(note)
        covered |= about
        room -= cost
    return tuple(reversed(chosen))
