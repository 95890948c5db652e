"""What a fact claims, read off its words once, and whether a later claim takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.model import Slot
from compaction.wording import (
    adds_to_something,
    announces_change,
    change_words,
    concepts,
    speaks_of_oneself,
    states_how_it_is,
)

if TYPE_CHECKING:
    from compaction.model import Fact
    from compaction.wording import Concepts

# A correction is about what the old sentence was about: more than this share of their plain words, or nearly all
# of them when nothing announces the change.
_SAME_TOPIC = 0.5
_SAME_TOPIC_UNANNOUNCED = 0.75


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact with what can be told of its words. `core` are its topics without the words that announce a change."""

    fact: Fact
    about: Concepts
    values: frozenset[str]
    core: frozenset[str]
    announces_change: bool
    adds: bool
    of_oneself: bool
    states: bool


def claim_of(fact: Fact) -> Claim:
    """Return the claim that a fact makes."""
    about = concepts(fact.text)
    return Claim(
        fact=fact,
        about=about,
        values=about.values,
        core=about.topics - change_words(fact.text),
        announces_change=announces_change(fact.text),
        adds=adds_to_something(fact.text),
        of_oneself=speaks_of_oneself(fact.text),
        states=states_how_it_is(fact.text),
    )


def corrects(new: Claim, old: Claim) -> bool:
    """Return whether `new`, said later, gives another value for what `old` says.

    Shy, because a fact that is taken for corrected is lost to the summary: both must have a value that the other
    lacks and be about the same thing in nearly the same words. Without an announced change both must state how
    something is ('the code is …', not 'we scored …') and differ in figures or in names, not in both. What people
    say of themselves is corrected by themselves alone; open questions and what is on a screen correct nothing.
    """
    if new.adds or new.core.isdisjoint(old.core):
        return False
    shared, values, before = new.core & old.core, new.values, old.values
    if values <= before or before <= values:
        return False
    if new.fact.note_id is not None or old.fact.note_id is not None or Slot.THREAD in (new.fact.slot, old.fact.slot):
        return False
    if new.fact.speaker != old.fact.speaker and (new.of_oneself or old.of_oneself):
        return False
    alike = len(shared) / len(new.core | old.core)
    if new.announces_change:
        return alike > _SAME_TOPIC
    differs_once = new.about.names == old.about.names or new.about.figures == old.about.figures
    enough = len(shared) + len(values & before) >= 2 and alike >= _SAME_TOPIC_UNANNOUNCED
    return new.states and old.states and differs_once and enough
