"""A note is first live, then pending, then folded, and no note is lost on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Note, Seq
from compaction.notes import NoteBuffer, condense_notes
from compaction.summary.port import FoldRequest
from compaction.summary.prompt import write_prompt
from tests.compaction.turn_store_contract import note


@pytest.mark.covers("1.15")
def test_oldest_live_note_becomes_pending_beyond_twelve() -> None:
    """The thirteenth live note makes the oldest one pending, and the oldest one is not lost."""
    buffer = NoteBuffer()
    for number in range(12):
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


def seen(*whats: str, who: str = "Ada", why: str = "") -> list[Note]:
    return [replace(note(f"n{at}"), what=what, who=who, why=why) for at, what in enumerate(whats)]


BOARD = "Level 3, 12 points, two lives"


@pytest.mark.covers("1.4")
@pytest.mark.parametrize(
    ("notes", "new"),
    [
        ([], []),
        (seen(BOARD, BOARD), [BOARD.replace(",", ";"), ""]),
        # A figure that changed, words in another order, one word more.
        (seen(BOARD, BOARD.replace("12", "13")), [BOARD.replace(",", ";"), "13 points"]),
        (seen("Ada beats Bob", "Bob beats Ada"), ["Ada beats Bob", "Bob beats Ada"]),
        (seen("The door is open", "The door is not open"), ["The door is open", "The door is not open"]),
        # Another person, another reason.
        ([*seen("a map"), *seen("a map", who="Bob")], ["a map", "a map"]),
        ([*seen("a map"), *seen("a map", why="Cy asked")], ["a map", "a map"]),
        (seen("得点12、残り2", "得点13、残り2"), ["得点12; 残り2", "得点13"]),
    ],
)
def test_a_note_is_known_only_if_nothing_in_it_is_new(notes: list[Note], new: list[str]) -> None:
    """A fold tells what changed from note to note."""
    assert [each.new for each in condense_notes(notes)] == new


def test_what_changed_in_a_long_note_is_what_is_left_of_it() -> None:
    """Many notes that differ in one word, in the middle of a long text, are told by that word."""
    long = "A long description of the same scene in the same words with a red sign that says {} and much more behind it"
    told = condense_notes(seen(*(long.format(f"word{at}") for at in range(9))))
    assert len(told) == 9
    assert all(f"word{at}" in each.new for at, each in enumerate(told) if at)


@pytest.mark.covers("1.4", "1.6")
@given(st.lists(st.tuples(st.integers(0, 110), st.integers(0, 80), st.integers(0, 5)), max_size=20))
def test_notes_in_a_prompt_fit(lengths: list[tuple[int, int, int]]) -> None:
    """In 400 characters with names and reasons; the newest go first. What is told again is told the same."""
    notes = [
        replace(note(f"n{number}"), what=f"w{word} " * (what // 2 + 1), why="y" * why)
        for number, (what, why, word) in enumerate(lengths)
    ]
    told = condense_notes(notes)
    request = FoldRequest(Seq(0), (), tuple(each.note for each in told))
    lines = write_prompt(request).request.prompt.split('<data from="shared screens">\n')[1:]
    assert all(len(each.split("\n</data>")[0]) <= 400 for each in lines)
    assert [each.note for each in told] == notes[len(notes) - len(told) :]
    assert bool(told) is bool(notes)
    assert condense_notes(request.notes) == told


@pytest.mark.covers("1.15")
def test_most_of_a_busy_hour_is_told() -> None:
    """Of another screen of 180 characters every ten seconds, a fold of two minutes tells all twelve, by own words."""
    hour = seen(*(f"scene{at} " + f"x{at}" * 60 for at in range(360)), why="the picture changed")
    for first in range(0, 360, 12):
        told = condense_notes(hour[first : first + 12])
        assert [f"scene{at}" in each.new for at, each in enumerate(told, start=first)] == [True] * 12


def test_the_newest_notes_wait() -> None:
    """Of more than `MOST_PENDING` pending notes the oldest fall out, and who asks is told which."""
    waiting = tuple(note(f"n{number}") for number in range(96 + 2))
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
        assert len(buffer.live) <= 12
