"""How the terms of a search are chosen, and how its rankings are fused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.passage import PassageId
from compaction.memory.query import (
    MAX_QUERY_TERMS,
    MAX_SCORED,
    SearchTerms,
    choose_terms,
    fuse_rankings,
    parse_query,
    top_passages,
)

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
    assert len(chosen) <= 1 or sum(chosen) <= MAX_SCORED
    assert set(choice.weights) == set(asked.terms)
    assert (choice.newest is not None) == bool(chosen and chosen[0] > MAX_SCORED)


def test_a_choice_weighs_what_it_is_told() -> None:
    """Only the terms of the query have a weight, and all other terms weigh nothing."""
    choice = SearchTerms(("gate",), {"gate": 2.0, "code": 3.0})
    assert choice.weight_in(frozenset({"code", "gate", "cat"})) == 5.0
    assert choice.weight_in(frozenset({"cat"})) == 0.0
