"""Notes of what was seen on shared screens: a short list of live notes, and pending notes that wait to be folded.

A note is first live, then pending, then folded. It becomes folded only when the run that folds it is stored. A note
that arrives while a run is in flight waits for the next run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from compaction.language.text import words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compaction.model import Note, NoteId

# Spec 1 gives the screen-watch buffer 8 to 12 entries.
LIVE_NOTES = 12
# The limit of spec 1, CONTEXT_COMPACTION_MAX_NOTE_CHARS.
MAX_NOTE_CHARS = 400
# The text around each note in a prompt: '; 21:04 's screen (the picture changed): '.
_NOTE_FRAME_CHARS = 42
# A note must have at least this share of words that newer notes don't have. Otherwise the same screen was read again.
_NOTE_ADDS = 0.2
# So many of the newest notes are read for a prompt, which shows one or two of them. While nothing is folded, thousands
# may wait.
_MOST_READ = 200


@dataclass(frozen=True, slots=True)
class NoteBuffer:
    """The live and pending notes of one session, each list oldest first."""

    live: tuple[Note, ...] = ()
    pending: tuple[Note, ...] = ()

    def with_note(self, note: Note, *, limit: int = LIVE_NOTES) -> NoteBuffer:
        """Return the buffer with one more live note. If there are more than `limit`, the oldest become pending.

        Returns the same buffer if it already contains a note with this id.
        """
        if any(each.id == note.id for each in (*self.live, *self.pending)):
            return self
        live = (*self.live, note)
        cut = max(0, len(live) - limit)
        return NoteBuffer(live=live[cut:], pending=(*self.pending, *live[:cut]))

    def with_all_pending(self) -> NoteBuffer:
        """Return the buffer with all live notes made pending. Used when a screen share has ended."""
        return NoteBuffer(pending=(*self.pending, *self.live))

    def without_folded(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without the pending notes that a stored run has folded."""
        return replace(self, pending=tuple(note for note in self.pending if note.id not in note_ids))

    def without(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without these notes, which were forgotten on request. They may be live or pending."""
        return NoteBuffer(
            live=tuple(note for note in self.live if note.id not in note_ids),
            pending=tuple(note for note in self.pending if note.id not in note_ids),
        )

    def newly_pending(self, before: NoteBuffer) -> tuple[NoteId, ...]:
        """Return the ids of the notes that are pending here and were live in `before`."""
        were_live = {note.id for note in before.live}
        return tuple(note.id for note in self.pending if note.id in were_live)


def condense_notes(notes: Sequence[Note], *, max_chars: int = MAX_NOTE_CHARS) -> tuple[Note, ...]:
    """Return the notes that a prompt shows, oldest first. They are the newest notes that say something new and fit.

    Notes that are left out are also marked as folded and stay stored.
    """
    chosen: list[Note] = []
    covered: set[str] = set()
    room = max_chars
    for note in islice(reversed(notes), _MOST_READ):
        cost = len(note.what) + len(note.who) + _NOTE_FRAME_CHARS
        if cost > room:
            continue
        about = set(words(f"{note.who} {note.what}"))
        if about and len(about - covered) / len(about) < _NOTE_ADDS:
            continue
        chosen.append(note)
        covered |= about
        room -= cost
    return tuple(reversed(chosen))
