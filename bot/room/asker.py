"""On whose behalf the answer to a question is given: who asked it, and in which words of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.permission import NOBODY, Asker
from compaction.model import TurnKind

if TYPE_CHECKING:
    from bot.brain.reply import Question
    from bot.channel.participants import Participants


def asker_of(question: Question, company: Participants) -> Asker:
    """Return who asked: the one whose words are answered, or nobody where that is not one person.

    Several people may speak in one turn; then only the one whom the question names counts, and only their words.
    """
    turn = question.turn
    if turn.kind is not TurnKind.SPEECH:
        return NOBODY
    speakers = {part.speaker_id for part in turn.parts}
    asker_id = question.asker_id
    if asker_id is None and len(speakers) == 1:
        (asker_id,) = speakers
    if asker_id not in speakers or not asker_id.isdecimal():
        return NOBODY
    person = company.find(int(asker_id))
    parts = [part for part in turn.parts if part.speaker_id == asker_id]
    return Asker(
        user_id=int(asker_id),
        name=parts[-1].speaker,
        words=" ".join(part.text for part in parts),
        present=person is not None and not person.is_bot,
        moderator=person is not None and person.is_moderator,
    )
