"""Plays a talk to a room's own participation, on a clock that is advanced by hand, and notes when the bot speaks.

The parts are those of a room, with their default settings: requests for silence, grouping of utterances, engagement,
decisions. Only sound, memory and the answer itself are missing; an answer takes its usual time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.listen.dialogues import ANSWER_S
from bot.brain.decider import PendingReply
from bot.brain.wakeword import use_of_name
from bot.channel.participants import Participants
from bot.channel.port import Person
from bot.events import SpokenText
from bot.participation.all_guilds import GuildParticipations
from bot.participation.participation import Participation, ReplyState
from bot.participation.settings import ParticipationSettings
from bot.room.conversation.hearing import GROUP_WAIT_S
from bot.server_settings import no_server_settings
from rehearsal.roomtone.written.channel import ManualClock, WrittenChannel
from voice.asr.port import Recognition
from voice.listening.coalesce import UtteranceCoalescer
from voice.listening.utterance import Utterance

if TYPE_CHECKING:
    from benchmarks.listen.timed_talk import Talk, TimedUtterance
    from bot.brain.decider import Decision, Reason

_SESSION = "talk"
# Somebody who did not mean the bot would still have been answered, and so be in a conversation with it.
_ANSWER = "So it is."


@dataclass(frozen=True, slots=True)
class UnaskedReply:
    """An utterance that the bot would have answered. `kind`: the decision's reason."""

    talk: str
    line: int
    kind: str


@dataclass(slots=True)
class TalkDecisions:
    """The decisions of one or more talks. `kept_silent`: by reason."""

    talks: int = 0
    utterances: int = 0
    duration_s: float = 0.0
    replies: list[UnaskedReply] = field(default_factory=list)
    kept_silent: Counter[Reason] = field(default_factory=Counter)

    def add(self, other: TalkDecisions) -> None:
        """Add the decisions of other talks."""
        self.talks += other.talks
        self.utterances += other.utterances
        self.duration_s += other.duration_s
        self.replies += other.replies
        self.kept_silent += other.kept_silent


async def play_talk(talk: Talk, wake_names: tuple[str, ...]) -> TalkDecisions:
    """Play a talk to a room in which the bot has these names, and return its decisions."""
    room = TalkRoom(talk, wake_names)
    await room.play()
    return room.decisions


class TalkRoom:
    """A room without sound. It implements `bot.participation.reply_control.ReplyControl`."""

    can_skip = True

    def __init__(self, talk: Talk, wake_names: tuple[str, ...]) -> None:
        self.decisions = TalkDecisions(talks=1, utterances=len(talk.utterances), duration_s=talk.duration_s)
        self._talk = talk
        self._wake_names = wake_names
        self._ids = {name: number for number, name in enumerate(talk.people, start=1)}
        self._place = WrittenChannel([Person(number, name, is_bot=False) for name, number in self._ids.items()])
        self._clock = ManualClock()
        self._guilds = GuildParticipations(
            no_server_settings(), _NothingStored(), ParticipationSettings(), wake_names=wake_names, clock=self._clock
        )
        self._coalescing: UtteranceCoalescer[SpokenText] = UtteranceCoalescer(longest_wait_s=GROUP_WAIT_S)
        # The person whom the bot is answering, and until when.
        self._answering: tuple[int, float] | None = None

    async def play(self) -> None:
        """Hear the whole talk."""
        participation = Participation(
            self._guilds,
            await self._guilds.begin_session(self._place.guild_id, _SESSION),
            session_id=_SESSION,
            place=self._place,
            participants=Participants(self._place),
            clock=self._clock,
            replies=self,
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(participation.run(), name="participation")
            # It begins before the first word.
            await asyncio.sleep(0)
            for utterance in self._talk.utterances:
                await self._hear(participation, utterance)
            running.cancel()

    async def _hear(self, participation: Participation, utterance: TimedUtterance) -> None:
        self._advance(participation, to=utterance.ended_s)
        now = self._clock.monotonic()
        for spoken in self._spoken(utterance):
            participation.on_utterance(spoken.user_id, spoken.text, ended_at=spoken.ended_at)
            if participation.silenced:
                # Nothing after a request for silence is to be missed.
                await self._guilds.lift_silence(self._place.guild_id, by=spoken.user_id, manager=True)
            self._coalescing.add(spoken, urgent=use_of_name(spoken.text, self._wake_names).mentioned, now=now)
        if group := self._coalescing.release(anybody_speaks=False, now=now):
            self._note(participation, utterance, *participation.choose_utterance(group))

    def _note(
        self, participation: Participation, utterance: TimedUtterance, spoken: SpokenText, decision: Decision
    ) -> None:
        if not decision.answer:
            self.decisions.kept_silent[decision.reason] += 1
            return
        self.decisions.replies.append(UnaskedReply(self._talk.name, utterance.line, decision.reason.value))
        self._end_answer(participation)
        participation.on_reply_begun(spoken.user_id)
        self._answering = (spoken.user_id, self._clock.monotonic() + ANSWER_S)

    def _advance(self, participation: Participation, *, to: float) -> None:
        """Advance the clock; an answer that is over by then ends at its own time."""
        if self._answering is not None and self._answering[1] <= to:
            self._clock.advance(self._answering[1] - self._clock.monotonic())
            self._end_answer(participation)
        self._clock.advance(to - self._clock.monotonic())

    def _end_answer(self, participation: Participation) -> None:
        """End the answer in progress, if there is one. It costs nothing, so no ceiling hides what comes after it."""
        if self._answering is not None:
            participation.on_reply_ended(self._answering[0], _ANSWER, tokens=0, spoken_s=0.0, skipped=False)
            self._answering = None

    def _spoken(self, utterance: TimedUtterance) -> list[SpokenText]:
        began, ended = utterance.started_s, utterance.ended_s
        recognition = Recognition(utterance.text, "en", 0.0, 1.0, 0.0, ended - began, 0.0)
        return [
            SpokenText(
                Utterance(
                    f"{utterance.line}-{began:.2f}-{speaker}",
                    self._ids[speaker],
                    began,
                    ended,
                    ended,
                    np.zeros(0, dtype=np.int16),
                ),
                recognition,
                ended,
                ended,
            )
            for speaker in utterance.speakers
        ]

    # -- called by participation ------------------------------------------------------------------------------

    @property
    def reply_state(self) -> ReplyState:
        return ReplyState(PendingReply.NONE, busy=self._answering is not None)

    def stop_speaking(self) -> None:
        """Do nothing: what people said before counts already, and the answer engages nobody after a silence."""
        self._answering = None

    def drop_derived(self) -> None:
        """Do nothing: nothing is prepared."""

    def drop_unrecorded(self, person_id: int) -> None:
        """Drop nothing: nobody shares a screen."""

    def speak_unprompted(self, decision: Decision) -> bool:
        """Say nothing: by default there is no reason to."""
        del decision
        return False


class _NothingStored:
    """Implements `bot.participation.all_guilds.OptOuts`: nobody has opted out, and nothing is kept."""

    async def of(self, guild_id: int) -> frozenset[int]:
        del guild_id
        return frozenset()

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Keep nothing."""
