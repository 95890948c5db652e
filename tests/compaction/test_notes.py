"""A note is first live, then pending, then folded, and no note is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.notes import LIVE_NOTES, MOST_PENDING, NoteBuffer, condense_notes, describe_note
from tests.compaction.turn_store_contract import note

if TYPE_CHECKING:
    from compaction.model import Note


@pytest.mark.covers("1.15")
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
    ("notes", "shown", "told"),
    [
        ((), (), ()),
        ((HARBOUR, CAKE), (HARBOUR, CAKE), (HARBOUR, CAKE)),
        # The newer one says all that the older one said.
        ((HARBOUR, CAKE, AGAIN), (CAKE, AGAIN), (HARBOUR, CAKE, AGAIN)),
        # One that does not fit keeps no other out, and is not told.
        ((HARBOUR, ESSAY, CAKE), (HARBOUR, CAKE), (HARBOUR, CAKE)),
    ],
)
def test_a_fold_tells_the_notes_that_say_something_new(
    notes: tuple[Note, ...], shown: tuple[Note, ...], told: tuple[Note, ...]
) -> None:
    """Oldest first, and of a screen that was read again the newest."""
    assert condense_notes(notes) == (shown, told)


@pytest.mark.covers("1.4")
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80), st.integers(0, 5)), max_size=20), st.integers(0, 600)
)
def test_notes_in_a_prompt_fit(lengths: list[tuple[int, int, int]], room: int) -> None:
    """The newest go first, and the limit counts names and reasons too. What is told again is shown the same."""
    notes = [
        replace(note(f"n{number}"), what=f"w{word}" * (what // 2 + 1), why="y" * why)
        for number, (what, why, word) in enumerate(lengths)
    ]
    shown, told = condense_notes(notes, max_chars=room)
    lines = [f"S{at} 21:04 {describe_note(each)}\n" for at, each in enumerate(shown, start=1)]
    assert sum(map(len, lines)) <= room
    assert [each for each in notes if each in told] == list(told)
    assert set(shown) <= set(told)
    assert condense_notes(told, max_chars=room) == (shown, told)
    assert not notes or notes[-1] in shown or len(describe_note(notes[-1])) + 11 > room


def test_the_newest_notes_wait() -> None:
    """Of more than `MOST_PENDING` pending notes the oldest fall out, and who asks is told which."""
    waiting = tuple(note(f"n{number}") for number in range(MOST_PENDING + 2))
    kept, fallen_out = NoteBuffer(live=waiting[:1], pending=waiting).within_bound()
    assert (kept.live, kept.pending, fallen_out) == (waiting[:1], waiting[2:], ("n0", "n1"))
    assert kept.within_bound() == (kept, ())


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
            buffer = buffer.without(carried)
        elif f"n{step}" not in folded:
            if f"n{step}" not in taken:
                taken.append(f"n{step}")
            buffer = buffer.with_note(note(f"n{step}"))
        assert folded + [each.id for each in (*buffer.pending, *buffer.live)] == taken
        assert len(buffer.live) <= LIVE_NOTES
