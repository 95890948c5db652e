"""Turn-taking: what people say becomes turns, and each turn is answered or not.

`bot.participation` decides which. In a pause that may be the end, the reply begins and is held: `TurnTaking` is what
answers such speech.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.question import Spoken
from bot.brain.reply import elapsed_ms
from bot.dropped_sounds import OPTED_OUT
from voice.listening.pause import PauseVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.decider import Decision
    from bot.brain.replier import Replier
    from bot.brain.reply_life import ReplyStage
    from bot.clock import Clock
    from bot.conversation.conversation import Conversation
    from bot.conversation.transcriber import Transcriber
    from bot.conversation.turn_recorder import TurnRecorder
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from compaction.model import Turn

log = structlog.get_logger()

# How long a turn waits for the reply that it interrupted to be recorded before it.
RECORD_REPLY_S = 2.0


class TurnTaking:
    """The turn-taking of one room, for `talk`, which is asked to begin the reply to each question."""

    def __init__(
        self,
        *,
        participation: Participation,
        turn_recorder: TurnRecorder,
        replier: Replier,
        talk: Conversation,
        transcriber: Transcriber,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._replier = replier
        self._talk = talk
        self._transcriber = transcriber
        self._clock = clock
        self._observe = observe

    def preview(self, spoken: SpokenText | None, beside: Sequence[SpokenText]) -> PauseVerdict:
        """Return what would become of the words of a pause if they were a turn now, and begin the reply to them."""
        if self._replier.speaking:
            # Whoever speaks over the bot is not kept waiting: it may have to stop, or to go on.
            return PauseVerdict.DUE
        if spoken is None:
            return PauseVerdict.UNANSWERED
        if self._participation.asks_for_silence(spoken.user_id, spoken.text):
            return PauseVerdict.DUE
        before = self._replier.begun_by(spoken.user_id, ended_at=spoken.ended_at)
        decision = self._participation.preview_decision(spoken, begun=None if before is None else before.decision)
        if not decision.answer:
            return PauseVerdict.UNANSWERED
        if self._replier.answers_in_speech:
            return PauseVerdict.DUE
        language = self._transcriber.reply_language(spoken)
        may_use = self._participation.words.may_use
        group = (*(each for each in beside if may_use(each.user_id, since=each.started_at)), spoken)
        turn = self._turn_recorder.preview_speech(sorted(group, key=attrgetter("started_at")))
        question = question_about(turn, spoken, decision, language=language, before=before)
        return PauseVerdict.HELD if self._replier.hold(question) else PauseVerdict.DUE

    def release(self, spoken: SpokenText, beside: Sequence[SpokenText]) -> PauseVerdict:
        """Let the reply to the words sound, if they would still be answered alike."""
        verdict = self.preview(spoken, beside)
        return self._replier.release() if verdict is PauseVerdict.HELD else verdict

    def stage_of(self, utterance_id: str) -> ReplyStage | None:
        return self._replier.stage_of(utterance_id)

    def withdraw(self, utterance_id: str) -> None:
        """Drop the reply to speech that goes on or may not be used."""
        self._replier.withdraw("went_on", utterance_id=utterance_id)

    async def on_group(self, group: tuple[SpokenText, ...]) -> None:
        """Decide whether to answer a group of utterances, record it as a turn, and write its log line: the latency of
        every stage of the utterance that the decision is about, and the decision.
        """
        await self._replier.wait_until_recorded(within_s=RECORD_REPLY_S)
        group = tuple(spoken for spoken in group if not self._is_dropped(spoken))
        if not group:
            return
        released_at = self._clock.monotonic()
        # First, because the turn is stored with it.
        halves = {
            each.utterance.id: half
            for each in group
            if (half := self._replier.begun_by(each.user_id, ended_at=each.ended_at)) is not None
        }
        spoken, decision = self._participation.choose_utterance(
            group, released=self._replier.released, begun={each: half.decision for each, half in halves.items()}
        )
        turn = await self._turn_recorder.record_speech(group, called=decision.for_bot)
        if turn is None:
            self._withdraw_all(group)
            return
        stored_at = self._clock.monotonic()
        decision = self._participation.confirm(decision, spoken.user_id, started_at=spoken.started_at)
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
        if decision.for_bot or decision.answer:
            # They have said by now what they want.
            self._replier.unanswered.drop_of(spoken.user_id)
        for other in group:
            self._keep_whole(turn, other, halves.get(other.utterance.id), answered=spoken)
        if decision.answer:
            before = halves.get(spoken.utterance.id)
            language = self._transcriber.reply_language(spoken)
            question = question_about(turn, spoken, decision, language=language, before=before)
            if decision.goes_on and before is not None:
                left_out = len(before.turns) + 1 - len(question.turns)
                log.info("question_goes_on", seq=turn.seq, turn_count=len(question.turns), left_out=left_out)
            self._talk.ask(question)
        else:
            self._withdraw_all(group)
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
            group_ms=elapsed_ms(spoken.complete_at, released_at),
            store_ms=elapsed_ms(released_at, stored_at),
            answers=decision.answer,
            reason=decision.reason.value,
            supersedes=decision.supersedes,
            may_skip=decision.may_skip,
        )

    def _keep_whole(self, turn: Turn, other: SpokenText, before: Spoken | None, *, answered: SpokenText) -> None:
        """Keep the whole question of somebody who goes on in the same turn as the one who is `answered` first."""
        if before is None or other.user_id == answered.user_id:
            return
        decision = self._participation.preview_decision(other, begun=before.decision)
        if decision.goes_on:
            language = self._transcriber.reply_language(other)
            question = question_about(turn, other, decision, language=language, before=before)
            self._replier.unanswered.keep(question, now=self._clock.monotonic())

    def _withdraw_all(self, group: Sequence[SpokenText]) -> None:
        for spoken in group:
            self._replier.withdraw("not_answered", utterance_id=spoken.utterance.id)

    def _is_dropped(self, spoken: SpokenText) -> bool:
        """Return whether words become no turn, because their person opted out or was forgotten; report it if so."""
        if self._participation.words.may_use(spoken.user_id, since=spoken.started_at):
            return False
        self.withdraw(spoken.utterance.id)
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


def question_about(
    turn: Turn, spoken: SpokenText, decision: Decision, *, language: str, before: Spoken | None = None
) -> Spoken:
    """Return what `spoken`, an utterance of `turn`, asks the bot. `language`: the one to answer in. `before`: the
    beginning of the question, if the decision is that these words go on with it.
    """
    question = Spoken(turn, spoken.utterance.id, spoken.ended_at, spoken.user_id, decision, language)
    return question if before is None or not decision.goes_on else question.continues(before)
