"""One room's part in the talk: it shows the decider the situation, keeps count, and is silent when it is told to.

Nothing is decided here, and nothing spoken: who talks with the bot, what an hour may cost and what silences it are
pure modules beside this one; what came of it is told in sentences.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from bot.brain.decider import Decision, HeardText, Reason, Situation, decide
from bot.brain.silence_requests import asks_for_silence, asks_to_talk
from bot.brain.wakeword import mentions_name, strip_name
from bot.participation.engagement import Engagement
from bot.participation.figures import Figures
from bot.participation.ledger import HOUR_S, Spent
from bot.participation.lull import Lull
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.brain.decider import PendingReply
    from bot.channel.participants import Participants
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.participation.standing import GuildParticipation, GuildParticipations

log = structlog.get_logger()

# How often the room is asked whether it has been quiet for long.
LOOK_S = 5.0
# Sentences that wait for Discord; more would be somebody playing with it.
NOTICES_WAITING = 8
HUSHED = "I am silent now and go on listening. /talk lets me speak again."
TALKING = "I may speak again."
CEILING = (
    "I have talked as much as an hour may cost on this server, so I am silent for about {time}. I go on listening; "
    "/status shows the figures."
)


@dataclass(frozen=True, slots=True)
class Working:
    """What the replier is doing: what waits, and whether an answer is in the works or somebody is speaking."""

    waiting: PendingReply
    busy: bool


class Participation:
    """One room's. Owned by its conversation; everything is called on its loop, but for `excludes`.

    `working`: what the replier does now. `discerning`: whether who finds the words can say SKIP. `stop`: stops speech
    and forgets what waits. `think`: asks for a thought of the bot's own, unless there is nothing to think about.
    *Ownership*: `run` is the conversation's task.
    """

    def __init__(
        self,
        participation: GuildParticipations,
        standing: GuildParticipation,
        *,
        session_id: str,
        place: Place,
        company: Participants,
        clock: Clock,
        working: Callable[[], Working],
        discerning: Callable[[], bool],
        stop: Callable[[], None],
        think: Callable[[Decision], bool],
    ) -> None:
        settings = participation.settings
        self._participation = participation
        self._standing = standing
        self._session_id = session_id
        self._place = place
        self._company = company
        self._clock = clock
        self._working = working
        self._discerning = discerning
        self._stop = stop
        self._think = think
        self._engagement = Engagement(window_s=settings.engagement_s)
        self._lull = Lull(
            after_s=60 * settings.quiet_thought_after_minutes,
            every_s=60 * settings.quiet_thought_every_minutes,
            now=clock.monotonic(),
        )
        self._notices: asyncio.Queue[tuple[str, int | None]] = asyncio.Queue(NOTICES_WAITING)
        self._figures = Figures()
        self._prompt_tokens = 0

    # -- what holds ------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """Return the room's session."""
        return self._session_id

    @property
    def wake_names(self) -> tuple[str, ...]:
        """Return what the bot is called here."""
        return self._standing.wake_names

    @property
    def silenced(self) -> bool:
        """Return whether the bot has been told to hold its tongue."""
        return self._standing.silence.applies(self._session_id, now=self._clock.now())

    def excludes(self, user_id: int) -> bool:
        """Return whether a person is not to be heard. Called from other threads too."""
        return user_id in self._standing.opted_out

    def heard(self, present: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of these people, (id, display name), who want to be heard: of the others nothing is told on."""
        return [each for each in present if not self.excludes(int(each[0]))]

    # -- life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell and store what is to be told, and look whether the room has fallen quiet; for ever."""
        self._standing.voice = self
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tell(), name="notices")
                if self._lull.wanted:
                    tasks.create_task(self._listen_to_silence(), name="quiet-room")
        finally:
            if self._standing.voice is self:
                self._standing.voice = None

    def _notice(self, sentence: str, *, silenced_by: int | None = None) -> None:
        """Have a sentence written, and a silence stored that somebody laid on or lifted aloud."""
        try:
            self._notices.put_nowait((sentence, silenced_by))
        except asyncio.QueueFull:
            log.warning("notice_not_written", waiting=NOTICES_WAITING)

    async def _tell(self) -> None:
        while True:
            sentence, silenced_by = await self._notices.get()
            if silenced_by is not None:
                try:
                    await self._participation.keep_silence(self._standing, by=silenced_by)
                except StoreError as error:
                    log.warning("silence_not_stored", problem=str(error))
            await self._place.write(sentence)

    async def _listen_to_silence(self) -> None:
        while True:
            await self._clock.sleep(LOOK_S)
            now = self._clock.monotonic()
            if not self._lull.due(now):
                continue
            decision = decide(None, self._situation(long_silence=True))
            log.debug("lull_considered", answers=decision.answer, reason=decision.reason.value)
            if decision.answer and self._think(decision):
                log.info("thought_begun", reason=decision.reason.value, may_skip=decision.may_skip)
                self._lull.taken(now)
                self._count(decision)

    def remark(self) -> bool:
        """Something on a shared screen gives occasion: ask for a thought about it, where the bot may have one; return
        whether it was asked."""
        now = self._clock.monotonic()
        engaged = any(self._engagement.engaged(person.id, at=now) for person in self._company.people)
        decision = decide(None, replace(self._situation(engaged=engaged), screen_changed=True))
        log.debug("remark_considered", answers=decision.answer, reason=decision.reason.value)
        if not decision.answer or not self._think(decision):
            return False
        log.info("thought_begun", reason=decision.reason.value, may_skip=decision.may_skip)
        self._count(decision)
        return True

    def fall_silent(self) -> None:
        """Stop speaking at once, and forget what was to be said next."""
        self._stop()

    # -- what people say -------------------------------------------------------------------------------------

    def overheard(self, user_id: int, text: str, *, started_at: float, ended_at: float) -> None:
        """Take what somebody said as soon as its text stands: who has the bot's ear can silence it at once."""
        self._lull.sounded(ended_at)
        person = self._company.find(user_id)
        if (person is not None and person.is_bot) or self.excludes(user_id):
            return
        named = mentions_name(text, self.wake_names)
        alone = len(self._company.people) == 1
        if not (named or alone or self._engagement.engaged(user_id, at=started_at)):
            return
        request = strip_name(text, self.wake_names)
        silence = self._standing.silence
        held_for_now = silence.applies_for_now(self._session_id, now=self._clock.now())
        if asks_for_silence(request):
            self._standing.silence = silence.silence_session(self._session_id)
            self._engagement.ends_for_all()
            self._stop()
            if not held_for_now:
                self._notice(HUSHED, silenced_by=user_id)
        elif named and held_for_now and asks_to_talk(request):
            self._standing.silence = silence.lift(by_moderator=False)
            self._notice(TALKING, silenced_by=user_id)

    def judge(self, moment: Sequence[SpokenText]) -> tuple[SpokenText, Decision]:
        """Return what of a moment is to be answered, the last of it first, and why; or the last thing said."""
        decisions: list[tuple[SpokenText, Decision]] = []
        for spoken in moment:
            # One after the other: who turns to somebody else has done so before the next one speaks.
            decision = self._decide(spoken)
            self._engagement.heard(spoken.user_id, spoken.text, decision)
            decisions.append((spoken, decision))
        found = next((each for each in reversed(decisions) if each[1].answer), decisions[-1])
        self._count(found[1])
        return found

    def would_answer(self, spoken: SpokenText) -> Decision:
        """Return what would be decided of these words if they were all. Nothing is counted or remembered."""
        return self._decide(spoken)

    def _decide(self, spoken: SpokenText) -> Decision:
        person = self._company.find(spoken.user_id)
        at = spoken.started_at
        situation = self._situation(
            speaker_id=spoken.user_id,
            engaged=self._engagement.engaged(spoken.user_id, at=at),
            asked=self._engagement.asked(spoken.user_id, at=at),
        )
        return decide(HeardText(spoken.text, by_bot=person is not None and person.is_bot), situation)

    def _situation(
        self, *, speaker_id: int | None = None, engaged: bool = False, asked: bool = False, long_silence: bool = False
    ) -> Situation:
        working, people = self._working(), self._company.people
        return Situation(
            people=len(people),
            wake_names=self.wake_names,
            mode=self._standing.voice_mode,
            other_names=tuple(person.name for person in self._company.everybody if person.id != speaker_id),
            engaged=engaged,
            bot_asked=asked,
            opted_out=speaker_id is not None and self.excludes(speaker_id),
            silenced=self.silenced,
            over_ceiling=self._standing.ledger.over(self._clock.monotonic()),
            pending=working.waiting,
            busy=working.busy,
            can_skip=self._discerning(),
            long_silence=long_silence,
        )

    def _count(self, decision: Decision) -> None:
        self._figures.count(decision)
        if decision.reason is Reason.OVER_CEILING:
            self._tell_ceiling()

    def _tell_ceiling(self) -> None:
        """Say once that the ceiling is reached, and not again in the hour in which that can come and go."""
        standing, now = self._standing, self._clock.monotonic()
        if standing.ceiling_told_at is not None and now - standing.ceiling_told_at < HOUR_S:
            return
        standing.ceiling_told_at = now
        minutes = max(1, round(standing.ledger.free_in_s(now) / 60))
        log.warning("ceiling_reached", guild_id=standing.guild_id, free_in_minutes=minutes)
        self._notice(CEILING.format(time="a minute" if minutes == 1 else f"{minutes} minutes"))

    # -- what the bot does -----------------------------------------------------------------------------------

    def answers(self, user_id: int | None) -> None:
        """The bot is asked to answer somebody."""
        if user_id is not None:
            self._engagement.answers(user_id)

    def sent(self, tokens: int) -> None:
        """A prompt of so many tokens went to a model."""
        self._prompt_tokens = tokens
        self._standing.ledger.add(Spent(calls=1, tokens=tokens), now=self._clock.monotonic())

    def answered(
        self, user_id: int | None, text: str, *, tokens: int, spoken_s: float, skipped: bool, steps: int = 0
    ) -> None:
        """An answer ended: what was heard of it, and how long it was. `steps`: how often it called tools, after each
        of which the model is sent everything again."""
        now = self._clock.monotonic()
        self._figures.skipped += skipped
        if steps:
            self._standing.ledger.add(Spent(calls=steps, tokens=steps * self._prompt_tokens), now=now)
        if text:
            self._lull.sounded(now)
            self._standing.ledger.add(Spent(tokens=tokens, spoken_s=spoken_s), now=now)
        if user_id is not None:
            self._engagement.answered(user_id, text, now=now)

    def came(self) -> None:
        """Somebody came in: a new silence begins."""
        self._lull.sounded(self._clock.monotonic())

    def left(self, user_id: int) -> None:
        """Somebody left."""
        self._engagement.ends(user_id)

    def status(self) -> str:
        """Return what was decided and spent, and whether the bot is silenced, in plain sentences."""
        return self._figures.told(self._standing, silenced=self.silenced, now=self._clock.monotonic())
