"""Extracts the statements from a found turn: the words of each speaker, and the answers to their questions. Pure.

A quote shows a turn with its neighbours, so the quote of a question also contains the answer that follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.language.correction import Statement, asks, may_answer
from compaction.model import Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.memory.passage import Passage

# An answer may come up to this many turns after its question.
_ANSWERED_WITHIN = 2


def statements_in_quote(passage: Passage, own: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements of the found turn (`own`) and the answers to the questions in it."""
    found = [each for each in own if not asks(each.text)]
    for question in own:
        if asks(question.text):
            answers = (
                answer
                for turn in passage.around
                if question.seq < turn.seq <= question.seq + _ANSWERED_WITHIN
                for answer in statements_in_turn(passage, turn)
            )
            found += [replace(each, answered=question.text) for each in answers if may_answer(each.text)]
    return tuple(found)


def statements_in_turn(passage: Passage, source: object) -> tuple[Statement, ...]:
    """Return one statement per speaker of `source`, a turn of the passage. An answer is returned with its question.

    Returns nothing if `source` is not a turn, or not the speech of a person.
    """
    if not isinstance(source, Turn) or source.kind is not TurnKind.SPEECH:
        return ()
    before = [each for each in passage.around if each.seq == source.seq - 1]
    question = " ".join(part.text for each in before for part in each.parts)
    asked = question if question and asks(question) else ""
    texts: dict[str, list[str]] = {}
    for part in source.parts:
        texts.setdefault(part.speaker_id, []).append(part.text)
    return tuple(
        Statement(
            passage.session_id,
            source.seq,
            source.started_at,
            speaker_id,
            "\n".join(said),
            asked if asked and may_answer("\n".join(said)) else "",
        )
        for speaker_id, said in texts.items()
    )
