"""How rankings are fused, how terms are chosen, and in which order search results come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.terms import terms
from compaction.memory.passage import MOST_SCORED, Passage, PassageId, PassageKind, source_text, text_to_embed
from compaction.memory.recall import (
    MAX_QUERY_TERMS,
    MOST_ASKED,
    RecallHit,
    SearchTerms,
    choose_terms,
    fuse_rankings,
    parse_query,
    rank_hits,
    top_passages,
)
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.compaction.memory.recall_index_contract import EVENING, MORNING, note, segment, turn


def told(*turns: Turn, query: str, order: list[int] | None = None, with_bot: bool = False) -> tuple[RecallHit, ...]:
    """Return the search results for a query over these turns. `order` gives the positions of the turns as the index
    ranked them.
    """
    passages = [
        Passage(PassageId(at + 1), EVENING, each, frozenset(terms(source_text(each))), frozenset(), (each,))
        for at, each in enumerate(turns)
    ]
    asked = parse_query(query)
    choice = choose_terms(asked, dict.fromkeys(asked.terms, 1), len(turns))
    ranking = [passages[at].id for at in (order or range(len(passages)))]
    return rank_hits(asked, choice, passages, fuse_rankings([(1.0, ranking)]), with_bot=with_bot, limit=20)


@pytest.mark.parametrize(
    ("said", "embedded"),
    [
        ("Yeah, exactly.", False),
        ("The key is there.", True),
        ("そうだね。", False),
        ("明日は朝八時に駅前で待ち合わせしよう。", True),
    ],
)
def test_a_turn_of_a_few_words_is_not_embedded(said: str, embedded: bool) -> None:
    """It is like every other agreement. In scripts without spaces two characters are about a word."""
    assert (text_to_embed(turn(1, said)) is not None) is embedded


def test_what_was_brought_along_in_vain_is_not_told() -> None:
    """A passage that was added as a possible correction is left out if it corrects none of the results."""
    found = told(turn(3, "The gate code is 4411.", "Ada"), turn(9, "I changed my shirt."), query="gate code", order=[0])
    assert [each.seq for each in found] == [3]


def test_what_was_found_for_a_neighbour_gives_way_to_it() -> None:
    """A passage that was found because of its neighbour, such as 'Haha.', is left out if the neighbour was found too.
    Otherwise it stands for the neighbour.
    """
    said, beside = turn(3, "The gate code is 4411.", "Ada"), turn(4, "Haha.", "Bob")
    passages = [
        Passage(PassageId(1), EVENING, beside, frozenset({"haha"}), frozenset({"gate", "code"}), (said, beside)),
        Passage(PassageId(2), EVENING, said, frozenset({"gate", "code"}), frozenset({"haha"}), (said, beside)),
    ]
    choice = SearchTerms(("gate", "code"), {"gate": 1.0, "code": 1.0})
    found = rank_hits(parse_query("gate code"), choice, passages, {passages[0].id: 1.0, passages[1].id: 9.0}, limit=5)
    assert [each.seq for each in found] == [3]
    found = rank_hits(parse_query("gate code"), choice, passages[:1], {passages[0].id: 9.0}, limit=5)
    assert [each.seq for each in found] == [4]


def test_who_is_asked_about_comes_first() -> None:
    """If a question names a speaker, that speaker's words come first. Upper and lower case do not matter."""
    said = (turn(1, "The server is slow today.", "Bob"), turn(5, "The server is really slow."))
    assert told(*said, query="server slow")[0].speaker == "Bob"
    assert told(*said, query="what did ADA say about the slow server")[0].speaker == "Ada Lovelace"


def test_an_answer_comes_before_its_question() -> None:
    """An answer ranks above its question, because the question holds no value."""
    found = told(
        turn(1, "When does the concert start?"), turn(8, "The concert can start at seven."), query="concert start"
    )
    assert [each.seq for each in found] == [8, 1]


def test_nothing_is_shown_twice() -> None:
    """Each turn is shown by one hit. Repetitions, and segments whose turns were found, are left out."""
    around = (turn(4, "Hm."), turn(5, "The key is in the shed."), turn(6, "In the shed, the key.", "Bob"))
    passages = [
        Passage(PassageId(1), EVENING, around[1], frozenset({"kei", "shed"}), frozenset(), around),
        Passage(PassageId(2), EVENING, around[2], frozenset({"kei", "shed"}), frozenset(), around[1:]),
        Passage(PassageId(3), EVENING, turn(50, "The key is in the shed."), frozenset({"kei", "shed"})),
        Passage(PassageId(4), EVENING, segment(0, 10, "The key is in the shed, they say."), frozenset({"kei", "shed"})),
        Passage(PassageId(5), EVENING, note("n", "a key"), frozenset({"kei"})),
        Passage(PassageId(6), MORNING, turn(5, "Another key, in the hall."), frozenset({"kei", "hall"})),
    ]
    scores = fuse_rankings([(1.0, [each.id for each in passages])])
    found = rank_hits(parse_query("key shed"), SearchTerms(("kei",), {"kei": 1.0}), passages, scores, limit=10)
    assert [each.passage_id for each in found] == [1, 2, 5, 6]
    assert [each.kind for each in found][2:] == [PassageKind.NOTE, PassageKind.TURN]
    assert [turn.seq for each in found[:2] for turn in each.turns] == [4, 5, 6]


def test_a_hit_needs_a_word_or_a_likeness() -> None:
    """A passage whose words and embedding have nothing to do with the query is no hit; hits have a relevance."""
    said = (
        turn(1, "Ben brings the lemonade."),
        turn(5, "I fixed the printer."),
        turn(9, "A cold drink would be nice."),
    )
    passages = [
        Passage(PassageId(at + 1), EVENING, each, frozenset(terms(source_text(each))), frozenset(), (each,))
        for at, each in enumerate(said)
    ]
    alike = {passages[0].id: 0.6, passages[1].id: 0.1, passages[2].id: 0.5}
    choice = SearchTerms(("lemonad",), {"lemonad": 1.0})
    scores = fuse_rankings([(1.0, [each.id for each in passages])])
    found = rank_hits(parse_query("lemonade"), choice, passages, scores, likeness=alike, limit=8)
    assert [(each.seq, each.relevance) for each in found] == [(1, 1.0), (9, 0.5)]
    assert rank_hits(parse_query("zebra quantum"), SearchTerms((), {"zebra": 1.0}), passages, scores, limit=8) == ()


WITH_BOT = [
    replace(turn(1, "Tell us the gate code."), called=True),
    replace(turn(5, "What is the gate code?"), kind=TurnKind.TYPED),
    replace(turn(9, "The gate code is 4411.", "Roomtone"), kind=TurnKind.ASSISTANT),
    replace(turn(13, "Open the gate."), called=True),
]


def test_what_is_said_to_the_bot_comes_last() -> None:
    """Whatever the ranking: behind what people said among themselves, and only where somebody wants it."""
    said = (*WITH_BOT, turn(17, "We painted the gate."))
    assert [each.seq for each in told(*said, query="gate code")] == [17, 1]
    everything = told(*said, query="gate code", with_bot=True)
    assert everything[0].seq == 17
    assert {each.seq for each in everything} == {1, 5, 9, 13, 17}


def test_what_somebody_told_the_bot_is_found() -> None:
    """If it has most of what is asked. Without a query the newest turns are listed, whoever spoke."""
    told_bot = replace(turn(1, "Remember that the gate code is 4411."), called=True)
    assert [each.seq for each in told(told_bot, *WITH_BOT[1:], query="gate code")] == [1]
    assert len(told(told_bot, *WITH_BOT[1:], query="")) == 4


def test_a_correction_to_the_bot_precedes_what_it_corrects() -> None:
    """'No, it is on Sunday' is said to the bot, and holds."""
    old = turn(1, "The concert is on Saturday.")
    new = replace(turn(5, "No, it is on Sunday."), called=True)
    passages = [
        Passage(PassageId(1), EVENING, old, frozenset({"concert"}), replaced_by=Seq(5)),
        Passage(PassageId(2), EVENING, new, frozenset({"sundai"})),
    ]
    asked = parse_query("concert")
    found = rank_hits(asked, SearchTerms(("concert",), {"concert": 1.0}), passages, {PassageId(1): 1.0}, limit=5)
    assert [each.seq for each in found] == [5, 1]


def test_kinds_of_turns_weigh_differently() -> None:
    """Words of people among themselves rank above those with the bot, and above membership turns."""
    part = (TurnPart("1", "Ada", "Lisbon"),)
    turns = [Turn(Seq(10 * at), kind, 10.0 * at, 10.0, part) for at, kind in enumerate(reversed(TurnKind))]
    passages = [
        Passage(PassageId(at + 1), MORNING if at % 2 else EVENING, each, frozenset({"lisbon"}))
        for at, each in enumerate(turns)
    ]
    equal = dict.fromkeys((each.id for each in passages), 1.0)
    found = rank_hits(parse_query("lisbon"), SearchTerms(("lisbon",), {"lisbon": 1.0}), passages[2:], equal, limit=9)
    assert found[0].turn_kind is TurnKind.SPEECH


RANKINGS = st.lists(
    st.tuples(st.floats(0.1, 5.0), st.lists(st.integers(1, 30).map(PassageId), max_size=12)), max_size=4
)


@given(RANKINGS, st.randoms())
def test_fusion_hears_every_ranking_alike(rankings: list[tuple[float, list[PassageId]]], rng: object) -> None:
    """The order in which rankings are given does not matter, and every ranked passage has a score."""
    shuffled = list(rankings)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fuse_rankings(shuffled) == pytest.approx(fuse_rankings(rankings))
    assert set(fuse_rankings(rankings)) == {each for _, ranking in rankings for each in ranking}


@given(RANKINGS)
def test_who_is_never_behind_is_not_behind(rankings: list[tuple[float, list[PassageId]]]) -> None:
    """A passage that every ranking places before another one is also before it in the fusion."""
    scores = fuse_rankings(rankings)
    orders = [list(dict.fromkeys(ranking)) for _, ranking in rankings]
    for one in scores:
        for other in scores:
            if one != other and all(
                one in order and (other not in order or order.index(one) < order.index(other)) for order in orders
            ):
                assert scores[one] > scores[other]


@given(st.lists(st.integers(1, 50).map(PassageId), unique=True, max_size=30))
def test_one_ranking_stays_as_it_is(ranking: list[PassageId]) -> None:
    """The fusion of one ranking has the same order, and `top_passages` cuts it."""
    assert top_passages(fuse_rankings([(1.0, ranking)]), 10) == tuple(ranking[:10])


@given(
    st.dictionaries(st.sampled_from([f"t{n}" for n in range(60)]), st.integers(0, 200_000), max_size=60),
    st.integers(1, 200_000),
)
def test_chosen_terms_are_rare_and_few(counts: dict[str, int], total: int) -> None:
    """The rarest terms come first. More than one term is chosen only while all together match few enough passages, and
    terms without matches are left out.
    """
    asked = parse_query(" ".join(counts))
    choice = choose_terms(asked, counts, total)
    chosen = [counts[term] for term in choice.terms]
    assert chosen == sorted(chosen)
    assert all(count > 0 for count in chosen)
    assert len(chosen) <= MAX_QUERY_TERMS
    assert len(chosen) <= 1 or sum(chosen) <= MOST_SCORED
    assert set(choice.weights) == set(asked.terms)


def test_a_choice_weighs_what_it_is_told() -> None:
    """Only the terms of the query have a weight, and all other terms weigh nothing."""
    choice = SearchTerms(("gate",), {"gate": 2.0, "code": 3.0})
    assert choice.weight_in(frozenset({"code", "gate", "cat"})) == 5.0
    assert choice.weight_in(frozenset({"cat"})) == 0.0


@pytest.mark.parametrize(
    ("question", "clause"),
    [
        ("Which town?", "town"),
        (
            "Be honest. An hour ago or so, that thing with the red button in the cellar. Whose fault was it?",
            "red button cellar",
        ),
        ("Wessen Schuld war das, das mit dem roten Knopf im Keller?", "mit dem roten Knopf im Keller"),
        # Without commas: the rarest terms.
        (" ".join(f"word{n}" for n in range(MOST_ASKED + 9)), " ".join(f"word{n}" for n in range(MOST_ASKED))),
        (" ".join(f"word{n}, " for n in range(300)), "word1"),
        ("???", ""),
    ],
)
def test_what_a_question_asks_is_its_weightiest_clause(question: str, clause: str) -> None:
    """People say much around what they ask, which no passage has to cover."""
    asked = parse_query(question)
    choice = choose_terms(asked, dict.fromkeys(asked.terms, 1), 100)
    assert choice.asked == pytest.approx(choice.weight_in(frozenset(parse_query(clause).terms)))
