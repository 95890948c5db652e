"""The bot's life in one run: started in the local Discord, killed and started again, watched, stopped."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rehearsal.errors import RehearsalError, StageError
from rehearsal.runner.observation import (
    CompactionFailed,
    CompactionLanded,
    CompanionCrashed,
    Environment,
    Problem,
    ReplySpoken,
    StoredTurn,
    UtteranceHeard,
)

if TYPE_CHECKING:
    from rehearsal.runner.audience import Audience
    from rehearsal.runner.observation import Companion, Observation
    from rehearsal.runner.record import Record
    from rehearsal.runner.venue import Venue
    from rehearsal.script.scenario import HistoryTurn, Scenario

# Loading a recogniser and a voice on a slow machine, once.
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 20.0


class BotLife:
    """Owns the companion for one run: everything it reports goes into the record and to the audience."""

    def __init__(
        self, scenario: Scenario, venue: Venue, companion: Companion, record: Record, audience: Audience
    ) -> None:
        """The companion is not started yet."""
        self._scenario = scenario
        self._companion = companion
        self._record = record
        self._audience = audience
        self._loop = asyncio.get_running_loop()
        self._environment = _environment(scenario, venue, live_epoch_s=time.time())
        # A bot that was killed on purpose has not crashed.
        self._expected = False

    async def start(self) -> None:
        """Start it with the history. Raises `StageError`."""
        await self._start(self._environment)

    async def restart(self) -> None:
        """Start it on what it had stored. Raises `StageError`."""
        self._record.new_process()
        await self._start(replace(self._environment, history=()))

    async def kill(self) -> None:
        """End it as SIGKILL would."""
        self._expected = False
        await self._end_at_once()

    async def watch(self) -> None:
        """Return never; raise `StageError` when it ends without being asked to."""
        while not await self._record.until(lambda: self._record.crash is not None, timeout_s=3600):
            pass
        crash = self._record.crash
        raise StageError(f"The bot ended in the middle of the run: {crash.detail if crash else ''}")

    async def stop(self) -> None:
        """End it in order, or kill it when it will not end. Never raises; troubles go into the record."""
        self._expected = False
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._companion.stop()
        except TimeoutError:
            await self._end_at_once()
            self._observe(Problem("bot_stop_timed_out", f"it was killed after {STOP_TIMEOUT_S:g} s"))
        except Exception as exc:  # noqa: BLE001 - the report must be written whatever the bot does at its end
            self._observe(Problem("bot_stop_failed", f"{type(exc).__name__}: {exc}"))

    async def _end_at_once(self) -> None:
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await self._companion.kill()
        except TimeoutError:
            self._observe(Problem("bot_kill_timed_out", f"it was still there after {KILL_TIMEOUT_S:g} s"))

    async def _start(self, environment: Environment) -> None:
        self._expected = True
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._companion.start(environment, self._observe)
        except TimeoutError as exc:
            raise StageError(f"The bot did not start within {START_TIMEOUT_S:g} s.") from exc
        except RehearsalError:
            raise
        # Whatever the bot raises is its own kind of error, which the rehearsal must not know.
        except Exception as exc:
            raise StageError(f"The bot could not start: {exc}") from exc

    def _observe(self, observation: Observation) -> None:
        """Take one report of the bot's, and tell the audience what it can see of it."""
        if isinstance(observation, CompanionCrashed) and not self._expected:
            return
        self._record.observe(observation)
        now_s = self._loop.time() - self._record.live_at
        match observation:
            case UtteranceHeard():
                latency_ms = (observation.text_at - observation.ended_at) * 1000
                self._audience.heard(now_s, self._name(observation.speaker_id), observation, latency_ms)
            case ReplySpoken():
                self._audience.replied(now_s, observation, self._latency_ms(observation))
            case CompactionLanded() | CompactionFailed():
                self._audience.compacted(now_s, observation)
            case Problem(level="error"):
                self._audience.troubled(now_s, f"error: {observation.event} {observation.detail}".strip())
            case Problem():
                self._audience.happened(now_s, f"warning: {observation.event} {observation.detail}".strip())
            case CompanionCrashed():
                self._audience.troubled(now_s, f"the bot ended: {observation.detail}")
            case _:
                pass

    def _latency_ms(self, reply: ReplySpoken) -> float | None:
        """Return the time from what it answers, if anything, to its first sound, as far as it is known already."""
        if reply.unasked:
            return None
        asked = [
            heard
            for heard in self._record.taken
            if heard.ended_at <= reply.first_audio_at and reply.utterance_id in (None, heard.utterance_id)
        ]
        return (reply.first_audio_at - max(heard.ended_at for heard in asked)) * 1000 if asked else None

    def _name(self, user_id: int) -> str:
        return next((person.name for person in self._scenario.people if person.id == user_id), str(user_id))


def _environment(scenario: Scenario, venue: Venue, *, live_epoch_s: float) -> Environment:
    at = venue.addresses
    return Environment(
        api_base=at.api_base,
        gateway_url=at.gateway_url,
        certificate_path=at.certificate_path,
        token=at.token,
        guild_id=at.guild_id,
        voice_channel_id=at.voice_channel_id,
        text_channel_id=at.text_channel_id,
        bot_name=scenario.bot.name,
        settings=scenario.settings,
        history=tuple(_stored(scenario, turn, live_epoch_s) for turn in scenario.history),
    )


def _stored(scenario: Scenario, turn: HistoryTurn, live_epoch_s: float) -> StoredTurn:
    if turn.kind == "assistant":
        speaker_id, name = "assistant", scenario.bot.name
    else:
        person = scenario.person(turn.speaker)
        speaker_id, name = str(person.id), person.name
    return StoredTurn(speaker_id, name, turn.text, live_epoch_s + turn.at, turn.kind)
