"""Play a scenario: people, bot and local Discord together, on the loop's clock, and report what came of it.

The stage owns the run. Each step of the scenario is a task that waits for its own moment; the bot's reports
arrive in a `Record`; when all is said and the room is quiet the bot is stopped, and the record becomes a
report. Every wait is bounded: a wait that passes its bound is a failed expectation, and what makes going on
pointless (the bot crashed, a person could not speak) ends the run with a sentence in the report.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from rehearsal.errors import RehearsalError, StageError
from rehearsal.judge.judge import span_of, tally
from rehearsal.judge.matching import complete
from rehearsal.runner.audience import NoAudience
from rehearsal.runner.backstage import NobodyBackstage
from rehearsal.runner.bot_lifecycle import BotLife
from rehearsal.runner.observation import Problem
from rehearsal.runner.record import Record, Spoken
from rehearsal.runner.step_timing import Cue
from rehearsal.script.scenario import (
    SPEECH_GAP_S,
    Bot,
    Command,
    Conduct,
    Fault,
    Join,
    Leave,
    Say,
    SetNetwork,
    Show,
    StopSharing,
    WaitFor,
)

if TYPE_CHECKING:
    from rehearsal.report.report import Report
    from rehearsal.runner.audience import Audience
    from rehearsal.runner.backstage import Backstage
    from rehearsal.runner.observation import Companion, Recogniser
    from rehearsal.runner.venue import OpenVenue, Venue
    from rehearsal.script.scenario import Scenario, Step

ENTER_TIMEOUT_S = 30.0
# The room is quiet when nothing was reported for this long.
QUIET_S = 2.5
# How often it is looked whether the bot's voice is to be heard.
VOICE_LOOK_S = 0.05


async def play(
    scenario: Scenario,
    *,
    companion: Companion,
    recogniser: Recogniser,
    open_venue: OpenVenue,
    audience: Audience | None = None,
    backstage: Backstage | None = None,
) -> Report:
    """Play `scenario` to its end and return the report; `passed` tells whether every expectation was kept.

    `open_venue`: `rehearsal.runner.local_venue.open_local_venue`, except in tests. `backstage`: the scenario's own
    servers, to which the bot is pointed already.

    Raises `RehearsalError` when it could not begin (the local Discord or the bot did not start). A failure
    later is part of the report (`ended_by`, `passed` false). *Cancellation*: the bot and the local Discord are
    ended in order.
    """
    backstage = backstage or NobodyBackstage()
    async with open_venue(scenario) as venue:
        run = _Run(scenario, venue, companion, audience or NoAudience(), backstage)
        begun = asyncio.get_running_loop().time()
        ended_by = await run.play()
        duration_s = asyncio.get_running_loop().time() - begun
        return await tally(
            scenario, run.record, venue, recogniser, servers=backstage.seen, ended_by=ended_by, duration_s=duration_s
        )


class _Run:
    """One playing of one scenario."""

    def __init__(
        self, scenario: Scenario, venue: Venue, companion: Companion, audience: Audience, backstage: Backstage
    ) -> None:
        self.record = Record()
        self._backstage = backstage
        self._scenario = scenario
        self._venue = venue
        self._audience = audience
        self._cues = tuple(Cue() for _ in scenario.steps)
        self._mouths = {person.key: asyncio.Lock() for person in scenario.people}
        self._loop = asyncio.get_running_loop()
        self._bot = BotLife(scenario, venue, companion, self.record, audience)

    async def play(self) -> str:
        """Play to the end and return why it ended early, or nothing."""
        self._audience.opened(self._scenario)
        self._venue.set_network(self._scenario.network)
        self.record.live_at = self._loop.time()
        ended_by = ""
        self._loop.set_exception_handler(self._on_stray_exception)
        try:
            await self._bot.start()
            try:
                await self._perform()
            except* RehearsalError as group:
                ended_by = str(_first(group))
        finally:
            await self._bot.stop()
            self._loop.set_exception_handler(None)
        return ended_by

    def _on_stray_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what nobody awaited, so that `nothing_raised` means it."""
        exception = context.get("exception")
        detail = f"{type(exception).__name__}: {exception}" if exception else str(context.get("message", ""))
        self.record.observe(Problem("unhandled_exception", detail))

    async def _perform(self) -> None:
        for person in self._scenario.people:
            if person.present:
                await self._enter(person.key)
        self.record.live_at = self._loop.time()
        async with asyncio.TaskGroup() as around:
            watch = around.create_task(self._bot.watch(), name="rehearsal-crash-watch")
            async with asyncio.TaskGroup() as group:
                for number, step in enumerate(self._scenario.steps):
                    group.create_task(self._step(number, step), name=f"rehearsal-step-{number + 1}")
            await self._settle()
            watch.cancel()

    async def _settle(self) -> None:
        """Let the last words become text and the last reply be spoken."""
        deadline = self._loop.time() + self._scenario.settle_s
        await self.record.until(self._all_heard, timeout_s=max(0.0, deadline - self._loop.time()))
        await self.record.until(self._all_answered, timeout_s=max(0.0, deadline - self._loop.time()))
        while (left := deadline - self._loop.time()) > 0:
            seen = self.record.activity
            happened = await self.record.until(
                lambda seen=seen: self.record.activity > seen,  # type: ignore[misc]
                timeout_s=min(QUIET_S, left),
            )
            if not happened and not self._bot_speaks():
                return

    def _all_answered(self) -> bool:
        """Return whether the bot has spoken since everything that it was to answer."""
        asked = [spoken.voice_started_at for spoken in self.record.speeches if spoken.wants_answer]
        return all(any(reply.first_audio_at >= since for reply in self.record.replies) for since in asked)

    def _bot_speaks(self) -> bool:
        """Return whether somebody has received the bot's voice just now; what it says is told when it is over."""
        now = self._loop.time()
        return any(self._venue.voiced(user_id, now - QUIET_S, now) for user_id in self.record.present(now, now))

    # -- the moment of a step ------------------------------------------------------------------------------

    async def _step(self, number: int, step: Step) -> None:
        await self._moment(number, step)
        cue = self._cues[number]
        begun = self._loop.time()
        try:
            await self._act(number, step, cue)
        finally:
            now = self._loop.time()
            cue.end(now)
            if step.id:
                self.record.marks[step.id] = begun, now

    async def _moment(self, number: int, step: Step) -> None:
        """Wait until `step` is due."""
        if step.at is not None:
            await self._sleep_until(self.record.live_at + step.at)
            return
        if number == 0:
            await self._sleep_until(self.record.live_at + (step.gap_s or 0.0))
            return
        before = self._before(number, step)
        if step.overlap_s is not None:
            spoken_until = await self._cues[before].promised_end()
            await self._sleep_until(spoken_until - step.overlap_s)
            return
        await self._cues[before].ended()
        match step.after:
            case "reply":
                await self._wait_for_reply(number, step.timeout_s)
            case "heard":
                await self._wait_for_text(number, step.timeout_s)
            case "voice":
                await self._wait_for_voice(number, step.timeout_s)
            case _:
                pass
        await self._sleep_until(self._loop.time() + _gap_s(step))

    def _before(self, number: int, step: Step) -> int:
        """Return the number of the step that this one follows."""
        for earlier in range(number):
            if step.after and self._scenario.steps[earlier].id == step.after:
                return earlier
        return number - 1

    async def _sleep_until(self, moment: float) -> None:
        delay_s = moment - self._loop.time()
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    # -- what a step does ----------------------------------------------------------------------------------

    async def _act(self, number: int, step: Step, cue: Cue) -> None:
        match step:
            case Say():
                await self._say(number, step, cue)
            case Command():
                await self._command(step)
            case Join():
                await self._enter(step.who)
                self._tell(f"{self._scenario.person(step.who).name} joins")
            case Leave():
                await self._leave(step.who)
            case Show():
                await self._show(number, step)
            case StopSharing():
                self._tell(f"{self._scenario.person(step.who).name} stops sharing")
                await self._venue.stop_sharing(self._scenario.person(step.who).id)
            case SetNetwork():
                self._venue.set_network(step.network)
                self._tell(f"network: {_shares(step)}")
            case Fault():
                self._tell(f"fault: {step.fault}")
                target = self._scenario.person(step.who).id if step.who else None
                await self._venue.fault(step.fault, target, step.options)
            case Conduct():
                self._tell(f"the {step.server} server: {step.conduct}")
                await self._backstage.conduct(step)
            case WaitFor():
                await self._wait(number, step)
            case Bot(bot="kill"):
                self._tell("the bot is killed")
                await self._bot.kill()
            case Bot():
                self._tell("the bot starts again")
                await self._bot.restart()
            case _:
                assert_never(step)

    async def _say(self, number: int, step: Say, cue: Cue) -> None:
        person = self._scenario.person(step.who)
        async with self._mouths[step.who]:
            begun = self._loop.time()
            promised = begun + self._venue.speech_s(step.audio)
            cue.begin(promised)
            spoken = Spoken(
                number, step.id, person.id, person.name, step.say, begun, promised, wants_answer=step.answered
            )
            self.record.say(spoken)
            self._audience.spoken(begun - self.record.live_at, person.name, step.say)
            speech = await self._venue.say(person.id, step.audio)
            self.record.say(
                replace(
                    spoken, voice_started_at=speech.voice_started_at, voice_ended_at=speech.voice_ended_at, over=True
                )
            )

    async def _command(self, step: Command) -> None:
        person = self._scenario.person(step.who)
        rooms = self.record.rooms_ready
        self._tell(f"{person.name} uses /{step.command}")
        await self._venue.invoke(person.id, step.command, step.options)
        if step.command != "join":
            return
        if not await self.record.until(lambda: self.record.rooms_ready > rooms, timeout_s=step.timeout_s):
            raise StageError(
                f"The bot did not come into the voice channel within {step.timeout_s:g} s of /join. "
                "`roomtone tail` shows what it was doing."
            )
        now = self._loop.time()
        for user_id in self.record.present(now, now):
            await self._venue.meet(user_id)

    async def _show(self, number: int, step: Show) -> None:
        person = self._scenario.person(step.who)
        self._tell(f"{person.name} shows {step.shows.name}")
        if not await self._venue.show(person.id, step.shows, timeout_s=step.timeout_s):
            self._waited_in_vain(number, f"the bot noted nothing of {step.shows.name}", step.timeout_s)

    async def _enter(self, key: str) -> None:
        person = self._scenario.person(key)
        try:
            async with asyncio.timeout(ENTER_TIMEOUT_S):
                await self._venue.enter(person.id)
        except TimeoutError as exc:
            raise StageError(f"{person.name} could not enter the voice channel in {ENTER_TIMEOUT_S:g} s.") from exc
        self.record.enter(person.id, self._loop.time())

    async def _leave(self, key: str) -> None:
        person = self._scenario.person(key)
        self.record.leave(person.id, self._loop.time())
        self._tell(f"{person.name} leaves")
        try:
            async with asyncio.timeout(ENTER_TIMEOUT_S):
                await self._venue.leave(person.id)
        except TimeoutError as exc:
            raise StageError(f"{person.name} could not leave the voice channel in {ENTER_TIMEOUT_S:g} s.") from exc

    # -- waiting -------------------------------------------------------------------------------------------

    async def _wait(self, number: int, step: WaitFor) -> None:
        match step.wait_for:
            case "reply":
                await self._wait_for_reply(number, step.timeout_s)
            case "heard":
                await self._wait_for_text(number, step.timeout_s)
            case "compaction":
                cursor = step.new_cursor or 1
                landed = await self.record.until(
                    lambda: any(done.new_cursor >= cursor for done in self.record.compactions),
                    timeout_s=step.timeout_s,
                )
                if not landed:
                    self._waited_in_vain(number, f"no compaction reached cursor {cursor}", step.timeout_s)

    async def _wait_for_reply(self, number: int, timeout_s: float) -> None:
        since = self._asked_at(number)
        answered = await self.record.until(
            lambda: any(reply.first_audio_at >= since for reply in self.record.replies), timeout_s=timeout_s
        )
        if not answered:
            self._waited_in_vain(number, "the bot did not speak", timeout_s)

    async def _wait_for_voice(self, number: int, timeout_s: float) -> None:
        """Wait until somebody receives the bot's voice. What is being said is told when it is over, so it is looked."""
        since, deadline = self._asked_at(number), self._loop.time() + timeout_s
        while (now := self._loop.time()) < deadline:
            if any(self._venue.voiced(user_id, since, now) for user_id in self.record.present(now, now)):
                return
            await asyncio.sleep(VOICE_LOOK_S)
        self._waited_in_vain(number, "nobody heard the bot's voice", timeout_s)

    def _asked_at(self, number: int) -> float:
        """Return when the last thing said before this step began."""
        asked = max((other for other in self.record.spoken if other < number), default=None)
        return self.record.spoken[asked].voice_started_at if asked is not None else self.record.live_at

    async def _wait_for_text(self, number: int, timeout_s: float) -> None:
        if not await self.record.until(self._all_heard, timeout_s=timeout_s):
            self._waited_in_vain(number, "not all that was said became text", timeout_s)

    def _all_heard(self) -> bool:
        heard = [span_of(utterance) for utterance in self.record.heard]
        return all(spoken.over and complete(spoken.span, heard) for spoken in self.record.speeches)

    def _waited_in_vain(self, number: int, what: str, timeout_s: float) -> None:
        text = f"step {number + 1}: {what} within {timeout_s:g} s"
        self.record.failed_waits.append(text)
        self._audience.troubled(self._loop.time() - self.record.live_at, text)

    def _tell(self, text: str) -> None:
        self._audience.happened(self._loop.time() - self.record.live_at, text)


def _gap_s(step: Step) -> float:
    if step.gap_s is not None:
        return step.gap_s
    return SPEECH_GAP_S if isinstance(step, Say) else 0.0


def _shares(step: SetNetwork) -> str:
    return ", ".join(f"{value:.0%} {name}" for name, value in step.network.model_dump().items())


def _first(group: BaseExceptionGroup[RehearsalError]) -> BaseException:
    """Return the first error inside; several steps may fail of the same cause."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
