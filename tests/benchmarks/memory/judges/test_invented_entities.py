"""Finding names and numbers in a summary that nobody said."""

from __future__ import annotations

import pytest

from benchmarks.memory.judges.invented_entities import InventedEntities, SourceText

SAID = SourceText(
    [
        "[18:04] Ada: We meet at half past seven in Lisbon, my sister Ines owes me 1,150 euros.",
        "[18:05] Bob: the eighteenth of June, twenty-nine people, extension 4417",
        "[18:06] Ada: it plays D-V-D and N_T_S_C",
    ]
)


@pytest.mark.parametrize(
    "summary",
    [
        "Ada: We meet at half past seven in Lisbon.",
        "Ada meets Bob at 7:30, or 19:30, in Lisbon.",
        "Ines owes Ada 1150 euros. Bob expects 29 people on the 18th of June.",
        "Everyone met Ada. Discussing June, Bob gave extension 4417.",
        "# Key Facts\n**Decisions**\n- Ada's sister is Ines.\n1. Bob said 4417.",
        "One of them was Ada.",
        "At 18:04 Ada spoke.",
        "Ada said that it plays a DVD in NTSC.",
        "",
    ],
)
def test_what_was_said_is_no_invention(summary: str) -> None:
    """A name or number that was said is no invention, however it is written or capitalised."""
    assert SAID.inventions(summary) == InventedEntities((), ())


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        ("Ada met Marcus in Lisbon.", ("Marcus",)),
        ("Marcus said hello.", ("Marcus",)),
        ("Marcus: We meet in Lisbon.", ("Marcus",)),
        ("They fly from Oslo to Lisbon.", ("Oslo",)),
        ("Ada's friend is called Zoë.", ("Zoë",)),
    ],
)
def test_invented_names_are_found(summary: str, names: tuple[str, ...]) -> None:
    """An invented name is found by its capital inside a sentence, and by the verb after it at the start of one."""
    assert SAID.inventions(summary).names == names


@pytest.mark.parametrize(
    ("summary", "numbers"),
    [
        ("Ada owes 1,250 euros.", ("1250",)),
        ("They meet at 8:30.", ("8:30",)),
        ("Bob expects thirty people.", ("30",)),
        ("Bob expects twenty-eight people.", ("28",)),
        ("Extension 4418.", ("4418",)),
    ],
)
def test_invented_numbers_are_found(summary: str, numbers: tuple[str, ...]) -> None:
    """Invented numbers are found in digits and in words."""
    assert SAID.inventions(summary).numbers == numbers


def test_what_is_said_later_may_be_told_later() -> None:
    """A name is no invention once it has been said, because the sources grow with the conversation."""
    said = SourceText(["Ada: hello"])
    assert said.inventions("Ada met Marcus.").names == ("Marcus",)
    said.add("Marcus: hello")
    assert said.inventions("Ada met Marcus.").names == ()
