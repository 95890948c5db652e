"""A note is first live, then pending, then folded, and no note is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import NoteId
from compaction.notes import LIVE_NOTES, NoteBuffer, condense_notes
from tests.compaction.turn_store_contract import note

if TYPE_CHECKING:
    from compaction.model import Note


def test_oldest_live_note_becomes_pending_beyond_twelve() -> None:
    """The thirteenth live note makes the oldest one pending, and the oldest one is not lost."""
    buffer = NoteBuffer()
    for number in range(LIVE_NOTES):
        buffer = buffer.with_note(note(f"n{number}"))
    assert buffer.pending == ()
    after = buffer.with_note(note("n12"))
    assert [each.id for each in after.pending] == ["n0"]
    assert [each.id for each in after.live] == [f"n{number}" for number in range(1, 13)]
    assert after.newly_pending(buffer) == ("n0",)


def test_end_of_a_share_retires_all_live_notes() -> None:
    """When a screen share ends, all its live notes become pending and none is lost."""
    before = NoteBuffer(live=(note("b"), note("c")), pending=(note("a"),))
    after = before.with_all_pending()
    assert after.live == ()
    assert [each.id for each in after.pending] == ["a", "b", "c"]
    assert after.newly_pending(before) == ("b", "c")


HARBOUR, CAKE, AGAIN = (
    replace(note(name), what=what)
    for name, what in (
        ("a", "A map of the old harbour with seven piers."),
        ("b", "A recipe for plum cake."),
        ("c", "The map of the old harbour with its seven piers."),
    )
)
ESSAY = replace(note("d"), what="An essay about lighthouses. " * 20)


@pytest.mark.parametrize(
    ("notes", "shown"),
    [
        ((), ()),
        ((HARBOUR, CAKE), (HARBOUR, CAKE)),
        ((HARBOUR, CAKE, AGAIN), (CAKE, AGAIN)),
        # One that does not fit keeps no other out.
        ((HARBOUR, ESSAY, CAKE), (HARBOUR, CAKE)),
    ],
)
def test_a_prompt_shows_the_notes_that_say_something_new(notes: tuple[Note, ...], shown: tuple[Note, ...]) -> None:
    """Oldest first, and of a screen that was read again the newest."""
    assert condense_notes(notes) == shown


def test_old_notes_are_not_read_when_thousands_wait() -> None:
    """A prompt shows one or two notes, so only the newest two hundred are looked through for one that is new."""
    again = [replace(AGAIN, id=NoteId(f"again-{number}")) for number in range(1_000)]
    assert condense_notes([CAKE, *again[:199]]) == (CAKE, again[198])
    assert condense_notes([CAKE, *again]) == (again[-1],)


@given(st.lists(st.integers(0, 300), max_size=20), st.integers(0, 600))
def test_notes_in_a_prompt_fit(lengths: list[int], room: int) -> None:
    """The newest go first, and the limit counts their words and names."""
    notes = [
        replace(note(f"n{number}"), what=f"w{number}" * (length // 2 + 1)) for number, length in enumerate(lengths)
    ]
    shown = condense_notes(notes, max_chars=room)
    assert sum(len(each.what) + len(each.who) for each in shown) <= room
    assert [each for each in notes if each in shown] == list(shown)
    assert not notes or notes[-1] in shown or len(notes[-1].what) + len(notes[-1].who) + 50 > room


@given(st.lists(st.one_of(st.integers(0, 60), st.just("retire"), st.just("fold")), max_size=120))
def test_every_note_is_in_one_place(steps: list[int | str]) -> None:
    """After any sequence of steps each note is either live, pending or folded, and the notes are in the order in which
    they were taken.
    """
    buffer = NoteBuffer()
    taken: list[str] = []
    folded: list[str] = []
    for step in steps:
        if step == "retire":
            buffer = buffer.with_all_pending()
        elif step == "fold":
            carried = [each.id for each in buffer.pending[:5]]
            folded += carried
            buffer = buffer.without_folded(carried)
        elif f"n{step}" not in folded:
            if f"n{step}" not in taken:
                taken.append(f"n{step}")
            buffer = buffer.with_note(note(f"n{step}"))
        assert folded + [each.id for each in (*buffer.pending, *buffer.live)] == taken
        assert len(buffer.live) <= LIVE_NOTES
