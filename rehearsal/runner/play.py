"""Plays a scenario: people, bot and channel together, on the event loop's clock, which may be a virtual one.

Each step of the scenario is a task that waits until the step is due. The bot's events arrive in a `RunRecord`. When
every step is over and the room is quiet, the bot is stopped. Every wait has a timeout: a wait that times out is
recorded as failed. An error after which the run makes no sense (the bot crashed, a person could not speak) ends the run
early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, assert_never

from rehearsal.errors import RehearsalError
from rehearsal.runner.bot_lifecycle import BotLifecycle
from rehearsal.runner.local_servers import LocalServers
from rehearsal.runner.ports import BotUnderTest, RunError, RunObserver, Stage, StartBot
from rehearsal.runner.record import LoggedProblem, RunRecord, SpokenLine
from rehearsal.script.scenario import (
    AFTER_EVENTS,
    AFTER_REPLY,
    SPEECH_GAP_S,
    CommandStep,
    JoinStep,
    LeaveStep,
    PersonStep,
    SayStep,
    Scenario,
    ScenarioStep,
    SendStep,
    ServerStep,
    ShowStep,
    StopSharingStep,
    WaitStep,
)

ENTER_TIMEOUT_S = 30.0
# The room counts as quiet when nothing was reported for this long.
QUIET_S = 2.5
# How often to check whether the bot's voice is heard, or its message is there.
POLL_S = 0.05


class StepTiming:
    """When one step begins, is expected to end, and has ended (loop seconds). Any number of tasks may wait for it."""

    def __init__(self) -> None:
        # Known once the step has started.
        self.expected_end = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()

    def end(self, at: float) -> None:
        """Note that the step is over. For a step without an expected end, that is now."""
        if not self.expected_end.done():
            self.expected_end.set_result(at)
        self.over.set()


class ScenarioRun:
    """One run of one scenario. `play` plays all of it; who plays it in parts calls `begin`, `perform` and `end`.

    `start`: starts the bot, and gives it the function that takes its events. `servers`: the scenario's own model
    servers; the bot is already configured to use them. `record`: what was said and observed.
    """

    def __init__(
        self,
        scenario: Scenario,
        stage: Stage,
        bot: BotUnderTest,
        start: StartBot,
        *,
        observer: RunObserver | None = None,
        servers: LocalServers | None = None,
    ) -> None:
        self.record = RunRecord()
        self._servers = servers or LocalServers()
        self._scenario = scenario
        self._stage = stage
        self._observer = observer or RunObserver()
        self._timings = tuple(StepTiming() for _ in scenario.steps)
        self._speech_locks = {person.key: asyncio.Lock() for person in scenario.people}
        self._loop = asyncio.get_running_loop()
        self._bot = BotLifecycle(scenario, bot, start, self.record, self._observer)

    async def play(self) -> RunRecord:
        """Play the scenario to its end and return the record of what happened.

        Raises `RehearsalError` when the bot did not start. A later failure is in the record (`ended_by`).
        *Cancellation*: the bot is stopped in order.
        """
        begun_at = self._loop.time()
        try:
            await self.begin()
            try:
                await self.perform(range(len(self._scenario.steps)))
                await self._while_bot_runs(self._settle(self._scenario.settle_s))
            except RehearsalError as error:
                self.record.ended_by = str(error)
        finally:
            await self.end()
        self.record.duration_s = self._loop.time() - begun_at
        return self.record

    async def begin(self) -> None:
        """Let the people who are there at first come in, and the bot start. Raises `RehearsalError`."""
        self._observer.opened(self._scenario)
        self.record.live_at = self._loop.time()
        self._loop.set_exception_handler(self._on_stray_exception)
        await self._bot.start()
        for person in self._scenario.people:
            if person.present:
                await self._enter(person.key)
        self.record.live_at = self._loop.time()

    async def end(self) -> None:
        """Stop the bot."""
        self.record.ended_at = self._loop.time()
        await self._bot.stop()
        self._loop.set_exception_handler(None)

    async def perform(self, numbers: Iterable[int]) -> None:
        """Play these steps, each when it is due. Raises `RehearsalError` if the run cannot go on."""
        await self._while_bot_runs(self._steps(numbers))

    async def _steps(self, numbers: Iterable[int]) -> None:
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                step = self._step(number, self._scenario.steps[number])
                group.create_task(step, name=f"rehearsal-step-{number + 1}")

    async def _while_bot_runs(self, work: Coroutine[Any, Any, object]) -> None:
        """Do `work`, and raise the first error of it or the bot's end. Several steps may fail for the same reason."""
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._bot.watch(), name="rehearsal-crash-watch")
                await work
                watch.cancel()
        except BaseExceptionGroup as errors:
            found: BaseException = errors
            while isinstance(found, BaseExceptionGroup):
                found = found.exceptions[0]
            raise found from None

    def _on_stray_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an exception that no task awaited, so that the expectation `nothing_raised` fails."""
        exception = context.get("exception")
        detail = f"{type(exception).__name__}: {exception}" if exception else str(context.get("message", ""))
        self.record.observe(LoggedProblem("unhandled_exception", detail))

    async def _settle(self, within_s: float) -> bool:
        """Wait until the last words have become text and the last reply is spoken. Return whether that was in time."""
        deadline = self._loop.time() + within_s
        await self.record.wait_until(
            lambda: self.record.all_lines_heard, timeout_s=max(0.0, deadline - self._loop.time())
        )
        await self.record.wait_until(self._all_answered, timeout_s=max(0.0, deadline - self._loop.time()))
        while (left := deadline - self._loop.time()) > 0:
            activity = self.record.activity
            happened = await self.record.wait_until(
                lambda activity=activity: self.record.activity > activity,  # type: ignore[misc]
                timeout_s=min(QUIET_S, left),
            )
            if not happened and not self._bot_speaks(self._loop.time() - QUIET_S):
                return True
        return False

    def _all_answered(self) -> bool:
        """Return whether the bot has spoken after the start of every line that it must answer."""
        return all(self.record.replied_since(line.voice_started_at) for line in self.record.lines if line.wants_answer)

    def _bot_speaks(self, since: float) -> bool:
        """Return whether somebody has received the bot's voice since then. The bot's own event comes only when a reply
        is over.
        """
        now = self._loop.time()
        return any(self._stage.voiced(user_id, since, now) for user_id in self.record.present(now, now))

    # -- when a step is due ---------------------------------------------------------------------------------

    async def _step(self, number: int, step: ScenarioStep) -> None:
        await self._wait_until_due(number, step)
        timing = self._timings[number]
        started_at = self._loop.time()
        try:
            await self._perform(number, step, timing)
        finally:
            now = self._loop.time()
            timing.end(now)
            if step.id:
                self.record.step_times[step.id] = started_at, now

    async def _wait_until_due(self, number: int, step: ScenarioStep) -> None:
        if number == 0:
            await self._sleep_until(self.record.live_at + (step.gap_s or 0.0))
            return
        before = self._preceding_step(number, step)
        if step.overlap_s is not None:
            spoken_until: float = await asyncio.shield(self._timings[before].expected_end)
            await self._sleep_until(spoken_until - step.overlap_s)
            return
        await self._timings[before].over.wait()
        answered = getattr(self._scenario.steps[before], "answered", None)
        # In writing, people let the bot answer.
        event = step.after or (AFTER_REPLY if answered and self._scenario.written else "")
        if event in AFTER_EVENTS:
            await self._wait_for(event, number, step)
        await self._sleep_until(self._loop.time() + self._gap_s(step))

    def _preceding_step(self, number: int, step: ScenarioStep) -> int:
        for earlier in range(number):
            if step.after and self._scenario.steps[earlier].id == step.after:
                return earlier
        return number - 1

    def _gap_s(self, step: ScenarioStep) -> float:
        if step.gap_s is not None:
            return step.gap_s
        return SPEECH_GAP_S if isinstance(step, SayStep) else 0.0

    async def _sleep_until(self, moment: float) -> None:
        delay_s = moment - self._loop.time()
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    # -- what a step does ----------------------------------------------------------------------------------

    async def _perform(self, number: int, step: ScenarioStep, timing: StepTiming) -> None:
        match step:
            case SayStep():
                await self._say(number, step, timing)
            case JoinStep():
                await self._enter(step.who)
                self._report_event(f"{self._scenario.person(step.who).name} joins")
            case LeaveStep():
                await self._leave(step.who)
            case CommandStep() | ShowStep() | StopSharingStep() | SendStep():
                await self._act(number, step)
            case ServerStep():
                self._report_event(f"the {step.server} server: {step.conduct}")
                await self._servers.set_behaviour(step)
            case WaitStep():
                await self._wait_for(step.wait_for, number, step)
            case _:
                assert_never(step)

    async def _say(self, number: int, step: SayStep, timing: StepTiming) -> None:
        person = self._scenario.person(step.who)
        async with self._speech_locks[step.who]:
            started_at = self._loop.time()
            expected_end = started_at + self._stage.speech_s(step)
            timing.expected_end.set_result(expected_end)
            line = SpokenLine(
                number, step.id, person.id, person.name, step.say, started_at, expected_end, wants_answer=step.answered
            )
            self.record.add_line(line)
            self._observer.spoken(started_at - self.record.live_at, person.name, step.say)
            begun_at, ended_at = await self._stage.say(person.id, step)
            self.record.add_line(replace(line, voice_started_at=begun_at, voice_ended_at=ended_at, over=True))

    async def _act(self, number: int, step: PersonStep) -> None:
        person = self._scenario.person(step.who)
        rooms = self.record.rooms_ready
        self._report_event(f"{person.name} {_told(step)}")
        if missed := await self._stage.act(person.id, step):
            self._note_failed_wait(number, missed, step.timeout_s)
        if not isinstance(step, CommandStep) or step.command != "join":
            return
        if not await self.record.wait_until(lambda: self.record.rooms_ready > rooms, timeout_s=step.timeout_s):
            raise RunError(
                f"The bot did not come into the voice channel within {step.timeout_s:g} s of /join. "
                "`roomtone tail` shows what it was doing."
            )
        now = self._loop.time()
        for user_id in self.record.present(now, now):
            await self._stage.meet(user_id)

    async def _enter(self, key: str) -> None:
        person = self._scenario.person(key)
        await self._move(self._stage.enter(person.id), f"{person.name} could not enter")
        self.record.note_entered(person.id, self._loop.time())

    async def _leave(self, key: str) -> None:
        person = self._scenario.person(key)
        self.record.note_left(person.id, self._loop.time())
        self._report_event(f"{person.name} leaves")
        await self._move(self._stage.leave(person.id), f"{person.name} could not leave")

    async def _move(self, moving: Awaitable[None], otherwise: str) -> None:
        try:
            async with asyncio.timeout(ENTER_TIMEOUT_S):
                await moving
        except TimeoutError as exc:
            raise RunError(f"{otherwise} the voice channel in {ENTER_TIMEOUT_S:g} s.") from exc

    # -- waiting -------------------------------------------------------------------------------------------

    async def _wait_for(self, event: str, number: int, step: ScenarioStep) -> None:
        """Wait for what `after` or `wait_for` names, for the step's `timeout_s` at most."""
        if event == "quiet":
            if not await self._settle(step.timeout_s):
                self._note_failed_wait(number, "it did not become quiet", step.timeout_s)
            return
        record, since = self.record, self._last_line_at(number)
        cursor, contains = getattr(step, "new_cursor", None) or 1, getattr(step, "contains", "")
        events: dict[str, tuple[Callable[[], bool], str]] = {
            "reply": (lambda: record.replied_since(since), "the bot did not speak"),
            "voice": (lambda: self._bot_speaks(since), "nobody heard the bot's voice"),
            "heard": (lambda: record.all_lines_heard, "not all that was said became text"),
            "posted": (lambda: any(contains in text for text in self._stage.messages), f"no message had {contains!r}"),
            "compaction": (
                lambda: any(done.new_cursor >= cursor for done in record.compactions),
                f"no compaction reached cursor {cursor}",
            ),
        }
        holds, missed = events[event]
        deadline = self._loop.time() + step.timeout_s
        # No event of the bot tells of its voice and its messages.
        while not await record.wait_until(holds, timeout_s=min(POLL_S, max(0.0, deadline - self._loop.time()))):
            if self._loop.time() >= deadline:
                self._note_failed_wait(number, missed, step.timeout_s)
                return

    def _last_line_at(self, number: int) -> float:
        """Return the time at which the last line before this step began."""
        last = max((other for other in self.record.lines_by_step if other < number), default=None)
        return self.record.lines_by_step[last].voice_started_at if last is not None else self.record.live_at

    def _note_failed_wait(self, number: int, what: str, timeout_s: float) -> None:
        text = f"step {number + 1}: {what} within {timeout_s:g} s"
        self.record.failed_waits.append(text)
        self._observer.troubled(self._loop.time() - self.record.live_at, text)

    def _report_event(self, text: str) -> None:
        self._observer.happened(self._loop.time() - self.record.live_at, text)


def _told(step: PersonStep) -> str:
    """Return what somebody does in a step, as the display tells it."""
    match step:
        case CommandStep():
            return f"uses /{step.command}"
        case ShowStep():
            return f"shows {step.shows.name}"
        case StopSharingStep():
            return "stops sharing"
        case SendStep():
            return "sends a voice message"
