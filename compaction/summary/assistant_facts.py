"""Decides which of the bot's own sentences become facts: only those with something that no person has said. Pure.

Most of what the bot says repeats people, whose own facts are kept already. The bot's wording also goes stale ('just
now, Ben said'). A sentence of the bot never supersedes what a person said, because the bot may quote something outdated
or be wrong.
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

# 'You said', 'Ben has told us', 'on a screen': the rest of such a sentence comes from that person or from a note.
_SOMEBODY = r"(?:(?!I\b)[^\W\d_a-z][\w'’-]*|[Yy]ou|[Hh]e|[Ss]he|[Tt]hey|[Ww]e|[Ss]ome(?:body|one))"
_REPORTS = re.compile(
    rf"^On (?:a|\S+['’]s) screen\b|"
    rf"\b{_SOMEBODY}(?: (?:has|have|had|also|just|already))? (?:said|told|mentioned|asked)\b"
)
# An introduction before a quotation: 'On a screen 3 minutes ago: …'. It does not match clock times, which have no space
# after the colon.
_FRAME = re.compile(r"^[^:]{1,80}:\s+(?=\S+\s+\S)")
# A sentence of the bot repeats a fact if at most this share of the sentence's subject words is missing from the fact.
_OTHER_WORDS = 0.25
_LEAST_SHARED = 2


@dataclass(frozen=True, slots=True)
class PeopleClaims:
    """What people said, as claims, and the words of everybody's names (`roster`)."""

    claims: tuple[FactClaim, ...]
    roster: frozenset[str]

    def is_new(self, fact: Fact) -> bool:
        """Return whether a fact from the bot says something definite that no person has said."""
        own = without_reference(fact.text)
        if _REPORTS.search(own) is not None or not is_definite(own, self.roster):
            return False
        claim = claim_of(replace(fact, text=_FRAME.sub("", fact.text, count=1)))
        return not any(_repeats(claim, told, self.roster) for told in self.claims)


def is_definite(text: str, roster: frozenset[str]) -> bool:
    """Return whether a sentence has a figure, a day, a time, the name of somebody absent, or a cue of a lasting fact.

    'I have heard nothing about that, Ada' has none of these. `roster`: words of the names of the people present.
    """
    return bool(_without_names(values(text), roster)) or durability(text) > 1.0


def supersede_own_facts(fact: Fact, known: Iterable[KnownFact]) -> Fact:
    """Return a fact of the bot that supersedes only other facts of the bot."""
    own = {each.ref for each in known if each.claim.fact.speaker == fact.speaker}
    return replace(fact, supersedes=tuple(ref for ref in fact.supersedes if ref in own))


def _repeats(own: FactClaim, told: FactClaim, roster: frozenset[str]) -> bool:
    """Return whether the bot's sentence (`own`) repeats what a person said (`told`).

    This is so if the person's claim has all values and nearly all subject words of the bot's sentence. 'Ben brings the
    tent, Ada' repeats Ben's 'I bring the tent'. One shared word is not enough.
    """
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
