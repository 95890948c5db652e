"""When the bot takes part in one room, and when it keeps silent.

`Participation` gives the decider (`bot.brain.decider`) the situation, counts decisions and costs, carries out spoken
requests for silence, and notices long quiet in the room. It speaks through its `ReplyControl`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.decider import Decision, PendingReply, Reason, Situation, decide
from bot.brain.wakeword import SILENT_MINUTES, asks_for_silence, call_names
from bot.channel.notice_queue import NoticeQueue
from bot.cost import Cost
from bot.participation.costs import HOUR_S
from bot.participation.engagement import Engagement, QuietTimer
from bot.participation.statistics import ParticipationStatistics, over_ceiling, silenced_for, why_silent
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from voice.cancellation import fail_if_it_ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.brain.question import Spoken
    from bot.channel.participants import Participants
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.participation.guild_state import GuildState, GuildStates

log = structlog.get_logger()

SILENCE_UNSTORED = Text(
    "I am silent now, but I could not save this. If I have to start again, I can speak again. {error}"
)
# How often the room is checked for a long silence.
CHECK_QUIET_S = 5.0


@dataclass(frozen=True, slots=True)
class ReplyState:
    """The question that waits for an answer, and whether a reply is in progress or somebody is speaking."""

    waiting: PendingReply
    busy: bool


class ReplyControl(Protocol):
    """Controls the room's replies; `bot.conversation.conversation.Conversation` implements it.

    The two need each other: decisions depend on the reply in progress, and a request for silence stops it. So what
    answers, which owns the participation, passes itself in.
    """

    def reply_state(self, speaker: int | None) -> ReplyState:
        """Return what the replier is doing, and whether somebody else than `speaker` is speaking."""

    def is_begun(self, utterance_id: str) -> bool:
        """Return whether a reply to speech that is no turn yet has begun: its cost is counted."""

    @property
    def can_skip(self) -> bool:
        """Return whether the current responder can find that there is nothing to say."""

    def stop_speaking(self) -> None:
        """Stop the reply in progress and discard the waiting question."""

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for. Return False if the session has no turn yet to remark on."""


class Participation:
    """The bot's participation in one room. `guild`: its guild's. `notices`: sentences for the channel, so that nobody
    who speaks waits for Discord.

    *Ownership*: the conversation owns it and runs `run`. Call everything on its loop.
    """

    def __init__(
        self,
        guilds: GuildStates,
        guild: GuildState,
        *,
        session_id: str,
        channel: RoomChannel,
        participants: Participants,
        clock: Clock,
        replies: ReplyControl,
    ) -> None:
        settings = guilds.settings
        self._guilds = guilds
        self._guild = guild
        self.session_id = session_id
        self._channel = channel
        self._participants = participants
        self._clock = clock
        self._replies = replies
        self.words = guild.words
        self._engagement = Engagement(self.words, window_s=guilds.tuning.engagement_s)
        self._quiet = QuietTimer(
            after_s=60 * settings.quiet_thought_after_minutes,
            every_s=60 * guilds.tuning.quiet_thought_every_minutes,
            now=clock.monotonic(),
        )
        self.notices = NoticeQueue(channel, name="notices")
        self._statistics = ParticipationStatistics()
        # Set by a silence that is not stored. Nobody who speaks waits for the database.
        self._silence_unstored = asyncio.Event()
        self._silenced_by = 0

    # -- the present state -----------------------------------------------------------------------------------

    @property
    def wake_names(self) -> tuple[str, ...]:
        return self._guild.wake_names

    @property
    def silenced(self) -> bool:
        """Return whether somebody has silenced the bot in this session."""
        return self._guild.listens_only or self._guild.silence.applies(self.session_id, now=self._clock.now())

    def why_silent(self) -> Text:
        """Return why the bot says nothing in this session now; empty if it answers."""
        return why_silent(self._guild, silenced=self.silenced)

    def why_unanswered(self) -> Text | None:
        """Return why the bot answers nothing now: it is silent, or a limit is reached."""
        costs, now = self._guild.costs, self._clock.monotonic()
        return self.why_silent() or (over_ceiling(costs, now) if costs.is_over(now) else None)

    def may_ask(self, person_id: int) -> bool:
        """Count a question that somebody asks in writing; return whether their share of the hour has room for it."""
        return self._guild.costs.may_ask(person_id, now=self._clock.monotonic())

    def without_opted_out(self, people: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of `people` (id, display name) who may be heard."""
        return [each for each in people if not self.words.excludes(int(each[0]))]

    def status(self) -> Text:
        """Return decisions and costs in plain sentences, for /status."""
        return self._statistics.format(self._guild, now=self._clock.monotonic())

    # -- life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write notices, store silences, and watch for a long quiet. Never returns."""
        self._guild.room = self
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail_if_it_ends(self.notices.run), name="participation-notices")
                tasks.create_task(fail_if_it_ends(self._store_silences), name="silences-by-voice")
                if self._quiet.enabled:
                    tasks.create_task(fail_if_it_ends(self._watch_quiet), name="quiet-room")
        finally:
            if self._guild.room is self:
                self._guild.room = None

    async def wait_until_written(self, *, within_s: float) -> None:
        """Wait up to `within_s` until all notices are written, before `run` is cancelled."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.notices.until_written()

    async def _store_silences(self) -> None:
        while True:
            await self._silence_unstored.wait()
            self._silence_unstored.clear()
            try:
                await self._guilds.store_silence(self._guild, by=self._silenced_by)
            except StoreError as error:
                log.warning("silence_not_stored", guild_id=self._guild.guild_id, problem=error)
                self.notices.add(SILENCE_UNSTORED.fill(error=sentence_of(error)))

    async def _watch_quiet(self) -> None:
        while True:
            await self._clock.sleep(CHECK_QUIET_S)
            now = self._clock.monotonic()
            if not self._quiet.is_due(now):
                continue
            if self._speak_unprompted(self._situation(long_silence=True)):
                self._quiet.use(now)

    @property
    def is_busy(self) -> bool:
        """Whether somebody speaks, or an answer is in progress or due."""
        return self._replies.reply_state(None).busy

    def request_remark(self) -> bool:
        """Remark on a shared screen, if the bot may. Return whether the remark has begun."""
        now = self._clock.monotonic()
        engaged = any(self._engagement.is_engaged(person.id, at=now) for person in self._participants.people)
        return self._speak_unprompted(replace(self._situation(engaged=engaged), screen_changed=True))

    def _speak_unprompted(self, situation: Situation) -> bool:
        decision = decide(None, situation)
        log.debug("remark_considered", answers=decision.answer, reason=decision.reason.value)
        if not decision.answer or not self._replies.speak_unprompted(decision):
            return False
        log.info("remark_begun", reason=decision.reason.value, may_skip=decision.may_skip)
        self._count(decision)
        return True

    def may_speak_result(self) -> bool:
        """Return whether the bot may say aloud what came of something that somebody has pressed for."""
        return self._channel.audible and self.why_unanswered() is None

    def stop_speaking(self) -> None:
        """Stop the reply in progress and discard the waiting question."""
        self._replies.stop_speaking()

    # -- what people say -------------------------------------------------------------------------------------

    def on_utterance(self, user_id: int, text: str, *, ended_at: float) -> None:
        """Fall silent if somebody asks for it by the bot's name. Call it as soon as the text is known."""
        self._quiet.reset(ended_at)
        if self.asks_for_silence(user_id, text):
            self.be_quiet(SILENT_MINUTES, user_id)

    def on_typed(self, user_id: int, text: str) -> None:
        """Fall silent if somebody who is heard asks the bot in writing for it."""
        if asks_for_silence(text, self.wake_names, to_bot=True):
            self.be_quiet(SILENT_MINUTES, user_id)

    def asks_for_silence(self, user_id: int, text: str) -> bool:
        """Return whether somebody who is heard asks the bot by its name to be silent."""
        is_heard = not (self._is_bot(user_id) or self.words.excludes(user_id))
        return is_heard and asks_for_silence(text, self.wake_names)

    def be_quiet(self, minutes: int, by: int) -> None:
        """Stop speaking, and stay silent for some minutes. The channel reads it, with the button *Talk again*.

        `by`: who wants it. A silence that holds already stays as it is.
        """
        if self.silenced:
            return
        self._engagement.clear()
        silence = self._guild.silence.silence_until(self._clock.now() + 60 * minutes)
        self._guilds.apply_silence(self._guild, silence, by=by, how="voice")
        self._silenced_by = by
        self._silence_unstored.set()
        self.notices.add(silenced_for(minutes), offers_talk=True)

    def choose_utterance(
        self,
        group: Sequence[SpokenText],
        *,
        released: Spoken | None = None,
        begun: Mapping[str, Decision | None] = MappingProxyType({}),
    ) -> tuple[SpokenText, Decision]:
        """Choose the utterance in `group` to answer, and return it with the decision.

        One that is being answered already comes first, then one that goes on with a question, then the newest that
        needs an answer. If none does, it is the last. The decision is for the bot if those on all of them are.
        `released`: what is being answered already; a new decision would find the bot busy. `begun`: by utterance, as in
        `preview_decision`.
        """
        decisions: list[tuple[SpokenText, Decision]] = []
        for spoken in group:
            # In order: an utterance to somebody else ends the engagement before the next one is decided on.
            if released is not None and released.utterance_id == spoken.utterance.id:
                decision = released.decision
            else:
                decision = self.preview_decision(spoken, begun=begun.get(spoken.utterance.id))
            self._engagement.on_utterance(
                spoken.user_id, decision, started_at=spoken.started_at, ended_at=spoken.ended_at
            )
            decisions.append((spoken, decision))
        answered = [each for each in decisions if each[1].answer]
        begun_already = (each for each in answered if released and each[0].utterance.id == released.utterance_id)
        going_on = (each for each in answered if each[1].goes_on)
        chosen = next(chain(begun_already, going_on, reversed(answered)), decisions[-1])
        self._count(chosen[1])
        return chosen[0], replace(chosen[1], for_bot=all(each.for_bot for _, each in decisions))

    def preview_decision(self, spoken: SpokenText, *, begun: Decision | None = None) -> Decision:
        """Return the decision about an utterance if it were made now. Counts and remembers nothing.

        `begun`: that on the question that these words may go on with.
        """
        who, at = spoken.user_id, spoken.started_at
        situation = replace(
            self._situation(
                speaker=who, engaged=self._engagement.is_engaged(who, at=at), utterance=spoken.utterance.id
            ),
            just_answered=self._engagement.is_engaged(who, at=at, at_once=True),
            bot_asked=self._engagement.was_asked(who, at=at),
            begun=begun,
            # Also if they were forgotten since they said it.
            opted_out=not self.words.may_use(who, since=at),
        )
        return decide(spoken.text, situation)

    def confirm(self, decision: Decision, user_id: int, *, started_at: float) -> Decision:
        """Return a decision as it is once the turn is stored, which may take seconds: nobody is answered who opted out
        meanwhile, and nobody by a bot that was silenced.
        """
        if decision.answer and not self.words.may_use(user_id, since=started_at):
            return Decision(False, Reason.OPTED_OUT)
        return Decision(False, Reason.SILENCED) if decision.answer and self.silenced else decision

    def _situation(
        self, *, speaker: int | None = None, engaged: bool = False, utterance: str = "", long_silence: bool = False
    ) -> Situation:
        state, people = self._replies.reply_state(speaker), {person.id for person in self._participants.people}
        others = (person.name for person in self._channel.members() if person.id != speaker)
        return Situation(
            # With a speaker who has just left: who stays was there when they spoke.
            people=len(people | {speaker}) if people and speaker is not None else len(people),
            wake_names=self.wake_names,
            mode=self._guild.voice_mode,
            other_names=frozenset().union(*map(call_names, others)),
            engaged=engaged,
            by_bot=speaker is not None and self._is_bot(speaker),
            # What nobody can hear is not worth a model's work.
            silenced=self.silenced or not self._channel.audible,
            # A reply that has begun in a pause may be what has reached it: it is paid for.
            over_ceiling=self._guild.is_used_up and not self._replies.is_begun(utterance),
            pending=state.waiting,
            busy=state.busy,
            can_skip=self._replies.can_skip,
            long_silence=long_silence,
        )

    def _is_bot(self, user_id: int) -> bool:
        person = self._participants.find(user_id)
        return person is not None and person.is_bot

    def _count(self, decision: Decision) -> None:
        """Count a decision, and write that the hour's ceiling is reached if it is, once an hour at most."""
        self._statistics.count(decision)
        guild, now = self._guild, self._clock.monotonic()
        noticed = guild.ceiling_notice_at
        if decision.reason is Reason.OVER_CEILING and (noticed is None or now - noticed >= HOUR_S):
            guild.ceiling_notice_at = now
            free_in_minutes = round(guild.costs.free_in_s(now) / 60)
            log.warning("ceiling_reached", guild_id=guild.guild_id, free_in_minutes=free_in_minutes)
            self.notices.add(over_ceiling(guild.costs, now))

    # -- what happens in the room ----------------------------------------------------------------------------

    def on_reply_begun(self, user_id: int | None) -> None:
        """Record that the bot begins to answer somebody; None: nobody asked."""
        if user_id is not None:
            self._engagement.on_reply_begun(user_id)

    def on_reply_ended(self, user_id: int | None, text: str, *, spoken_s: float, skipped: bool) -> None:
        """Take note of a reply, and count its speech. `text`: the part that people heard or read."""
        now = self._clock.monotonic()
        self._statistics.skipped += skipped
        if text:
            self._quiet.reset(now)
            self._guild.costs.add(Cost(spoken_s=spoken_s), now=now)
        if user_id is not None:
            self._engagement.on_reply_ended(user_id, text, now=now)
            if skipped:
                # The model found that they speak to somebody else.
                self._engagement.remove(user_id)

    def on_joined(self) -> None:
        """Record that somebody came in, which restarts the timer for a long silence."""
        self._quiet.reset(self._clock.monotonic())

    def on_left(self, user_id: int) -> None:
        self._engagement.remove(user_id)
