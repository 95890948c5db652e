"""Decides which turns of a session go when a person's words are forgotten: their parts, and the bot's turns about them.

Pure. `restating` tells whether a text says the words again.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from compaction.language.terms import normalized_words, terms
from compaction.language.text import plain
from compaction.memory.quotations import names_any, words_of_name
from compaction.memory.restating import ForgottenWords
from compaction.model import TurnKind
from compaction.summary.port import REACH_TURNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Seq, Turn

# The bot's speaker id in turns; people have Discord's numbers.
_BOT_ID = "assistant"


def words_in_session(words: ForgottenWords, said: Sequence[Turn], person_id: str, *, spoke: bool) -> ForgottenWords:
    """Return the words without the names that mean somebody else in this session, and with the single words of the
    other names.

    `spoke`: the person spoke in it. Otherwise a name that somebody else says there may be anybody's. It takes time for
    each turn.
    """
    others = [part for turn in said if not is_of_bot(turn) for part in turn.parts if part.speaker_id != person_id]
    taken = {plain(part.speaker).casefold() for part in others}
    names = {name for name in words.names if plain(name).casefold() not in taken}
    called = {part.speaker for turn in said for part in turn.parts if part.speaker_id != person_id}
    taken_words = {word for name in called for word in normalized_words(name)}
    single = {word for name in names for word in words_of_name(name) if taken_words.isdisjoint(normalized_words(word))}
    if not spoke:
        names = {name for name in names if not any(names_any(part.text, {name}) for part in others)}
        single = {word for word in single if not any(names_any(part.text, {word}) for part in others)}
    return ForgottenWords(words.runs, frozenset(names), words.turns, frozenset(single))


def answers_to_forget(
    said: Sequence[Turn], theirs: Sequence[Turn], person_id: str, words: ForgottenWords, *, shown_at: float = inf
) -> list[Turn]:
    """Return the bot's turns that answer one of these turns, name the person, or say the words again.

    `said`: all turns of the session, in order. `shown_at`: when their screen was noted first, UTC epoch seconds.
    """
    seqs = {turn.seq for turn in theirs}
    first = min(seqs, default=None)
    # What other people have said so far. The bot may have taken a word from there.
    explained: set[str] = set()
    unanswered: Seq | None = None
    found: list[Turn] = []
    for turn in said:
        if not is_of_bot(turn):
            left = [part.text for part in turn.parts if turn.seq not in seqs or part.speaker_id != person_id]
            explained.update(term for text in left for term in terms(text))
            if turn.seq in seqs and turn.kind is TurnKind.SPEECH:
                unanswered = turn.seq
            continue
        if turn.seq in seqs:
            continue
        # Earlier versions did not store which turn a reply answers.
        replies = turn.answers in seqs or (
            turn.answers is None and unanswered is not None and turn.seq - unanswered <= REACH_TURNS
        )
        unanswered = None
        text = turn.text
        later = (first is not None and turn.seq > first) or turn.started_at >= shown_at
        if (
            (replies and turn.kind is TurnKind.ASSISTANT)
            or words.quoted_or_named_in(text)
            or (later and words.restated_in(text, explained))
        ):
            found.append(turn)
    return found


def has_part_of(turn: Turn, person_id: str) -> bool:
    """Return whether the person said a part of the turn."""
    return any(part.speaker_id == person_id for part in turn.parts)


def without_part_of(turn: Turn, person_id: str) -> Turn:
    """Return the turn with the words of other people only; a tombstone if there are none."""
    left = tuple(part for part in turn.parts if part.speaker_id != person_id)
    return replace(turn, parts=left, tombstone=not left)


def is_of_bot(turn: Turn) -> bool:
    """Return whether the bot said or did it. Some effects are sounds that people made."""
    return turn.kind is TurnKind.ASSISTANT or (
        turn.kind is TurnKind.EFFECT and any(part.speaker_id == _BOT_ID for part in turn.parts)
    )
