"""Notes of what was seen on shared screens: a short list of live notes, and pending notes that wait to be folded.

A note is first live, then pending, then folded. It becomes folded only when the run that folds it is stored. A note
that arrives while a run is in flight waits for the next run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from compaction.language.text import plain, words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compaction.model import Note, NoteId

# Spec 1 gives the screen-watch buffer 8 to 12 entries.
LIVE_NOTES = 12
# The limit of spec 1, CONTEXT_COMPACTION_MAX_NOTE_CHARS.
MAX_NOTE_CHARS = 400
# So many notes wait to be folded, twice as many as start a run of their own. Of more the oldest fall out.
MOST_PENDING = 96
# What a prompt puts around the text of a note: 'S12 21:04 ' and the end of the line.
_LINE_CHARS = 11
# A note must have at least this share of words that newer notes don't have. Otherwise the same screen was read again.
_NOTE_ADDS = 0.2


@dataclass(frozen=True, slots=True)
class NoteBuffer:
    """The live and pending notes of one session, each list oldest first."""

    live: tuple[Note, ...] = ()
    pending: tuple[Note, ...] = ()

    def with_note(self, note: Note) -> NoteBuffer:
        """Return the buffer with one more live note; the same buffer if it already contains a note with this id."""
        if any(each.id == note.id for each in (*self.live, *self.pending)):
            return self
        return replace(self, live=(*self.live, note)).with_few_live()

    def with_few_live(self) -> NoteBuffer:
        """Return the buffer with at most `LIVE_NOTES` live notes: of more, the oldest become pending."""
        cut = max(0, len(self.live) - LIVE_NOTES)
        return NoteBuffer(live=self.live[cut:], pending=(*self.pending, *self.live[:cut]))

    def with_all_pending(self) -> NoteBuffer:
        """Return the buffer with all live notes made pending. Used when a screen share has ended."""
        return NoteBuffer(pending=(*self.pending, *self.live))

    def within_bound(self) -> tuple[NoteBuffer, tuple[NoteId, ...]]:
        """Return the buffer with the newest `MOST_PENDING` pending notes, and the ids of the others."""
        fallen_out = self.pending[:-MOST_PENDING]
        return replace(self, pending=self.pending[-MOST_PENDING:]), tuple(note.id for note in fallen_out)

    def without(self, note_ids: Collection[NoteId]) -> NoteBuffer:
        """Return the buffer without these notes, which a stored run has folded or which were forgotten on request."""
        return NoteBuffer(
            live=tuple(note for note in self.live if note.id not in note_ids),
            pending=tuple(note for note in self.pending if note.id not in note_ids),
        )

    def newly_pending(self, before: NoteBuffer) -> tuple[NoteId, ...]:
        """Return the ids of the notes that are pending here and were live in `before`."""
        were_live = {note.id for note in before.live}
        return tuple(note.id for note in self.pending if note.id in were_live)


def describe_note(note: Note) -> str:
    """Return a note as folds tell it: whose screen, why it was looked at, and what was seen."""
    why = f" ({plain(note.why)})" if note.why else ""
    return f"{plain(note.who)}'s screen{why}: {plain(note.what)}"


class CondensedNotes(NamedTuple):
    """What one fold tells of some notes, both oldest first.

    `shown`: the notes that it is shown. `told`: these, and older ones that say nothing that they don't say. The notes
    that are not told wait for the next fold.
    """

    shown: tuple[Note, ...]
    told: tuple[Note, ...]


def condense_notes(notes: Sequence[Note], *, max_chars: int = MAX_NOTE_CHARS) -> CondensedNotes:
    """Choose what a fold tells of `notes`, which are ordered oldest first: the newest that say something new and fit.

    Condensing what is told again gives the same.
    """
    shown: list[Note] = []
    told: list[Note] = []
    covered: set[str] = set()
    room = max_chars
    for note in reversed(notes):
        about = set(words(f"{note.who} {note.what}"))
        if not about or len(about - covered) / len(about) >= _NOTE_ADDS:
            cost = len(describe_note(note)) + _LINE_CHARS
            if cost > room:
                continue
            room -= cost
            covered |= about
            shown.append(note)
        told.append(note)
    return CondensedNotes(tuple(reversed(shown)), tuple(reversed(told)))
