"""Prepares the reply to what somebody says in a pause that may be its end. `turn_taking` decides when that is certain.

The memory is searched, and a preemptive reply begins if the words sound and read finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.room.conversation.preemptive_reply import reads_finished
from bot.room.conversation.turn_taking import question_about

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.reply import Replier
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from bot.room.conversation.preemptive_reply import PreemptiveReply
    from bot.room.conversation.turn_recorder import TurnRecorder
    from compaction.session import SessionMemory


class ReplyPreparation:
    """The preparation of one room's replies.

    `quoting`: searches `memory`; None if there is no search. `reply_language`: returns the language to answer a person
    in. `may_prepare`: returns whether replies may be prepared now. `starts_early`: a prepared reply is made up to its
    first sound.
    """

    def __init__(
        self,
        *,
        memory: SessionMemory,
        quoting: QuoteFinder | None,
        participation: Participation,
        turn_recorder: TurnRecorder,
        replier: Replier,
        preemptive_reply: PreemptiveReply,
        reply_language: Callable[[int], str],
        may_prepare: Callable[[], bool],
        starts_early: bool,
    ) -> None:
        self._memory = memory
        self._quoting = quoting
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._replier = replier
        self._preemptive_reply = preemptive_reply
        self._reply_language = reply_language
        self._may_prepare = may_prepare
        self._starts_early = starts_early

    def on_tentative(self, spoken: SpokenText, likely_finished: bool) -> None:
        """Prepare a reply to an utterance that may not be over, if it would be answered.

        `likely_finished`: it sounds finished, or the pause lasts.
        """
        if not self._may_prepare() or self._participation.drops(spoken.user_id, started_at=spoken.started_at):
            return
        decision = self._participation.preview_decision(spoken)
        if not decision.answer:
            return
        turn = self._turn_recorder.preview_speech(spoken)
        if self._quoting is not None:
            self._quoting.prefetch(turn, self._memory)
        if self._starts_early and likely_finished and reads_finished(spoken.text) and not self._replier.busy:
            language = self._reply_language(spoken.user_id)
            self._preemptive_reply.start(question_about(turn, spoken, decision, language=language))
