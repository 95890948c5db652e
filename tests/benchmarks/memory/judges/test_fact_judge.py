"""Which planted facts a text contains."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.conversation import FactStatement, PlantedFact
from benchmarks.memory.judges.fact_judge import Attribution, FactJudge, FactVerdict

RAID = PlantedFact(
    "event",
    "raid",
    (FactStatement(3, "Ada", ("Thursday",)), FactStatement(40, "Ada", ("Friday",))),
    "When is the raid?",
)
CODE = PlantedFact("code", "garage", (FactStatement(7, "Bob", ("4417",)),), "What is the garage code?")
JUDGE = FactJudge([RAID, CODE], ["Ada", "Bob"])


def told(text: str, fact: PlantedFact = RAID, cursor: int = 100) -> FactVerdict:
    """Return the judge's verdict on a text."""
    return JUDGE.verdict(text, fact, cursor)


@pytest.mark.parametrize(
    "text",
    [
        "Ada: The raid is on Friday now.",
        "Ada said the raid moved to Friday, not Thursday.",
        "Ada planned the raid. It is on Friday.",
        "Bob: So the raid is still on Thursday, right? Ada: No, it is Friday now.",
    ],
)
def test_value_that_holds_is_kept(text: str) -> None:
    """A fact is kept if its value is in the key's sentence or the next one. An old value beside it does no harm."""
    assert told(text).kept
    assert not told(text).stale


@pytest.mark.parametrize(
    "text", ["Ada: No, it is Friday now.", "The picnic is on Friday.", "The raid will be fun.", ""]
)
def test_value_without_its_key_tells_nothing(text: str) -> None:
    """A value without its key does not count, because a reader cannot know what it belongs to."""
    assert told(text) == FactVerdict(kept=False, stale=False, attribution=None)


def test_next_sentence_of_another_key_is_not_read_into_this_one() -> None:
    """The next sentence does not count for a fact if it is about another key."""
    assert not told("The raid will be fun. The garage opens on Friday.").kept


def test_old_value_alone_is_stale() -> None:
    """An old value alone is stale, because a reader would believe something that has changed."""
    verdict = told("Ada: The raid is on Thursday.")
    assert verdict.stale
    assert not verdict.kept


def test_old_value_in_a_sentence_of_its_own_is_stale_beside_the_new() -> None:
    """An old value in a sentence of its own is stale even beside the new one, because a reader could believe either."""
    verdict = told("Ada: The raid is on Thursday. Bob: Fine. Ada: The raid is on Friday.")
    assert verdict.stale
    assert verdict.kept


def test_before_the_correction_the_first_value_holds() -> None:
    """Before the correction is said, the first value is the right one."""
    assert told("The raid is on Thursday.", cursor=30).kept
    assert not told("The raid is on Thursday.", cursor=3).kept


@pytest.mark.parametrize(
    ("text", "attribution"),
    [
        ("Bob: The garage code is 4417.", Attribution.RIGHT),
        ("Ada: The garage code is 4417.", Attribution.WRONG),
        ("The garage code is 4417.", Attribution.UNSAID),
        ("Bob was in. He said the garage code is 4417.", Attribution.RIGHT),
    ],
)
def test_attribution(text: str, attribution: Attribution) -> None:
    """The speaker is read from the sentence, or from the one before if a pronoun refers to it."""
    assert told(text, CODE).attribution is attribution


def test_facts_in_flux_are_not_asked_for() -> None:
    """A fact with a correction between the cursor and the end is not asked for, because the correction is still in
    every window.
    """
    assert JUDGE.due(30, 90) == (CODE,)
    assert JUDGE.due(50, 100) == (RAID, CODE)
    assert JUDGE.due(5, 20) == (RAID,)


def test_tally_counts_each_fact_once() -> None:
    """A tally counts each fact once."""
    tally = JUDGE.tally("Ada: The raid is on Thursday. Bob: The garage code is 4417.", [RAID, CODE], 100)
    assert (tally.facts, tally.kept, tally.corrected, tally.stale) == (2, 1, 1, 1)
    assert (tally.attributed_right, tally.attributed_wrong) == (1, 0)
