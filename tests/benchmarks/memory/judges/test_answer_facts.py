"""What becomes of the facts of recorded answers."""

from __future__ import annotations

import json

from benchmarks.memory.judges.answer_facts import compare_facts, read_facts
from compaction.model import Fact, FactKind, Segment, SegmentId, Seq, SessionId

FACTS = [
    {"turns": [1], "text": "Ada's raid is on Friday", "supersedes": []},
    {"turns": [2], "text": "Bob is allergic to peanuts and to walnuts.", "supersedes": []},
    {"turn_seq": 3, "text": "Cleo has the blue key", "supersedes": [4]},
    {"turns": [5], "text": "Nobody believes the smith"},
]
ANSWER = f"Here it is: {json.dumps({'gist': 'They talked.', 'facts': FACTS})}"


def landed(text: str, turn: int, *, quoted: bool = False, supersedes: tuple[str, ...] = ()) -> Fact:
    """Return a fact of a segment."""
    return Fact((Seq(turn),), FactKind.OTHER, "Ada", 0.0, text, supersedes, quoted=quoted)


def segment(*facts: Fact) -> Segment:
    """Return the segment of the first ten turns."""
    return Segment(
        SegmentId("1"), SessionId("s"), Seq(0), Seq(10), 0.0, 1.0, "They talked.", facts, (), summariser="llm ledger.v8"
    )


def test_facts_are_read_from_an_answer_with_words_around_it() -> None:
    """Turns may be one number or a list; an answer in another form has no facts."""
    assert [(sorted(each.turns), each.supersedes) for each in read_facts(ANSWER)] == [
        ([1], 0),
        ([2], 0),
        ([3], 1),
        ([5], 0),
    ]
    assert read_facts("They talked about the raid.") == []


def test_every_fact_is_kept_altered_quoted_or_refused() -> None:
    """Capitals and points don't matter; what code superseded beside the answers is counted."""
    made = segment(
        landed("Ada's raid is on Friday.", 1),
        landed("Bob is allergic to peanuts and walnuts, Ada says.", 2),
        landed("I have the blue key", 3, quoted=True, supersedes=("0#1", "0#2")),
    )
    found = compare_facts([("0-9", "[]"), ("0-9", ANSWER), ("", "{}")], [made], {"Ada", "Bob", "Cleo"})
    assert found.figures() == {
        "facts": 4,
        "kept": 1,
        "quoted": 1,
        "altered": 1,
        "refused": 1,
        "superseded_by_code": 1,
        "examples": [
            "altered: Bob is allergic to peanuts and to walnuts.",
            "quoted: Cleo has the blue key",
            "refused: Nobody believes the smith",
        ],
    }
