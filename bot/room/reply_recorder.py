"""What becomes of an answer that is over: it is recorded as far as it was heard, and what failed is told in writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.room.reply_failures import ReplyFailures
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from bot.brain.reply import Reply
    from bot.brain.tools.exchanges import ToolExchanges
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.participation.part import Participation
    from bot.room.turn_recorder import TurnRecorder

log = structlog.get_logger()


class ReplyRecorder:
    """The answers of one room. `exchanges`: what tools were asked on the way of each."""

    def __init__(
        self,
        place: Place,
        part: Participation,
        minutes: TurnRecorder,
        *,
        exchanges: ToolExchanges,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._place = place
        self._part = part
        self._minutes = minutes
        self._exchanges = exchanges
        self._clock = clock
        self._observe = observe
        self._excuses = ReplyFailures()

    async def take(self, reply: Reply) -> None:
        """Record what was heard of an answer, write what failed into the channel, and record what is read there."""
        asker_id = reply.question.asker_id
        told = " ".join(filter(None, (reply.text, reply.unsaid)))
        self._part.answered(
            int(asker_id) if asker_id else None,
            told,
            tokens=estimate_text_tokens(told),
            spoken_s=0.0 if reply.first_audio_at is None else reply.ended_at - reply.first_audio_at,
            skipped=reply.skipped,
            steps=self._exchanges.steps(reply.question.turn.seq),
        )
        if reply.skipped:
            log.info("reply_skipped", answer_to=reply.question.turn.seq)
        if reply.failure is not None:
            self._observe(events.Problem("reply", reply.failure, self._clock.monotonic()))
        if excuse := self._excuses.of(reply):
            await self._place.write(excuse)
        if reply.text and reply.first_audio_at is not None:
            await self._spoken(reply, reply.first_audio_at)
        if reply.unsaid:
            await self._minutes.wrote(reply)

    async def _spoken(self, reply: Reply, first_audio_at: float) -> None:
        await self._minutes.answered(reply, first_audio_at)
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
