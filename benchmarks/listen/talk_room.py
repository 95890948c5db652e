"""Plays a talk to a room's own participation, on a clock that is advanced by hand, and tells which lines it answers.

The parts are those of a room, with their default settings: requests for silence, grouping of utterances, engagement,
decisions. Only sound, memory and the answer itself are missing; an answer takes its usual time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from benchmarks.listen.timed_talk import ANSWER_S, ReplyExpected, Talk, TimedLine
from bot.brain.decider import Decision, PendingReply, Reason
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import use_of_name
from bot.channel.participants import Participants
from bot.channel.port import Person
from bot.conversation.hearing import GROUP_WAIT_S
from bot.events import SpokenText
from bot.participation.guild_state import GuildStates
from bot.participation.participation import Participation, ReplyState
from bot.participation.settings import ParticipationSettings
from bot.server_settings import no_server_settings
from rehearsal.roomtone.written.channel import ManualClock, WrittenChannel
from voice.asr.port import Recognition
from voice.listening.coalesce import UtteranceCoalescer
from voice.listening.utterance import Utterance

_SESSION = "talk"
_WAKE_NAMES = BrainSettings().names
# Somebody who did not mean the bot would still have been answered, and so be in a conversation with it.
_ANSWER = "So it is."


@dataclass(frozen=True, slots=True)
class LineDecision:
    """What a room did with a line. `reason`: of its decision; None if nothing was to be decided yet. `in_vain`: a model
    was asked, and found that the line is not for the bot.
    """

    reason: Reason | None = None
    answers: bool = False
    in_vain: bool = False


async def play_talk(talk: Talk, *, can_skip: bool = True) -> list[LineDecision]:
    """Play a talk to a room, and return what it did with each line.

    `can_skip`: there is a language model, which is taken to be right about lines of which it is known whether they are
    for the bot. Without one, whatever is decided is said.
    """
    return await _TalkRoom(talk, can_skip=can_skip).play()


class _TalkRoom:
    """A room without sound. It implements `bot.participation.participation.ReplyControl`."""

    def __init__(self, talk: Talk, *, can_skip: bool) -> None:
        self.can_skip = can_skip
        self._talk = talk
        self._ids = {name: number for number, name in enumerate((*talk.people, *talk.bots), start=1)}
        self._channel = WrittenChannel(
            [Person(number, name, is_bot=name in talk.bots) for name, number in self._ids.items()]
        )
        self._clock = ManualClock()
        self._guilds = GuildStates(
            no_server_settings(), _NothingStored(), ParticipationSettings(), wake_names=_WAKE_NAMES, clock=self._clock
        )
        self._coalescing: UtteranceCoalescer[SpokenText] = UtteranceCoalescer(longest_wait_s=GROUP_WAIT_S)
        # The person whom the bot is answering, and until when.
        self._answering: tuple[int, float] | None = None

    async def play(self) -> list[LineDecision]:
        """Hear the whole talk."""
        guild = await self._guilds.begin_session(self._channel.guild_id, _SESSION)
        participation = Participation(
            self._guilds,
            guild,
            session_id=_SESSION,
            channel=self._channel,
            participants=Participants(self._channel, guild.words),
            clock=self._clock,
            replies=self,
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(participation.run(), name="participation")
            # It begins before the first word.
            await asyncio.sleep(0)
            decisions = [await self._hear(participation, line) for line in self._talk.lines]
            running.cancel()
        return decisions

    async def _hear(self, participation: Participation, line: TimedLine) -> LineDecision:
        self._advance(participation, to=line.ended_s)
        now = self._clock.monotonic()
        for spoken in self._spoken(line):
            participation.on_utterance(spoken.user_id, spoken.text, ended_at=spoken.ended_at)
            self._coalescing.add(spoken, urgent=use_of_name(spoken.text, _WAKE_NAMES).mentioned, now=now)
        group = self._coalescing.release(anybody_speaks=False, now=now)
        done = self._decide(participation, line, *participation.choose_utterance(group)) if group else LineDecision()
        if participation.silenced:
            # Nothing after a request for silence is to be missed.
            by = self._ids[line.speakers[0]]
            await self._guilds.lift_silence(self._channel.guild_id, by=by, manager=True)
        return done

    def _decide(
        self, participation: Participation, line: TimedLine, spoken: SpokenText, decision: Decision
    ) -> LineDecision:
        if not decision.answer:
            return LineDecision(decision.reason)
        self._end_answer(participation)
        participation.on_reply_begun(spoken.user_id)
        self._answering = (spoken.user_id, self._clock.monotonic() + ANSWER_S)
        if decision.may_skip and self.can_skip and line.owed is ReplyExpected.NO:
            self._end_answer(participation, skipped=True)
            return LineDecision(decision.reason, in_vain=True)
        return LineDecision(decision.reason, answers=True)

    def is_begun(self, utterance_id: str) -> bool:
        """Answers begin when their turn is whole."""
        return False

    def _advance(self, participation: Participation, *, to: float) -> None:
        """Advance the clock; an answer that is over by then ends at its own time."""
        if self._answering is not None and self._answering[1] <= to:
            self._clock.advance(self._answering[1] - self._clock.monotonic())
            self._end_answer(participation)
        self._clock.advance(to - self._clock.monotonic())

    def _end_answer(self, participation: Participation, *, skipped: bool = False) -> None:
        """End the answer in progress, if there is one. It costs nothing, so no ceiling hides what comes after it."""
        if self._answering is not None:
            text = "" if skipped else _ANSWER
            participation.on_reply_ended(self._answering[0], text, spoken_s=0.0, skipped=skipped)
            self._answering = None

    def _spoken(self, line: TimedLine) -> list[SpokenText]:
        began, ended = line.started_s, line.ended_s
        recognition = Recognition(line.text, "en", 0.0, 1.0, 0.0, ended - began, 0.0)
        nothing = np.zeros(0, dtype=np.int16)
        return [
            SpokenText(
                Utterance(f"{began:.2f}-{who}", self._ids[who], began, ended, ended, nothing), recognition, ended, ended
            )
            for who in line.speakers
        ]

    # -- called by participation ------------------------------------------------------------------------------

    def reply_state(self, speaker: int | None) -> ReplyState:
        return ReplyState(PendingReply.NONE, busy=self._answering is not None)

    def stop_speaking(self) -> None:
        """Do nothing: what people said before counts already, and the answer engages nobody after a silence."""
        self._answering = None

    def speak_unprompted(self, decision: Decision) -> bool:
        """Say nothing: by default there is no reason to."""
        return False


class _NothingStored:
    """Implements `bot.participation.guild_state.OptOuts`: nobody has opted out, and nothing is kept."""

    async def of(self, guild_id: int) -> frozenset[int]:
        return frozenset()

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Keep nothing."""
