"""Records a finished reply: the part that was played, and a message in the channel if it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.texts.text import Text, joined, verbatim
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from bot.brain.reply import Question, Reply
    from bot.brain.tools.toolbox import Toolbox
    from bot.clock import Clock
    from bot.participation.participation import Participation
    from bot.room.conversation.turn_recorder import TurnRecorder

log = structlog.get_logger()

UNSPOKEN = Text("I wanted to say: {words}")


class FailureMessages:
    """The messages about failed replies in one room's channel. Pure.

    Words that could not be spoken are written each time, because somebody waits for them, and so is the reason why
    nothing at all was heard. Who has heard an apology reads its reason once until a reply is spoken again. Otherwise a
    voice or a model that fails for an evening would fill the channel with it.
    """

    def __init__(self) -> None:
        self._written_reasons: set[str] = set()

    def format(self, reply: Reply) -> Text:
        """Return the message about a finished reply; empty if it did not fail."""
        if reply.failure is None:
            if reply.text:
                self._written_reasons.clear()
            return verbatim("")
        is_known = reply.failure in self._written_reasons
        self._written_reasons.add(reply.failure)
        if reply.unsaid:
            words = UNSPOKEN.fill(words=reply.unsaid)
            return words if is_known else joined((reply.failure, words), "\n")
        return verbatim("") if is_known and reply.text else reply.failure


class ReplyRecorder:
    """Records the replies of one room. `toolbox`: knows the tool calls of each reply."""

    def __init__(
        self,
        participation: Participation,
        turn_recorder: TurnRecorder,
        *,
        toolbox: Toolbox,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._toolbox = toolbox
        self._clock = clock
        self._observe = observe
        self._failure_messages = FailureMessages()
        # How many of the toolbox's steps are paid for.
        self._steps_counted = 0

    async def record(self, reply: Reply) -> None:
        """Count the cost of a finished reply, record the part that was played or written, and have its failure written
        into the channel.
        """
        asker_id = reply.question.asker_id
        delivered = " ".join(filter(None, (reply.text, reply.unsaid)))
        self._participation.on_reply_ended(
            int(asker_id) if asker_id else None,
            delivered,
            tokens=estimate_text_tokens(delivered),
            spoken_s=0.0 if reply.first_audio_at is None else reply.ended_at - reply.first_audio_at,
            skipped=reply.skipped,
            steps=self._new_steps(),
        )
        if reply.skipped:
            log.info("reply_skipped", answer_to=reply.question.turn.seq)
        if reply.failure is not None:
            self._observe(events.Problem("reply", reply.failure, self._clock.monotonic()))
        if reply.text and reply.first_audio_at is not None:
            await self._record_spoken(reply, reply.first_audio_at)
        if reply.unsaid:
            await self._turn_recorder.record_written_reply(reply.question, reply.unsaid)
        # Not waited for: Discord may take seconds, and the next answer must not.
        if message := self._failure_messages.format(reply):
            self._participation.notify(message, repeats=bool(reply.unsaid))
        self._observe(_finished(reply))

    async def record_written(self, question: Question, text: str) -> None:
        """Count the cost of an answer in writing and record it. `text`: the part that people can read."""
        self._participation.on_reply_ended(
            None, text, tokens=estimate_text_tokens(text), spoken_s=0.0, skipped=False, steps=self._new_steps()
        )
        if text:
            await self._turn_recorder.record_written_reply(question, text)

    def _new_steps(self) -> int:
        """Return how many steps with tool calls were recorded since the last reply. Several may answer one turn."""
        recorded = self._toolbox.exchanges.recorded
        new, self._steps_counted = recorded - self._steps_counted, recorded
        return new

    async def _record_spoken(self, reply: Reply, first_audio_at: float) -> None:
        await self._turn_recorder.record_reply(reply, first_audio_at)
        self._observe(
            events.ReplySpoken(
                text=reply.text,
                answer_to=reply.question.turn.seq,
                utterance_id=reply.question.utterance_id,
                first_audio_at=first_audio_at,
                ended_at=reply.ended_at,
                interrupted=reply.interrupted,
                model_first_token_ms=reply.model_first_token_ms,
                synthesis_first_audio_ms=reply.synthesis_first_audio_ms,
            )
        )


def _finished(reply: Reply) -> events.ReplyFinished:
    token_ms, synthesis_ms = reply.model_first_token_ms, reply.synthesis_first_audio_ms
    return events.ReplyFinished(
        answer_to=reply.question.turn.seq,
        outcome=_outcome(reply),
        asked_at=reply.question.ended_at,
        begun_at=reply.begun_at,
        first_token_at=None if token_ms is None else reply.begun_at + token_ms / 1000,
        synthesis_s=None if synthesis_ms is None else synthesis_ms / 1000,
        first_audio_at=reply.first_audio_at,
        ended_at=reply.ended_at,
    )


def _outcome(reply: Reply) -> events.ReplyOutcome:
    if reply.skipped:
        return events.ReplyOutcome.SKIPPED
    if reply.unheard:
        return events.ReplyOutcome.UNSPOKEN
    if reply.failure is not None:
        return events.ReplyOutcome.FAILED
    if not reply.text:
        return events.ReplyOutcome.SILENT
    return events.ReplyOutcome.INTERRUPTED if reply.interrupted else events.ReplyOutcome.SPOKEN
