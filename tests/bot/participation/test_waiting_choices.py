"""What a server chooses while the database is away holds, and is stored as soon as the database is back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.guild import GuildChoice, Silence, VoiceMode
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.participation.waiting_choices import FIRST_RETRY_S, ChoiceWaitsError, WaitingChoices
from tests.fakes.brain import until
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

GUILD, OTHER, ADA, BO = 10, 11, 1, 2
SILENT = Silence(always=True)


class CountedChoices(FakeGuildChoices):
    """A store that counts how often it is asked to store something, and can refuse one server alone."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.refused: int | None = None
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Count and store it."""
        self.tries += 1
        await self.goes_on.wait()
        self.broken, was_broken = self.broken or guild_id == self.refused, self.broken
        try:
            return await super().choose(guild_id, change, by=by)
        finally:
            self.broken = was_broken


class Waiting:
    """The choices that wait, on a store and a clock."""

    def __init__(self) -> None:
        self.store = CountedChoices()
        self.clock = FakeClock()
        self.choices = WaitingChoices(self.store, self.clock)

    async def silence(self, guild_id: int = GUILD, *, by: int = ADA) -> None:
        """Choose a silence."""
        await self.choices.put(guild_id, "silence", lambda now: replace(now, silence=SILENT), by=by)

    async def mode(self, mode: VoiceMode, *, by: int = ADA) -> None:
        """Choose a mode."""
        await self.choices.put(GUILD, "voice_mode", lambda now: replace(now, voice_mode=mode), by=by)

    async def try_again(self, after_s: float) -> None:
        """Let the task try once more, as soon as it sleeps. It does so after these seconds and no sooner."""
        tries = self.store.tries
        await self.clock.until_somebody_sleeps()
        self.clock.advance(after_s - 0.5)
        assert self.store.tries == tries
        self.clock.advance(0.5)
        await until(lambda: self.store.tries > tries)


@pytest.mark.asyncio
async def test_a_choice_that_can_be_stored_is_stored_at_once() -> None:
    """Nothing waits then."""
    waiting = Waiting()
    async with waiting.choices.running():
        await waiting.silence()
        await waiting.mode(VoiceMode.FREE, by=BO)
        assert waiting.store.stored[GUILD] == GuildChoice(silence=SILENT, voice_mode=VoiceMode.FREE)
        assert (waiting.store.tries, waiting.store.by, waiting.clock.sleeping) == (2, [ADA, BO], 0)


@pytest.mark.asyncio
async def test_what_could_not_be_stored_is_stored_when_the_database_is_back() -> None:
    """It is tried again, with growing pauses, all that waits of a server at once and as the last one who chose."""
    waiting = Waiting()
    waiting.store.broken = True
    async with waiting.choices.running():
        with capture_logs() as logs:
            for choose in (waiting.silence(), waiting.mode(VoiceMode.NAME), waiting.mode(VoiceMode.FREE, by=BO)):
                with pytest.raises(ChoiceWaitsError, match="The disk is full"):
                    await choose
        assert {(each["event"], each["log_level"]) for each in logs} == {("choice_waits", "warning")}
        for pause_s in (FIRST_RETRY_S, 2 * FIRST_RETRY_S, 4 * FIRST_RETRY_S):
            await waiting.try_again(pause_s)
        assert waiting.store.stored == {}
        waiting.store.broken = False
        await waiting.try_again(8 * FIRST_RETRY_S)
        assert waiting.store.stored == {GUILD: GuildChoice(silence=SILENT, voice_mode=VoiceMode.FREE)}
        assert waiting.store.by == [BO]
        # The next failure begins with the shortest pause again.
        waiting.store.broken = True
        with pytest.raises(ChoiceWaitsError):
            await waiting.silence()
        await waiting.try_again(FIRST_RETRY_S)


@pytest.mark.asyncio
async def test_a_choice_takes_along_what_waits_of_its_server() -> None:
    """Somebody chooses again before the task tries; then nothing is left for it."""
    waiting = Waiting()
    async with waiting.choices.running():
        waiting.store.broken = True
        with pytest.raises(ChoiceWaitsError):
            await waiting.silence()
        await waiting.clock.until_somebody_sleeps()
        waiting.store.broken = False
        await waiting.mode(VoiceMode.NAME)
        assert waiting.store.stored[GUILD] == GuildChoice(silence=SILENT, voice_mode=VoiceMode.NAME)
        tries = waiting.store.tries
        waiting.clock.advance(FIRST_RETRY_S)
        await until(lambda: waiting.clock.sleeping == 0)
        assert waiting.store.tries == tries


@pytest.mark.asyncio
async def test_a_server_that_is_refused_keeps_no_other_waiting() -> None:
    """The others come first the next time."""
    waiting = Waiting()
    async with waiting.choices.running():
        waiting.store.broken = True
        for guild_id in (GUILD, OTHER):
            with pytest.raises(ChoiceWaitsError):
                await waiting.silence(guild_id)
        waiting.store.broken, waiting.store.refused = False, GUILD
        await waiting.try_again(FIRST_RETRY_S)
        await waiting.try_again(2 * FIRST_RETRY_S)
        await until(lambda: waiting.store.stored == {OTHER: GuildChoice(silence=SILENT)})


@pytest.mark.asyncio
async def test_whoever_does_not_wait_for_the_store_has_chosen_all_the_same() -> None:
    """A command that is given up meanwhile is tried again."""
    waiting = Waiting()
    async with waiting.choices.running():
        waiting.store.goes_on.clear()
        choosing = asyncio.create_task(waiting.silence(), name="command")
        await until(lambda: waiting.store.tries == 1)
        choosing.cancel()
        await asyncio.wait({choosing})
        waiting.store.goes_on.set()
        await waiting.try_again(FIRST_RETRY_S)
        assert waiting.store.stored == {GUILD: GuildChoice(silence=SILENT)}


@pytest.mark.asyncio
async def test_a_silence_that_could_not_be_stored_holds_after_a_restart() -> None:
    """If the database was back before the restart, nobody is spoken to, and what was lifted meanwhile is lifted."""
    choices, clock = CountedChoices(), FakeClock()

    def process() -> GuildParticipations:
        return GuildParticipations(
            choices, FakeOptOuts(), ParticipationSettings(), wake_names=("Roomtone",), clock=clock
        )

    for lifted in (False, True):
        participation = process()
        async with participation.running():
            await participation.of_guild(GUILD)
            choices.broken = True
            with pytest.raises(ChoiceWaitsError):
                await participation.silence_always(GUILD, by=ADA)
            if lifted:
                with pytest.raises(ChoiceWaitsError):
                    await participation.lift_silence(GUILD, by=ADA, moderator=True)
            choices.broken, tries = False, choices.tries
            await clock.until_somebody_sleeps()
            clock.advance(FIRST_RETRY_S)
            await until(lambda tries=tries: choices.tries > tries)  # type: ignore[misc]
        again = await process().of_guild(GUILD)
        assert again.silence.always is not lifted
