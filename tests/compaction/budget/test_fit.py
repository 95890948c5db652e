"""What is left out first, what comes back, and the note that says so, on parts of plain sizes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from compaction.budget.fit import Cut, fit
from compaction.errors import ContextOverflowError

NOTE_TOKENS = 5


@dataclass(frozen=True)
class Sized:
    content: str
    tokens: int
    timestamp: float | None = None


def described(cut: Cut[Sized]) -> Sized:
    """A note of five tokens that lists what was cut."""
    summary = [] if cut.summary is None else [cut.summary]
    return Sized(
        "cut " + " ".join(each.content for each in (*summary, *cut.turns, *cut.notes, *cut.recall)), NOTE_TOKENS
    )


def sent(limit: int, *, turns: int = 12, summary: int = 20, notes: int = 2, recall: int = 2) -> list[str]:
    """Fit a prompt of 10, turns of 10 each, notes and quotes of 6 each, and a current turn of 10."""
    return [
        each.content
        for each in fit(
            fixed=[Sized("prompt", 10)],
            summary=Sized("summary", summary),
            turns=[Sized(f"t{number}", 10) for number in range(turns)],
            notes=[Sized(f"n{number}", 6) for number in range(notes)],
            recall=[Sized(f"q{number}", 6) for number in range(recall)],
            current=Sized("current", 10),
            max_input_tokens=limit,
            newest=3,
            describe=described,
        )
    ]


TURNS = [f"t{number}" for number in range(12)]
WHOLE = 10 + 20 + 120 + 12 + 12 + 10


def test_all_of_it_when_it_fits() -> None:
    """No note where nothing is missing."""
    assert sent(WHOLE) == ["prompt", "summary", *TURNS, "n0", "n1", "q0", "q1", "current"]


def test_quotes_go_first_from_the_last() -> None:
    """The least alike is the last of them."""
    assert sent(WHOLE - 1) == ["prompt", "summary", "cut q1", *TURNS, "n0", "n1", "q0", "current"]


def test_then_notes_from_the_oldest() -> None:
    """The newest sight is worth most."""
    assert sent(WHOLE - 12) == ["prompt", "summary", "cut n0 q0 q1", *TURNS, "n1", "current"]


def test_then_the_summary() -> None:
    """The freshest words are worth more than the oldest history."""
    assert sent(WHOLE - 12 - 12 - 1) == ["prompt", "cut summary n0 n1 q0 q1", *TURNS, "current"]


def test_then_the_window_in_one_go_and_the_rest_returns() -> None:
    """Down to four fifths, and what fits beside that comes back: the summary, notes, quotes."""
    assert sent(144) == ["prompt", "summary", "cut t0 t1 t2 n0 q0 q1", *TURNS[3:], "n1", "current"]


def test_the_newest_turns_go_at_the_very_last() -> None:
    """They are worth more than all that returns, and less than not answering."""
    assert sent(10 + 10 + NOTE_TOKENS + 20) == ["prompt", *sent(45)[1:2], "t10", "t11", "current"]
    assert sent(10 + 10 + NOTE_TOKENS)[-1] == "current"
    with pytest.raises(ContextOverflowError):
        sent(10 + 10 + NOTE_TOKENS - 1)


def test_nothing_but_the_prompt() -> None:
    """A payload without turns or current turn is fine."""
    assert fit(
        fixed=[Sized("prompt", 10)],
        summary=None,
        turns=[],
        notes=[],
        recall=[],
        current=None,
        max_input_tokens=10,
        newest=3,
        describe=described,
    ) == (Sized("prompt", 10),)
