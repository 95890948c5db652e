"""Tests which standing facts a summary must have, which others belong in it, and the room that each person gets."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Fact, FactKind, Importance, Seq
from compaction.summary.required_facts import further_facts, required_after_fold, required_facts
from tests.compaction.turn_store_contract import T0

LONG = "long " * 17


def fact(
    text: str,
    subject: str = "Ada",
    importance: Importance = 3,
    *,
    kind: FactKind = FactKind.LASTING,
    speaker: str = "",
    seq: int = 3,
) -> Fact:
    said_by = speaker or subject
    return Fact((Seq(seq),), kind, said_by, T0, text, subject=subject, importance=importance, quoted=False)


def told_by(*people: str) -> list[Fact]:
    """Return a long lasting fact of each of these people, in this order."""
    return [fact(f"{name} has the number {number} {LONG}.", name, seq=number) for number, name in enumerate(people)]


# Who told a lasting fact, in the order of talk, and whose must stay: about six of these facts fit.
SHARES = [
    # What was told first stays however much others say later.
    (["Ada", *["Bob"] * 20], {"Ada": 1, "Bob": 5}),
    (["Ada", "Cy", *["Bob"] * 20], {"Ada": 1, "Cy": 1, "Bob": 4}),
    (["Ada", "Bob"] * 10, {"Ada": 3, "Bob": 3}),
    # Who comes last has a share, too.
    ([*["Ada"] * 20, "Bob"], {"Ada": 5, "Bob": 1}),
    ([*["Ada"] * 5, *["Bob"] * 5, *["Cy"] * 5], {"Ada": 2, "Bob": 2, "Cy": 2}),
    (["Ada", "Bob", "Cy", "Dora", "Eve", "Finn"] * 2, dict.fromkeys(("Ada", "Bob", "Cy", "Dora", "Eve", "Finn"), 1)),
    (["Ada"] * 3, {"Ada": 3}),
]


@pytest.mark.parametrize(("people", "expected"), SHARES)
def test_each_person_has_a_share(people: list[str], expected: dict[str, int]) -> None:
    """The room goes round: nobody's second fact stays before everybody has one."""
    kept = required_facts(told_by(*people))
    assert {name: sum(each.subject == name for each in kept) for name in expected} == expected


def test_the_first_and_the_last_word_of_a_person_stay() -> None:
    """Of one person's facts the oldest and the newest take turns, the oldest first."""
    facts = told_by(*["Ada"] * 20)
    assert required_facts(facts) == (*facts[:3], *facts[-3:])


def test_what_somebody_tells_of_another_is_the_others() -> None:
    """A fact counts for the person that its subject names if that person speaks too, else for whoever said it."""
    facts = [
        fact(f"Ada eats no nuts {LONG}.", "Ada's food", speaker="Ada", seq=1),
        *(fact(f"Bob's flat has {number} rooms {LONG}.", "Bob's flat", speaker="Ada", seq=number) for number in (2, 3)),
        *(
            fact(f"The garage has {number} cars {LONG}.", "garage", speaker="Bob", seq=number)
            for number in range(4, 20)
        ),
    ]
    assert facts[0] in required_facts(facts)


def test_lasting_facts_come_first() -> None:
    """Of facts of importance 3 as many as fit in 700 characters must stay, people's lasting ones before decisions."""
    lasting = fact("Dora is allergic to peanuts.", "Dora")
    plans = [fact(f"The plan number {number} is {'long ' * 20}.", kind=FactKind.DECISION) for number in range(20)]
    kept = required_facts([lasting, fact("Minor.", importance=2), *plans])
    assert kept == (lasting, plans[0], plans[1], plans[2], plans[-2], plans[-1])
    assert sum(len(each.text) for each in kept) <= 700


def test_the_next_ones_belong_in_it() -> None:
    """What has no room among those that must stay belongs in the summary in a few words, as far as it fits."""
    facts = told_by(*["Ada", "Bob", "Cy"] * 10)
    kept, more = required_facts(facts), further_facts(facts)
    assert not set(kept) & set(more)
    assert 700 < sum(len(each.text) for each in (*kept, *more)) <= 3_000
    assert [sum(each.subject == name for each in (*kept, *more)) for name in ("Ada", "Bob", "Cy")] == [9, 9, 9]


def test_of_a_short_session_all_must_stay() -> None:
    """While the facts of importance 3 fit, all must stay and no others belong."""
    facts = [fact("Dora is allergic to peanuts."), fact("They meet at nine.", kind=FactKind.DECISION)]
    assert (required_facts(facts), further_facts(facts)) == (tuple(facts), ())


@given(st.lists(st.tuples(st.sampled_from(("Ada", "Bob", "Cy")), st.sampled_from(get_args(Importance))), max_size=30))
def test_only_weighty_facts_in_the_order_of_talk(told: list[tuple[str, Importance]]) -> None:
    """All are of importance 3, within the room, in the order of talk, and everybody's oldest is among them."""
    facts = [
        fact(f"The plan number {number} is {LONG}.", name, importance, seq=number)
        for number, (name, importance) in enumerate(told)
    ]
    for chosen in (required_facts(facts), further_facts(facts)):
        assert all(each.importance == 3 for each in chosen)
        assert all(one.turn_seq < other.turn_seq for one, other in pairwise(chosen))
    weighty = [each for each in facts if each.importance == 3]
    oldest = {each.subject: each for each in reversed(weighty)}
    assert set(oldest.values()) <= set(required_facts(facts))


def test_only_what_was_asked_for_and_what_is_new_must_be_told() -> None:
    """A fold's paragraph is judged by the facts that its request named and the new ones, as far as they fit."""
    shown = required_facts([fact(f"The plan number {number} is {LONG}.") for number in range(20)])
    new = [fact("Ada's key is blue."), fact("Ada hums.", importance=1), fact("Bob has " + "x" * 150, "Bob")]
    assert required_after_fold(shown, new) == (*shown, new[0])
