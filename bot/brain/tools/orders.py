"""Finds out whether somebody ordered a tool with effects. Pure, and sees nothing but the person's words.

What counts is the structure of what was said, clause by clause (`order_clauses`). The order's verb and its object then
choose the tool. Where the structure or the tool is doubtful, the answer is `PERHAPS`, and the bot asks aloud first.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from bot.brain.tools import order_words
from bot.brain.tools.order_clauses import ClauseKind, clauses_in, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.brain.tools.order_clauses import Clause, ToolFit
    from bot.brain.tools.tool import RoomTool

# Words of this length or more name a tool also as the end of a compound.
_COMPOUND_CHARS = 4


class Demand(Enum):
    """Whether the asker's words demand a tool."""

    ORDERED = auto()
    PERHAPS = auto()
    NOT = auto()


def demand_for(tool: RoomTool, said: str, rivals: Iterable[RoomTool] = ()) -> Demand:
    """Return whether `said` demands `tool`. `rivals`: all tools with effects that could be meant instead.

    The bot's own name should be left out of `said`. Each sentence counts for itself.
    """
    clauses = clauses_in(said)
    if clauses is None:
        # Neither English nor German.
        return Demand.PERHAPS
    others = [rival for rival in rivals if rival.name != tool.name]
    demand = Demand.NOT
    for clause in clauses:
        match clause.kind:
            case ClauseKind.ORDER:
                fit = _fit(tool, clause)
                if fit is not None and all(fit > (_fit(rival, clause) or (False, 0)) for rival in others):
                    return Demand.ORDERED
                if _mentions(tool, clause) or not any(_mentions(rival, clause) for rival in others):
                    # An order that means none of the tools, as far as its words tell, may mean any.
                    demand = Demand.PERHAPS
            case ClauseKind.UNSURE if _mentions(tool, clause):
                demand = Demand.PERHAPS
            case _:
                pass
    return demand


def says_yes(said: str, tool: RoomTool) -> bool:
    """Return whether `said` is nothing but a yes to the question whether to use `tool`: 'yes', 'sure, post it'."""
    if "?" in said:
        return False
    bare, phrases = order_words.GO_AHEAD.subn("", " ".join(tokens_of(said)))
    words = bare.split()
    own = {word.casefold() for word in tool.words}
    agrees = phrases > 0 or any(word in order_words.YES for word in words)
    groups = _groups(own)
    return agrees and all(
        word in order_words.YES
        or word in order_words.BESIDE_YES
        or _names(word, own)
        or bool(order_words.verb_groups(word) & groups)
        for word in words
    )


def _fit(tool: RoomTool, clause: Clause) -> ToolFit | None:
    """Return how well the order fits `tool`, or None if it may not be meant."""
    if tool.words not in clause.fits:
        clause.fits[tool.words] = _fit_words(tool.words, clause)
    return clause.fits[tool.words]


def _fit_words(words: Iterable[str], clause: Clause) -> ToolFit | None:
    own = {word.casefold() for word in words}
    exact = _names(clause.verb, own)
    if not (exact or clause.groups & _groups(own)):
        return None
    named = sum(any(_names(word, {noun}) for word in clause.rest) for noun in own)
    # 'Post it.': the object was spoken of before.
    pointed = (
        exact
        and not order_words.PRONOUNS.isdisjoint(clause.rest)
        and all(word in order_words.POINTING for word in clause.rest)
    )
    return (exact, named) if named or pointed else None


def _mentions(tool: RoomTool, clause: Clause) -> bool:
    if tool.words not in clause.mentioned:
        own = {word.casefold() for word in tool.words}
        groups = _groups(own)
        found = any(_names(word, own) or bool(_doing(word) & groups) for word in clause.mentions)
        clause.mentioned[tool.words] = found
    return clause.mentioned[tool.words]


def _groups(words: Iterable[str]) -> frozenset[str]:
    return frozenset(group for word in words for group in order_words.verb_groups(word))


def _doing(word: str) -> frozenset[str]:
    return order_words.verb_groups(word) | order_words.english_participle(word)


def _names(word: str, nouns: Iterable[str]) -> bool:
    """Return whether `word` is one of `nouns`, its plural, or a compound that ends with it ('email')."""
    return any(
        word in {noun, f"{noun}s", noun.removesuffix("s")} or (len(noun) >= _COMPOUND_CHARS and word.endswith(noun))
        for noun in nouns
    )
