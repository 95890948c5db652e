"""A comparison scores passages by what they have in common with a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.language.terms import terms
from compaction.memory.passage import Passage, PassageId
from compaction.memory.recall import choose_terms, parse_query
from compaction.memory.reranking import WEIGHTS, Comparison
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import WordLikeness

EVENING = SessionId("evening")
QUERY = "What did Ada's brother bring?"


def said(seq: int, speaker: str, text: str) -> Turn:
    """Return a turn of one speaker."""
    return Turn(Seq(seq), TurnKind.SPEECH, float(seq), float(seq), (TurnPart(speaker.casefold(), speaker, text),))


def passages_of(talk: Sequence[Turn]) -> list[Passage]:
    """Return the passages of a talk, each with the turns beside it."""
    return [
        Passage(
            PassageId(each.seq),
            EVENING,
            each,
            own_terms=frozenset(terms(each.text)),
            around=tuple(other for other in talk if abs(other.seq - each.seq) <= 1),
        )
        for each in talk
    ]


def compare(talk: Sequence[Turn], query: str = QUERY) -> Comparison:
    """Return the comparison of a query with a talk that full text found in its order."""
    found, parsed = passages_of(talk), parse_query(query)
    return Comparison(query, parsed, choose_terms(parsed, {}, len(found)), found, [each.id for each in found], [])


def likeness(comparison: Comparison, equal: Mapping[str, float] | None = None) -> dict[str, WordLikeness]:
    """Return for each text how like the query's two pieces it is: nothing, or what `equal` tells."""
    return {text: [(equal or {}).get(text, 0.0)] * 2 for text in comparison.texts}


TALK = (said(1, "Bob", "The bus was late."), said(5, "Bob", "He carried soup."), said(9, "Cy", "Nobody came at all."))


def test_a_text_with_the_words_of_the_query_comes_first() -> None:
    """Everything else being as for the others, whose order is that of the full text."""
    comparison = compare(TALK)
    alone, found = comparison.scores(likeness(comparison)), comparison.scores(likeness(comparison, {TALK[2].text: 1.0}))
    assert max(alone, key=alone.__getitem__) == 1
    assert max(found, key=found.__getitem__) == 9


def test_words_of_the_person_asked_about_come_first() -> None:
    """A question that names somebody is about what they said."""
    talk = (said(1, "Bob", "It was quite nice."), said(5, "Ada", "It was quite nice."))
    comparison = compare(talk)
    scores = comparison.scores(likeness(comparison))
    assert scores[PassageId(5)] > scores[PassageId(1)]


def test_names_of_speakers_are_not_compared() -> None:
    """Unless the query has no other words; the texts are compared once each, those beside a turn too."""
    talk = (said(1, "Ada Lovelace", "Hello."), said(2, "Bob", "Hello."), said(3, "Bob", "Soup."))
    assert compare(talk).unnamed == "What did brother bring?"
    assert compare(talk, "Ada Lovelace?").unnamed == "Ada Lovelace?"
    assert compare(talk[:2]).texts == ("Hello.",)
    assert compare(talk[1:]).texts == ("Hello.", "Soup.")


@pytest.mark.parametrize("talk", [TALK, TALK[:1]])
def test_each_passage_has_a_number_for_each_weight(talk: Sequence[Turn]) -> None:
    """`WEIGHTS` is read in the order of the features."""
    comparison = compare(talk)
    rows = list(comparison.features(likeness(comparison)))
    assert [len(row) for row in rows] == [len(WEIGHTS)] * len(talk)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.floats(-1, 1)), min_size=1, max_size=6))
def test_scores_are_shares_of_the_best(texts: list[tuple[str, float]]) -> None:
    """Whatever is said and however alike it is, the best score is 1 and none is less than 0."""
    comparison = compare([said(seq, "Bob", text) for seq, (text, _) in enumerate(texts)])
    scores = comparison.scores(likeness(comparison, dict(texts)))
    assert set(scores) == {each.id for each in comparison.passages}
    assert max(scores.values()) == pytest.approx(1.0)
    assert all(math.isfinite(score) and score >= 0.0 for score in scores.values())
