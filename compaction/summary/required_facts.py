"""Chooses which standing facts a summary must have, and which others belong in it. Pure.

Only facts of importance 3. People's lasting ones come first, and the room goes round from person to person, so that
nobody's facts push out somebody else's. Of one person the oldest and the newest take turns: an allergy that was told in
the first minutes stays, and what is new comes in.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from compaction.model import FactKind
from compaction.summary.sources import name_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compaction.model import Fact

# What the facts that every summary must have may take of it, in their own words.
_MUST_CHARS = 700
# With those that belong in it: dense prose tells a fact in a third of its own words.
_BELONG_CHARS = 3_000


def required_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return which of these facts (oldest first) every summary must have, at most 700 characters of them."""
    return tuple(facts[place] for place in sorted(_fitting(facts, required_first(facts), _MUST_CHARS)))


def further_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return which others belong in a summary: with those of `required_facts` at most 3,000 characters."""
    order = required_first(facts)
    musts = _fitting(facts, order, _MUST_CHARS)
    room = _BELONG_CHARS - sum(len(facts[place].attributed_text) for place in musts)
    more = _fitting(facts, [place for place in order if place not in musts], room)
    return tuple(facts[place] for place in sorted(more))


def required_after_fold(shown: Sequence[Fact], added: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return what a fold's summary must have: the facts that its request asked for, then new ones of importance 3.

    `shown`: those of `required_facts` that still hold. All together within 700 characters.
    """
    room = _MUST_CHARS - sum(len(each.attributed_text) for each in shown)
    weighty = [fact for fact in added if fact.importance == 3]
    return (*shown, *(weighty[place] for place in _fitting(weighty, range(len(weighty)), room)))


def _fitting(facts: Sequence[Fact], order: Sequence[int], room: int) -> list[int]:
    """Return the places, in this order, of the facts that fit; one that is too long is left out."""
    chosen: list[int] = []
    for place in order:
        if len(facts[place].attributed_text) <= room:
            room -= len(facts[place].attributed_text)
            chosen.append(place)
    return chosen


def required_first(facts: Sequence[Fact]) -> list[int]:
    """Return the places of the facts of importance 3 among these (oldest first), the first to stay first."""
    weighty = [place for place, fact in enumerate(facts) if fact.importance == 3]
    lasting = [place for place in weighty if facts[place].kind is FactKind.LASTING]
    others = [place for place in weighty if facts[place].kind is not FactKind.LASTING]
    speakers = {name: name_words([name]) for name in dict.fromkeys(fact.speaker for fact in facts)}
    order: list[int] = []
    # The people that subjects name; hundreds of facts have few subjects.
    named: dict[str, str | None] = {}
    for places in (lasting, others):
        of_person: dict[str, list[int]] = defaultdict(list)
        for place in places:
            subject = facts[place].subject
            if subject not in named:
                said = name_words([subject])
                named[subject] = next((name for name, words in speakers.items() if words and words <= said), None)
            of_person[named[subject] or facts[place].speaker].append(place)
        order += _in_rounds([list(_from_both_ends(each)) for each in of_person.values()])
    return order


def _in_rounds(queues: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the first of each queue, then the second of each, and so on."""
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def _from_both_ends(places: Sequence[int]) -> Iterator[int]:
    """Yield the first place, the last, the second, the last but one and so on."""
    ends = [each for pair in zip(places, reversed(places), strict=True) for each in pair]
    yield from ends[: len(places)]
