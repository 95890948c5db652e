"""Notes of what was seen on shared screens: a short live list, and pending notes that wait to be folded.

A note is live, then pending, then folded. Only the landing of the run that carried it makes it folded; a note that
arrives while a run is in flight waits for the next one.
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
# So many pending notes start a run of their own if no batch of turns is due, on an evening of silent watching.
PENDING_NOTES_RUN = 48
# Spec 1: CONTEXT_COMPACTION_MAX_NOTE_CHARS.
MAX_NOTE_CHARS = 400
# '; 21:04 's screen: ' around each note.
_NOTE_FRAME_CHARS = 20
# A note must have this share of new words compared with newer notes; otherwise it is the same screen, read again.
_NOTE_ADDS = 0.3


@dataclass(frozen=True, slots=True)
class NoteBuffer:
    """Live and pending notes of one session, each oldest first."""

    live: tuple[Note, ...] = ()
    pending: tuple[Note, ...] = ()

    def with_note(self, note: Note, *, limit: int = LIVE_NOTES) -> NoteBuffer:
        """Return the buffer with one more live note; the oldest beyond `limit` become pending.

        Returns the same buffer if a note with this id is in it.
        """
        if any(each.id == note.id for each in (*self.live, *self.pending)):
            return self
        live = (*self.live, note)
        cut = max(0, len(live) - limit)
        return NoteBuffer(live=live[cut:], pending=(*self.pending, *live[:cut]))

    def with_all_pending(self) -> NoteBuffer:
        """Return the buffer with every live note pending, as after a screen share has ended."""
        return NoteBuffer(pending=(*self.pending, *self.live))

    def without_folded(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without the pending notes that a landed run folded."""
        return replace(self, pending=tuple(note for note in self.pending if note.id not in note_ids))

    def without(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without these notes, live or pending: they were forgotten on request."""
        return NoteBuffer(
            live=tuple(note for note in self.live if note.id not in note_ids),
            pending=tuple(note for note in self.pending if note.id not in note_ids),
        )

    def newly_pending(self, before: NoteBuffer) -> tuple[NoteId, ...]:
        """Return the ids of the notes that are pending here and were live in `before`."""
        were_live = {note.id for note in before.live}
        return tuple(note.id for note in self.pending if note.id in were_live)


def condense_notes(notes: Sequence[Note], *, max_chars: int = MAX_NOTE_CHARS) -> tuple[Note, ...]:
    """Return the notes that a prompt shows, oldest first: the newest that say something new, within `max_chars`.

    The notes left out count as folded too and stay stored.
    """
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
