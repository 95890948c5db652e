"""Which of the bot's own words are worth keeping: those that say what nobody had told it. Pure.

Most of what it says repeats people, whose facts are kept already and by whom they are told; in its words they go stale
('just now, Ben said', 'on a screen 3 minutes ago'). COMPACTION.md: recalled text is never folded again. For the same
reason nothing that it says takes the place of what a person said: it may quote what has changed since, or be wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.claims import claim_of, without_reference
from compaction.language.stems import stem
from compaction.language.values import Kind, Value, values
from compaction.language.wording import durability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.language.claims import FactClaim
    from compaction.model import Fact
    from compaction.summary.port import KnownFact

# 'You said', 'Ben has told us', 'on a screen': what follows is that person's, or a note's.
_SOMEBODY = r"(?:(?!I\b)[^\W\d_a-z][\w'’-]*|[Yy]ou|[Hh]e|[Ss]he|[Tt]hey|[Ww]e|[Ss]ome(?:body|one))"
_REPORTS = re.compile(
    rf"^On (?:a|\S+['’]s) screen\b|"
    rf"\b{_SOMEBODY}(?: (?:has|have|had|also|just|already))? (?:said|told|mentioned|asked)\b"
)
# What stands before a quotation: 'On a screen 3 minutes ago: …'. A clock time has no space after its colon.
_FRAME = re.compile(r"^[^:]{1,80}:\s+(?=\S+\s+\S)")
# Of what a sentence of the bot's is about, so much may be other words than the fact has that it repeats.
_OTHER_WORDS = 0.25
_LEAST_SHARED = 2


@dataclass(frozen=True, slots=True)
class PeopleClaims:
    """What people told, as claims, and the words of everybody's names."""

    claims: tuple[FactClaim, ...]
    roster: frozenset[str]

    def is_new(self, fact: Fact) -> bool:
        """Return whether a fact in the bot's words says something definite that nobody told it."""
        own = without_reference(fact.text)
        if _REPORTS.search(own) is not None or not is_definite(own, self.roster):
            return False
        claim = claim_of(replace(fact, text=_FRAME.sub("", fact.text, count=1)))
        return not any(_repeats(claim, told, self.roster) for told in self.claims)


def is_definite(text: str, roster: frozenset[str]) -> bool:
    """Return whether a sentence has a figure, a day, a time or a name of somebody who isn't there, or the cues of what
    lasts: 'I have heard nothing about that, Ada' has neither. `roster`: words of names."""
    return bool(_without_names(values(text), roster)) or durability(text) > 1.0


def supersede_own_facts(fact: Fact, known: Iterable[KnownFact]) -> Fact:
    """Return a fact in the bot's words that supersedes none but the bot's own."""
    own = {each.ref for each in known if each.claim.fact.speaker == fact.speaker}
    return replace(fact, supersedes=tuple(ref for ref in fact.supersedes if ref in own))


def _repeats(own: FactClaim, told: FactClaim, roster: frozenset[str]) -> bool:
    """Return whether all of a sentence's values and nearly all of its subject were told: 'Ben brings the tent, Ada'
    after Ben's 'I bring the tent'. One word alone is of many things."""
    own_values = _without_names(own.values, roster)
    subject = own.core - {stem(word) for word in roster}
    shared = subject & told.core
    return (
        own_values <= told.values
        and len(shared) + len(own_values) >= _LEAST_SHARED
        and len(subject - shared) <= _OTHER_WORDS * len(subject)
    )


def _without_names(found: frozenset[Value], roster: frozenset[str]) -> frozenset[Value]:
    return found - {Value(Kind.NAME, word) for word in roster}
