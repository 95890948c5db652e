"""Which turns are outdated or answered when a fact has taken an older one's place. Pure.

A model lets a fact supersede another for many reasons: a value has changed, but also a question was answered, a game
went on, or one sentence now says what two said. Only the first makes what was said wrong, and only where the turn
says what has changed: 'They said six hundred, ready on the first' is outdated by another day, 'six hundred' is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.language.meaning import NO_NAMES, contradicts, meaning, replaces
from compaction.language.terms import normalized_words
from compaction.language.text import sentences
from compaction.model import FactKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compaction.model import Fact, Seq, Turn

# What such facts say goes on being so. Of the others ('who bakes?', 'two eggs of six') the next one is the answer, or
# what came after; neither takes back what was said.
_LASTING_KINDS = frozenset({FactKind.LASTING, FactKind.DECISION, FactKind.OTHER})


def outdated_turns(old: Fact, new: Fact, said: Mapping[Seq, Turn]) -> tuple[Seq, ...]:
    """Return the turns of `old` that say what is otherwise since `new`, which supersedes it; of an open one, those that
    ask what `new` answers.

    `said`: the turns of `old`. All turns of a fact are outdated by one in somebody's own words: such a one supersedes
    only what it replaces (`replaces`).
    """
    if new.quoted:
        return old.turns
    if old.kind is FactKind.OPEN:
        return tuple(seq for seq in old.turns if seq in said and asks(said[seq]))
    if old.kind not in _LASTING_KINDS or new.kind not in _LASTING_KINDS:
        return ()
    known = _names_of(old) | _names_of(new)
    before, after = meaning(old.text, known), meaning(new.text, known)
    if contradicts(after, before) or replaces(after, before, same_speaker=True):
        return old.turns
    had, has = before.values | before.names, after.values | after.names
    if after.announces and has - had:
        # 'Ludwig drives, since Marisol is out' names the old one too.
        return old.turns
    lost = before.topics - after.topics if had == has else had - has
    if lost and len(old.turns) == 1:
        return old.turns
    return tuple(seq for seq in old.turns if seq in said and not lost.isdisjoint(_said_in(said[seq], known)))


def asks(turn: Turn) -> bool:
    """Return whether a turn ends in a question, so that nothing in it can be corrected, only answered."""
    told = [sentence for part in turn.parts for sentence in sentences(part.text)]
    return bool(told) and meaning(told[-1]).asks


def _names_of(fact: Fact) -> frozenset[str]:
    return frozenset(normalized_words(f"{fact.subject} {fact.speaker}"))


def _said_in(turn: Turn, known: frozenset[str]) -> frozenset[str]:
    """Return what a turn speaks of, and who says it: 'I can do March' is about whoever says so."""
    told = [meaning(sentence, known).about for part in turn.parts for sentence in sentences(part.text)]
    speakers = [frozenset(normalized_words(part.speaker)) & known for part in turn.parts]
    return NO_NAMES.union(*told, *speakers)
