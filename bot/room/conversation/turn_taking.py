"""Turn-taking: what people say becomes turns, and each turn is answered or not.

`bot.participation` decides which. In a pause that may be the end a preemptive reply begins, if the words
sound and read finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.reply import Question
from bot.dropped_sounds import OPTED_OUT
from bot.room.conversation.reply_source import reads_finished

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.brain.decider import Decision
    from bot.brain.replier import Replier
    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from bot.room.conversation.reply_source import ReplySource
    from bot.room.conversation.turn_recorder import TurnRecorder
    from compaction.model import Turn

log = structlog.get_logger()

# How long a turn waits for the reply that it interrupted to be recorded before it.
RECORD_REPLY_S = 2.0


class TurnTaking:
    """The turn-taking of one room.

    `ask`: begins the reply to a question. `reply_language`: returns the language to answer a person in.
    `may_prepare`: returns whether replies may be prepared now.
    """

    def __init__(
        self,
        *,
        participation: Participation,
        turn_recorder: TurnRecorder,
        replier: Replier,
        replies: ReplySource,
        ask: Callable[[Question], None],
        reply_language: Callable[[int], str],
        may_prepare: Callable[[], bool],
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._replier = replier
        self._replies = replies
        self._ask = ask
        self._reply_language = reply_language
        self._may_prepare = may_prepare
        self._clock = clock
        self._observe = observe

    def on_tentative(self, spoken: SpokenText, likely_finished: bool) -> None:
        """Prepare a reply to an utterance that may not be over, if it would be answered.

        `likely_finished`: it sounds finished, or the pause lasts.
        """
        if not likely_finished or not reads_finished(spoken.text) or self._replier.busy or not self._may_prepare():
            return
        if self._participation.drops(spoken.user_id, started_at=spoken.started_at):
            return
        decision = self._participation.preview_decision(spoken)
        if decision.answer:
            turn = self._turn_recorder.preview_speech(spoken)
            language = self._reply_language(spoken.user_id)
            self._replies.start(question_about(turn, spoken, decision, language=language))

    async def on_group(self, group: tuple[SpokenText, ...]) -> None:
        """Record a group of utterances as a turn, decide whether to answer it, and write its log line: the latency of
        every stage of the utterance that the decision is about, and the decision.
        """
        await self._replier.wait_until_recorded(within_s=RECORD_REPLY_S)
        group = tuple(spoken for spoken in group if not self._is_dropped(spoken))
        if not group:
            return
        released_at = self._clock.monotonic()
        turn = await self._turn_recorder.record_speech(group)
        if turn is None:
            return
        stored_at = self._clock.monotonic()
        spoken, decision = self._participation.choose_utterance(group)
        self._observe(
            events.TurnDecided(
                turn.seq,
                spoken,
                answers=decision.answer,
                reason=decision.reason.value,
                released_at=released_at,
                stored_at=stored_at,
                at=self._clock.monotonic(),
            )
        )
        if decision.answer:
            self._ask(question_about(turn, spoken, decision, language=self._reply_language(spoken.user_id)))
        else:
            self._replies.discard("not_answered")
        log.info(
            "turn_recorded",
            seq=turn.seq,
            kind=turn.kind.value,
            speaker_id=spoken.user_id,
            speaker_count=len({each.user_id for each in group}),
            utterance_id=spoken.utterance.id,
            duration_s=round(spoken.ended_at - spoken.started_at, 2),
            char_count=sum(len(each.text) for each in group),
            **spoken.stages_ms,
            group_ms=_ms(released_at - spoken.text_at),
            store_ms=_ms(stored_at - released_at),
            answers=decision.answer,
            reason=decision.reason.value,
            supersedes=decision.supersedes,
            may_skip=decision.may_skip,
        )

    def _is_dropped(self, spoken: SpokenText) -> bool:
        """Return whether words become no turn, because their person opted out or was forgotten; report it if so."""
        if not self._participation.drops(spoken.user_id, started_at=spoken.started_at):
            return False
        self._observe(
            events.SpeechDropped(
                spoken.utterance.id,
                spoken.user_id,
                reason=OPTED_OUT,
                text="",
                started_at=spoken.started_at,
                ended_at=spoken.ended_at,
                at=self._clock.monotonic(),
            )
        )
        return True


def question_about(turn: Turn, spoken: SpokenText, decision: Decision, *, language: str) -> Question:
    """Return what `spoken`, an utterance of `turn`, asks the bot. `language`: the one to answer in."""
    return Question(
        turn,
        utterance_id=spoken.utterance.id,
        ended_at=spoken.ended_at,
        asker_id=str(spoken.user_id),
        reason=decision.reason,
        may_skip=decision.may_skip,
        unaided=decision.unaided,
        language=language,
    )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
