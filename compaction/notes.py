"""Notes of what was seen on shared screens: a short list of live notes, and pending notes that wait to be folded.

A note is first live, then pending, then folded. It becomes folded only when the run that folds it is stored. A note
that arrives while a run is in flight waits for the next run.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from compaction.language.text import cut_at_word, fair_share, plain, words

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
# Between what is told of two notes of the same person for the same reason.
NOTE_JOINT = "; "
# Less of a note would tell nothing.
_LEAST_CHARS = 24
_WORDS_BEFORE = 2
_PIECE_END = re.compile(r"(?:[,;.!?|·•–—]+(?=\s|$)|[、，；。！？।])\s*")


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


def describe_note(note: Note, what: str) -> str:
    """Return what folds tell of a note: whose screen, why it was looked at, and `what` was seen."""
    why = f" ({plain(note.why)})" if note.why else ""
    return f"{plain(note.who)}'s screen{why}: {what}"


class ToldNote(NamedTuple):
    """A note of which a fold tells. `new`: what it shows that earlier ones do not, shortened; empty if nothing."""

    note: Note
    new: str


def condense_notes(notes: Sequence[Note]) -> tuple[ToldNote, ...]:
    """Return what a fold tells of `notes`, both oldest first: of the newest, what changed, in 400 characters.

    As many are told as have room for some words each. Condensing these again gives the same; the others wait.
    """
    first = 0
    if _told(notes) is None:
        # A fold must not keep the room waiting, so not every number of notes is tried.
        first = bisect_left(range(len(notes)), True, key=lambda at: _told(notes[at:]) is not None)
    return _told(notes[first:]) or ()


def _told(notes: Sequence[Note]) -> tuple[ToldNote, ...] | None:
    """Return what is new in each of these notes, or None if they are too many to tell of."""
    # Another person or another reason makes the same words new, and so does another figure or another order.
    known: set[tuple[str, str, tuple[str, ...]]] = set()
    seen: set[str] = set()
    new: list[list[str]] = []
    for note in notes:
        pieces = {(note.who, note.why, tuple(words(each))): each for each in _PIECE_END.split(plain(note.what))}
        text = "; ".join(filter(None, (each for key, each in pieces.items() if key not in known))).split(" ")
        # Shortened, a text begins close to the first word that no note had before.
        first = next((at for at, word in enumerate(text) if not seen.issuperset(words(word))), 0)
        new.append([" ".join(text), " ".join(text[max(0, first - _WORDS_BEFORE) :])])
        known |= pieces.keys()
        seen.update(words(note.what))
    heads = {describe_note(note, "") for note in notes}
    room = MAX_NOTE_CHARS - sum(len(head) + _LINE_CHARS for head in heads) - len(notes) * len(NOTE_JOINT)
    lengths = [len(whole) for whole, _ in new]
    share = fair_share(lengths, room)
    if share < min(_LEAST_CHARS, max(lengths, default=0)):
        return None
    return tuple(
        ToldNote(note, whole if len(whole) <= share else cut_at_word(changed, share - 2))
        for note, (whole, changed) in zip(notes, new, strict=True)
    )
