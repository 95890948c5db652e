"""Which of the found turns correct which others, and that what holds comes first."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.terms import terms
from compaction.memory.passage import Passage, PassageId, source_terms
from compaction.memory.query import SearchTerms, choose_terms, fuse_rankings, parse_query
from compaction.memory.ranked_passage import TurnRef
from compaction.memory.recall import RecallHit, rank_hits
from compaction.model import Seq
from tests.compaction.memory.changed_facts import CHANGED, CHANGED_APART, STILL_SO, STILL_SO_APART
from tests.compaction.memory.corrected_statements import (
    CONTRADICTED,
    CONTRADICTED_APART,
    DENIED,
    DENIED_APART,
    KEPT,
    NOT_CONTRADICTED,
    NOT_CONTRADICTED_APART,
    NOT_DENIED,
    NOT_DENIED_APART,
    OTHER_THING,
    REPLACED,
    REPLACED_APART,
    RESTATED,
)
from tests.compaction.memory.recall_index_contract import EVENING, turn
from tests.compaction.memory.test_recall import told

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize(("old", "new", "question"), [*REPLACED, *REPLACED_APART])
def test_the_value_that_holds_comes_first(old: str, new: str, question: str) -> None:
    """In all cases the current value comes before the old one, although the old one was found first. The old one is
    marked as superseded.
    """
    found = told(turn(3, old), turn(90, new), query=question)
    assert [each.seq for each in found] == [90, 3]
    assert found[1].superseded_by == TurnRef(EVENING, Seq(90))
    assert found[0].supersedes == (TurnRef(EVENING, Seq(3)),)
    assert found[0].superseded_by is None


def test_a_chain_of_corrections_leads_to_its_end() -> None:
    """Of three values the last one comes first, and the other two are marked as superseded by it."""
    codes = [turn(at, f"The gate code is {code} now.") for at, code in ((3, 4411), (40, 7702), (80, 9090))]
    found = told(*codes, query="gate code")
    assert found[0].seq == 80
    assert {each.superseded_by for each in found[1:]} == {TurnRef(EVENING, Seq(80))}
    assert set(found[0].supersedes) == {TurnRef(EVENING, Seq(3)), TurnRef(EVENING, Seq(40))}


def test_what_folding_knew_to_be_corrected_is_behind() -> None:
    """If the words do not show a correction, the fact that folding stored does. The correction takes the rank of the
    passage that it replaces.
    """
    old = Passage(
        PassageId(1), EVENING, turn(3, "Wei is our driver."), frozenset({"wei", "driver"}), replaced_by=Seq(9)
    )
    new = Passage(PassageId(2), EVENING, turn(9, "It falls to Noor."), frozenset({"fall", "noor"}))
    asked = parse_query("driver")
    choice = choose_terms(asked, {"driver": 1}, 9)
    found = rank_hits(asked, choice, [old, new], fuse_rankings([(1.0, [old.id])]), limit=5)
    assert [each.seq for each in found] == [9, 3]


def test_an_answer_comes_with_its_question_and_marks_nothing() -> None:
    """What folding knew to be a question and its answer are found together, and nobody is told that either is wrong."""
    old = Passage(PassageId(1), EVENING, turn(3, "who bakes"), frozenset({"bake"}), replaced_by=Seq(9))
    new = Passage(PassageId(2), EVENING, turn(9, "I'll ask my sister."), frozenset({"ask", "sister"}))
    asked = parse_query("bakes")
    found = rank_hits(asked, choose_terms(asked, {"bake": 1}, 9), [old, new], fuse_rankings([(1.0, [old.id])]), limit=5)
    assert [each.seq for each in found] == [9, 3]
    assert [(each.superseded_by, each.supersedes) for each in found] == [(None, ()), (None, ())]


def test_what_is_taken_back_at_once_is_shown_with_its_correction() -> None:
    """A correction right after a statement, such as 'No wait, I meant Friday', is in the quote and marks the statement
    as superseded.
    """
    around = (turn(3, "The picnic is on Saturday."), turn(4, "Nice.", "Bob"), turn(5, "No wait, I meant Friday."))
    passage = Passage(PassageId(1), EVENING, around[0], frozenset({"picnic", "saturdai"}), frozenset(), around)
    (found,) = rank_hits(
        parse_query("picnic"), SearchTerms(("picnic",), {"picnic": 1.0}), [passage], {passage.id: 1.0}, limit=5
    )
    assert found.superseded_by == TurnRef(EVENING, Seq(5))
    assert found.turns == around


@pytest.mark.parametrize(
    ("old", "question", "answer", "searched"), [*DENIED, *DENIED_APART, *CONTRADICTED, *CONTRADICTED_APART]
)
def test_an_answer_denies_the_value_that_its_question_names(
    old: str, question: str, answer: str, searched: str
) -> None:
    """Whoever said the old value, and however the question puts it: the answer comes first, with its question, and the
    old value is marked.
    """
    found = _asked_about(old, question, answer, searched)
    assert [each.seq for each in found] == [41, 3]
    assert [each.text for each in found[0].turns] == [question, answer]
    assert found[1].superseded_by == TurnRef(EVENING, Seq(41))


@pytest.mark.parametrize(
    ("old", "question", "answer", "searched"),
    [*NOT_DENIED, *NOT_DENIED_APART, *NOT_CONTRADICTED, *NOT_CONTRADICTED_APART],
)
def test_an_answer_denies_nothing_of_another_thing(old: str, question: str, answer: str, searched: str) -> None:
    """What was asked about another thing, or not denied, marks nothing."""
    assert [each.superseded_by for each in _asked_about(old, question, answer, searched) if each.seq == 3] == [None]


def _asked_about(old: str, question: str, answer: str, searched: str) -> tuple[RecallHit, ...]:
    """Search what was said by one person, then asked by another, and answered by a third."""
    told_first = turn(3, old)
    talk = (turn(40, question, "Bob"), turn(41, answer, "Carla"))
    said = [frozenset(terms(each.text)) for each in (told_first, *talk)]
    passages = [
        Passage(PassageId(1), EVENING, told_first, said[0], frozenset(), (told_first,)),
        Passage(PassageId(2), EVENING, talk[0], said[1], said[2], talk),
        Passage(PassageId(3), EVENING, talk[1], said[2], said[1], talk),
    ]
    asked = parse_query(searched)
    choice = choose_terms(asked, dict.fromkeys(asked.terms, 1), 90)
    return rank_hits(asked, choice, passages, fuse_rankings([(1.0, [each.id for each in passages])]), limit=5)


@pytest.mark.parametrize("answer", ["No, it is Sunday now.", "Not any more, Sunday."])
def test_an_answer_corrects_what_its_question_names(answer: str) -> None:
    """An answer is judged together with its question: 'No, Sunday now' alone does not say what is on Sunday."""
    old = turn(3, "The quiz is on Wednesday.")
    talk = (turn(40, "Is the quiz still on Wednesday?", "Bob"), turn(41, answer))
    passages = [
        Passage(PassageId(1), EVENING, old, frozenset({"quiz", "wednesdai"}), frozenset(), (old,)),
        Passage(PassageId(2), EVENING, talk[1], frozenset({"sundai"}), frozenset({"quiz", "wednesdai"}), talk),
    ]
    scores = fuse_rankings([(1.0, [each.id for each in passages])])
    found = rank_hits(
        parse_query("When is the quiz?"), SearchTerms(("quiz",), {"quiz": 1.0}), passages, scores, limit=5
    )
    assert [each.seq for each in found] == [41, 3]
    assert found[0].turns == talk
    assert found[1].superseded_by == TurnRef(EVENING, Seq(41))


def test_an_answer_that_takes_back_is_shown_with_its_question() -> None:
    """Two people get the same answer about different things: each is shown once, with its question and at the better
    place of both, also if what it corrects was not found.
    """
    talks = {
        each.text.split()[2]: (each, turn(each.seq + 1, "No, Sunday now."))
        for each in (
            turn(40, "Is the quiz still on Wednesday?", "Bob"),
            turn(50, "Is the match still on Monday?", "Bob"),
        )
    }
    passages = [
        passage
        for number, (thing, talk) in enumerate(talks.items())
        for passage in (
            Passage(PassageId(2 * number + 1), EVENING, talk[0], frozenset({thing}), frozenset(), talk),
            Passage(PassageId(2 * number + 2), EVENING, talk[1], frozenset({"sundai"}), frozenset({thing}), talk),
        )
    ]
    asked = SearchTerms(tuple(talks), dict.fromkeys(talks, 1.0))
    scores = fuse_rankings([(1.0, [each.id for each in passages])])
    found = rank_hits(parse_query("quiz match"), asked, passages, scores, limit=5)
    assert [each.turns for each in found] == list(talks.values())
    assert [each.seq for each in found] == [41, 51]


def test_a_question_is_not_lost_with_an_answer_that_is_not_shown() -> None:
    """The reader has the answer in view, or it is a question itself, which the last answer shows."""
    talk = (turn(40, "Is the quiz still on Wednesday?", "Bob"), turn(41, "No, is it Sunday now?"))
    last = turn(42, "No, Monday now.", "Bob")
    passages = [
        Passage(PassageId(1), EVENING, talk[0], frozenset({"quiz"}), frozenset(), talk),
        Passage(PassageId(2), EVENING, talk[1], frozenset({"sundai"}), frozenset({"quiz"}), (*talk, last)),
        Passage(PassageId(3), EVENING, last, frozenset({"mondai"}), frozenset({"sundai"}), (talk[1], last)),
    ]
    asked, scores = SearchTerms(("quiz",), {"quiz": 1.0}), {PassageId(1): 3.0, PassageId(2): 2.0, PassageId(3): 1.0}
    for order in permutations(passages):
        (first, *rest) = rank_hits(parse_query("quiz"), asked, order, scores, limit=5)
        assert first.seq == 40
        assert last in [shown for each in (first, *rest) for shown in each.turns]
    (found,) = rank_hits(parse_query("quiz"), asked, passages[:2], scores, in_view=(EVENING, Seq(41)), limit=5)
    assert found.seq == 40


@pytest.mark.parametrize(
    ("old", "later", "seqs"),
    [
        ("The raid begins at nine on Tuesday.", "For the raid, be here on Thursday.", [90, 3]),
        ("The raid begins at nine on Tuesday.", "The raid was great.", [3, 90]),
        ("The raid begins at nine on Tuesday.", "Good luck with the raid on Tuesday, Carol!", [3, 90]),
        ("The raid begins at nine on Tuesday.", "Is the raid on Thursday?", [3, 90]),
        ("The raid begins at nine on Tuesday.", "Thursday is my birthday.", [3]),
        # Of another raid, which only a reader knows.
        ("The raid begins at nine on Tuesday.", "The other guild has its raid on Friday.", [90, 3]),
        ("The raid begins at nine on Tuesday.", "I bought 3 pizzas for the raid.", [3, 90]),
        ("The raid code is 7702.", "The raid code is not 4411.", [3, 90]),
        ("The raid code is 7702.", "I told Noor the raid code.", [3, 90]),
    ],
)
def test_the_later_of_two_values_comes_first(old: str, later: str, seqs: list[int]) -> None:
    """Of two values of a like kind. Nothing says that the older one is wrong: it has no mark."""
    found = told(turn(3, old), turn(90, later), query="raid")
    assert [each.seq for each in found] == seqs
    assert all(each.superseded_by is None for each in found)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is the quiz still on Wednesday?", "Yes, Wednesday."),
        ("Is the quiz still on Wednesday?", "Sunday is my birthday, by the way, and you are all invited to the lake."),
        ("Is the match on Wednesday?", "No, on Sunday."),
        ("Is the quiz hard?", "Seven out of ten."),
    ],
)
def test_an_answer_about_something_else_corrects_nothing(question: str, answer: str) -> None:
    """A yes, a change of subject, a question about another subject and an answer to something else do not correct the
    statement.
    """
    old = turn(3, "The quiz is on Wednesday.")
    talk = (turn(40, question, "Bob"), turn(41, answer))
    passages = [
        Passage(PassageId(1), EVENING, old, frozenset({"quiz", "wednesdai"}), frozenset(), (old,)),
        Passage(PassageId(2), EVENING, talk[0], frozenset({"quiz", "match"}), frozenset({"quiz"}), talk),
        Passage(PassageId(3), EVENING, talk[1], frozenset({"sundai"}), frozenset({"quiz"}), talk),
    ]
    asked = parse_query("When is the quiz?")
    scores = fuse_rankings([(1.0, [each.id for each in passages])])
    found = rank_hits(asked, SearchTerms(("quiz",), {"quiz": 1.0}), passages, scores, limit=5)
    assert found[0].seq == 3
    assert found[0].superseded_by is None


def test_a_quote_shows_no_line_that_was_corrected() -> None:
    """A neighbouring turn that was superseded is left out of the quote of a result."""
    old, other = turn(3, "The gate code is 4411.", "Ada"), turn(4, "The gate is rusty.", "Bob")
    new = turn(50, "The gate code is 7702 now.")
    passages = [
        Passage(PassageId(1), EVENING, old, frozenset({"gate", "code"}), frozenset(), (old, other)),
        Passage(PassageId(2), EVENING, other, frozenset({"gate", "rusti"}), frozenset({"code"}), (old, other)),
        Passage(PassageId(3), EVENING, new, frozenset({"gate", "code"}), frozenset(), (new,)),
    ]
    choice = SearchTerms(("gate", "code"), {"gate": 1.0, "code": 1.0})
    found = rank_hits(
        parse_query("gate code"), choice, passages, fuse_rankings([(1.0, [each.id for each in passages])]), limit=5
    )
    assert [each.seq for each in found] == [50, 3, 4]
    assert found[2].turns == (other,)


@pytest.mark.parametrize(("old", "new", "question"), RESTATED)
def test_of_two_values_the_later_comes_first(old: str, new: str, question: str) -> None:
    """If a person says the same with another value, the later statement comes first, and neither is marked."""
    found = told(turn(3, old), turn(90, new), query=question)
    assert [(each.seq, each.superseded_by) for each in found] == [(90, None), (3, None)]


@pytest.mark.parametrize(
    ("changed", "right"), [(CHANGED, 7), (CHANGED_APART, 8)], ids=["written to look at", "written apart"]
)
def test_what_changed_in_passing_comes_first(changed: Sequence[tuple[str, str, str, str]], right: int) -> None:
    """In so many of 24 facts each, if the old value was found first: as many as on 25 November 2026, see 0009."""
    firsts = [_said_in_passing(*each)[0] for each in changed]
    assert sum(90 in [each.seq for each in first.turns] for first in firsts) >= right


@pytest.mark.parametrize(
    ("still_so", "right"), [(STILL_SO, 13), (STILL_SO_APART, 14)], ids=["written to look at", "written apart"]
)
def test_what_is_only_mentioned_again_stays_behind(still_so: Sequence[tuple[str, str, str, str]], right: int) -> None:
    """In so many of 16 facts each, if what still holds was found first. Otherwise it comes second."""
    found = [[each.seq for each in _said_in_passing(*each)] for each in still_so]
    assert sum(seqs[0] == 3 for seqs in found) >= right
    assert all(3 in seqs[:2] for seqs in found)


def _said_in_passing(old: str, asked: str, new: str, searched: str) -> tuple[RecallHit, ...]:
    """Search what one person said at seq 3 and at seq 90, and another may have asked in between."""
    told_first, last = turn(3, old), turn(90, new)
    talk = (turn(89, asked, "Bob"), last) if asked else (last,)
    said = [told_first, *talk]
    own = [frozenset(source_terms(each)) for each in said]
    passages = [
        Passage(
            PassageId(at + 1),
            EVENING,
            each,
            own[at],
            own[2 if at == 1 else 1] if asked and at else frozenset(),
            talk if at else (told_first,),
        )
        for at, each in enumerate(said)
    ]
    query = parse_query(searched)
    choice = choose_terms(query, dict.fromkeys(query.terms, 1), 90)
    return rank_hits(query, choice, passages, fuse_rankings([(1.0, [each.id for each in passages])]), limit=5)


@pytest.mark.parametrize(("old", "new"), [*KEPT, *OTHER_THING])
def test_what_merely_follows_corrects_nothing(old: str, new: str) -> None:
    """A statement that adds something, asks, or is about another thing does not mark the earlier one."""
    found = told(turn(3, old), turn(90, new), query=old)
    assert [each.superseded_by for each in found] == [None] * len(found)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([each for pair in REPLACED[:8] for each in pair[:2]]), st.sampled_from(["Ada", "Bob"])
        ),
        max_size=14,
    ),
    st.randoms(),
)
def test_whatever_was_found_the_old_follows_what_holds(said: list[tuple[str, str]], rng: object) -> None:
    """For any talk and any ranking, no result comes twice, scores descend, and a superseded result comes after the one
    that replaces it.
    """
    turns = [turn(3 * at, text, speaker) for at, (text, speaker) in enumerate(said)]
    order = list(range(len(turns)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    found = told(*turns, query="gate code Saturday password lemonade", order=order)
    seqs = [each.seq for each in found]
    assert len(set(seqs)) == len(seqs)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    for at, each in enumerate(found):
        by = each.superseded_by
        if by is not None and by.seq in seqs:
            assert seqs.index(by.seq) < at
            assert each.seq is not None
            assert by.seq > each.seq


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_holds_is_first_if_the_old_was_said_twice(order: tuple[int, ...]) -> None:
    """A value that was named twice and then corrected by somebody else comes after the correction."""
    said = (
        ("The gate code is 7702 now.", "Ada"),
        ("The gate code is 4411.", "Ada"),
        ("The gate code is 7702 now.", "Bob"),
    )
    turns = [turn(3 * at, text, speaker) for at, (text, speaker) in enumerate(said)]
    found = [each.seq for each in told(*turns, query="gate code", order=list(order))]
    assert found.index(Seq(6)) < found.index(Seq(3))
