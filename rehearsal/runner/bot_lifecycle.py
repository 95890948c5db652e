"""Runs the bot during one run: start, watch for crashes, stop."""

from __future__ import annotations

import asyncio
import time

from bot import events
from compaction.model import Seq, Turn, TurnKind, TurnPart
from rehearsal.errors import RehearsalError
from rehearsal.runner.ports import BotSetup, BotUnderTest, DiscordAddresses, RunError, RunObserver, StartBot
from rehearsal.runner.record import BotCrashed, LoggedProblem, Observation, RunRecord
from rehearsal.script.scenario import HistoryTurn, Scenario

# On a slow machine, loading a recogniser and a voice takes this long.
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 20.0
# How fast a turn of the history was spoken: the file has only its start time.
WORDS_A_SECOND = 3.0


class BotLifecycle:
    """Owns the bot for one run. All events of the bot go into the record and to the observer."""

    def __init__(
        self,
        scenario: Scenario,
        bot: BotUnderTest,
        start: StartBot,
        record: RunRecord,
        observer: RunObserver,
    ) -> None:
        self._scenario = scenario
        self._bot = bot
        self._start = start
        self._record = record
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        # False after the bot was stopped on purpose, so that its end is not taken for a crash.
        self._running = False

    async def start(self) -> None:
        """Start the bot. Raises `RunError`."""
        self._running = True
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start(self._observe)
        except TimeoutError as exc:
            raise RunError(f"The bot did not start within {START_TIMEOUT_S:g} s.") from exc
        except RehearsalError:
            raise
        # The bot raises its own kinds of errors, which the rehearsal must not import.
        except Exception as exc:
            raise RunError(f"The bot could not start: {exc}") from exc

    async def watch(self) -> None:
        """Watch for a crash. This never returns: it raises `RunError` when the bot ends on its own."""
        while not await self._record.wait_until(lambda: self._record.crash is not None, timeout_s=3600):
            pass
        crash = self._record.crash
        raise RunError(f"The bot ended in the middle of the run: {crash.detail if crash else ''}")

    async def stop(self) -> None:
        """Stop the bot in order, or kill it when it does not end in time. Never raises: failures go into the record."""
        self._running = False
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._bot.stop()
        except TimeoutError:
            await self._end_at_once()
            self._observe(LoggedProblem("bot_stop_timed_out", f"it was killed after {STOP_TIMEOUT_S:g} s"))
        except Exception as exc:  # noqa: BLE001 - the report must be written whatever the bot does at its end
            self._observe(LoggedProblem("bot_stop_failed", f"{type(exc).__name__}: {exc}"))

    async def _end_at_once(self) -> None:
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await self._bot.kill()
        except TimeoutError:
            self._observe(LoggedProblem("bot_kill_timed_out", f"it was still there after {KILL_TIMEOUT_S:g} s"))

    def _observe(self, observation: Observation) -> None:
        """Record an event of the bot, and pass it on to the observer."""
        if isinstance(observation, BotCrashed) and not self._running:
            return
        self._record.observe(observation)
        now_s = self._loop.time() - self._record.live_at
        match observation:
            case events.UtteranceTranscribed(text_at=at) | events.SpeechDropped(at=at):
                latency_ms = (at - observation.ended_at) * 1000
                self._observer.heard(now_s, self._scenario.name_of(observation.speaker_id), observation, latency_ms)
            case events.ReplySpoken():
                self._observer.replied(now_s, observation, self._latency_ms(observation))
            case events.CompactionLanded() | events.CompactionFailed():
                self._observer.compacted(now_s, observation)
            case LoggedProblem(level="error"):
                self._observer.troubled(now_s, f"error: {observation.event} {observation.detail}".strip())
            case LoggedProblem():
                self._observer.happened(now_s, f"warning: {observation.event} {observation.detail}".strip())
            case BotCrashed():
                self._observer.troubled(now_s, f"the bot ended: {observation.detail}")

    def _latency_ms(self, reply: events.ReplySpoken) -> float | None:
        """Return the time from the end of the answered speech to the first sound of the reply, or None if it is not
        known.
        """
        asked = (heard.ended_at for heard in self._record.utterances if heard.utterance_id == reply.utterance_id)
        return next(((reply.first_audio_at - ended_at) * 1000 for ended_at in asked), None)


def bot_setup(scenario: Scenario, discord: DiscordAddresses) -> BotSetup:
    """Return what the bot of a scenario is started with in a local Discord. Its history ends now."""
    live_epoch_s = time.time()
    return BotSetup(
        discord,
        scenario.bot.name,
        scenario.settings,
        tuple(_stored_turn(scenario, seq, turn, live_epoch_s) for seq, turn in enumerate(scenario.history)),
    )


def _stored_turn(scenario: Scenario, seq: int, turn: HistoryTurn, live_epoch_s: float) -> Turn:
    if turn.kind == "assistant":
        speaker_id, name = "assistant", scenario.bot.name
    else:
        person = scenario.person(turn.speaker)
        speaker_id, name = str(person.id), person.name
    begun = live_epoch_s + turn.at
    part = TurnPart(speaker_id, name, turn.text)
    return Turn(Seq(seq), TurnKind(turn.kind), begun, begun + len(turn.text.split()) / WORDS_A_SECOND, (part,))
