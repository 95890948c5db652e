"""Turn-taking: what people say becomes turns, and each turn is answered or not.

`bot.participation` decides which. In a pause that may be the end of what somebody says, a reply is prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.brain.reply import Question
from bot.dropped_sounds import OPTED_OUT
from bot.room.conversation.preemptive_reply import reads_finished

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.brain.decider import Decision
    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.reply import Replier
    from bot.channel.participants import Participants
    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from bot.room.conversation.preemptive_reply import PreemptiveReply
    from bot.room.conversation.turn_recorder import TurnRecorder
    from compaction.model import Turn
    from compaction.session import SessionMemory

# How long a turn waits for the reply that it interrupted to be recorded before it.
RECORD_REPLY_S = 2.0


class TurnTaking:
    """The turn-taking of one room.

    `ask`: begins the reply to a question. `reply_language`: returns the language to answer a person in. `prepares`:
    returns whether replies may be prepared now. `starts_early`: a prepared reply is made up to its first sound.
    """

    def __init__(
        self,
        *,
        memory: SessionMemory,
        participants: Participants,
        participation: Participation,
        turn_recorder: TurnRecorder,
        replier: Replier,
        preemptive_reply: PreemptiveReply,
        quoting: QuoteFinder | None,
        ask: Callable[[Question], None],
        reply_language: Callable[[int], str],
        prepares: Callable[[], bool],
        starts_early: bool,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._memory = memory
        self._participants = participants
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._replier = replier
        self._preemptive_reply = preemptive_reply
        self._quoting = quoting
        self._ask = ask
        self._reply_language = reply_language
        self._prepares = prepares
        self._starts_early = starts_early
        self._clock = clock
        self._observe = observe

    async def on_group(self, group: tuple[SpokenText, ...]) -> None:
        """Record a group of utterances as a turn, decide whether to answer it, and write its log line."""
        await self._replier.wait_until_recorded(within_s=RECORD_REPLY_S)
        group = tuple(spoken for spoken in group if not self._is_dropped(spoken))
        if not group:
            return
        released_at = self._clock.monotonic()
        turn = await self.record_only(group)
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
            self._ask(self._question(turn, spoken, decision))
        else:
            self._preemptive_reply.discard("not_answered")
        self._turn_recorder.log_speech(group, turn, released_at=released_at, chosen=spoken, decision=decision)

    async def record_only(self, group: Sequence[SpokenText], names: Sequence[str] = ()) -> Turn | None:
        """Record a group of utterances as a turn. Returns None if it only repeats the last one.

        `names`: the speaker of each, if they may be unknown here; those that are empty are looked up.
        """
        known = names or [""] * len(group)
        named = [name or self._participants.name(spoken.user_id) for spoken, name in zip(group, known, strict=True)]
        return await self._turn_recorder.record_speech(group, named)

    def on_tentative(self, spoken: SpokenText, likely_finished: bool) -> None:
        """Prepare a reply to an utterance that may not be over: search the memory, perhaps begin a preemptive reply."""
        if not self._prepares() or self._drops(spoken):
            return
        decision = self._participation.preview_decision(spoken)
        if not decision.answer:
            return
        turn = self._turn_recorder.preview_speech(spoken, self._participants.name(spoken.user_id))
        if self._quoting is not None:
            self._quoting.prefetch(turn, self._memory)
        if self._starts_early and likely_finished and reads_finished(spoken.text) and not self._replier.busy:
            self._preemptive_reply.start(self._question(turn, spoken, decision))

    def _is_dropped(self, spoken: SpokenText) -> bool:
        """Return whether words become no turn, because their person opted out or was forgotten; report it if so."""
        if not self._drops(spoken):
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

    def _drops(self, spoken: SpokenText) -> bool:
        return self._participation.drops(spoken.user_id, started_at=spoken.started_at)

    def _question(self, turn: Turn, spoken: SpokenText, decision: Decision) -> Question:
        return Question(
            turn,
            utterance_id=spoken.utterance.id,
            ended_at=spoken.ended_at,
            asker_id=str(spoken.user_id),
            reason=decision.reason,
            may_skip=decision.may_skip,
            language=self._reply_language(spoken.user_id),
        )
