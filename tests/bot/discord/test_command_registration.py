"""Registering the commands: the bot starts without it, and goes on trying where that can help."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import discord
import pytest
from structlog.testing import capture_logs

from bot.discord import command_registration
from bot.discord.command_registration import FIRST_PAUSE_S, LONGEST_PAUSE_S, CommandRegistration
from bot.discord.connection import connected
from rehearsal.discord.limits import rate_limits
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import FakeSupervisor, settings_for
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence


def refused(status: int) -> discord.HTTPException:
    """Return Discord's answer with a status."""
    return discord.HTTPException(cast("Any", SimpleNamespace(status=status, reason="")), "<html></html>")


class Discord:
    """Answers attempts with these errors, one after the other, and then takes the commands."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        self.errors = list(errors)
        self.pauses: list[float] = []
        self.taken = asyncio.Event()

    async def register(self) -> None:
        """Take the commands, or refuse them."""
        if self.errors:
            raise self.errors.pop(0)
        self.taken.set()

    async def sleep(self, seconds: float) -> None:
        """Note a pause."""
        self.pauses.append(seconds)


@pytest.mark.asyncio
async def test_what_may_pass_is_tried_again() -> None:
    """Discord's own trouble, its limits and the network's: the pauses grow to half an hour."""
    errors = [refused(503), refused(429), aiohttp.ServerDisconnectedError(), TimeoutError(), *[refused(500)] * 5]
    there = Discord(errors)
    registration = CommandRegistration(there.register, sleep=there.sleep)
    with capture_logs() as logs:
        await registration.begin(wait_s=PATIENCE_S)
    assert there.taken.is_set()
    assert there.pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert there.pauses[-1] == LONGEST_PAUSE_S
    assert {line["event"] for line in logs} == {"commands_not_registered"}
    await registration.close()


@pytest.mark.asyncio
async def test_commands_that_discord_refuses_are_an_error() -> None:
    """Another attempt would not help: the start says so."""
    there = Discord([refused(400)])
    registration = CommandRegistration(there.register, sleep=there.sleep)
    with pytest.raises(discord.HTTPException):
        await registration.begin(wait_s=PATIENCE_S)
    assert there.pauses == []
    await registration.close()


@pytest.mark.asyncio
async def test_the_start_waits_only_a_while() -> None:
    """What Discord says later is in the log."""
    answer = asyncio.Event()

    async def late() -> None:
        await answer.wait()
        raise refused(403)

    registration = CommandRegistration(late)
    with capture_logs() as logs:
        await registration.begin(wait_s=0.0)
        answer.set()
        task = registration._task
        assert task is not None
        await asyncio.wait({task})
        await asyncio.sleep(0)
    assert [line["event"] for line in logs] == ["commands_register_slowly", "commands_refused"]
    await registration.close()


@pytest.mark.asyncio
async def test_the_bot_comes_online_though_discord_takes_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some restarts Discord refuses them for minutes. The commands of the last start are still there."""
    monkeypatch.setattr(command_registration, "START_WAIT_S", 0.0)
    limits = {("PUT", "/applications/{application}/commands"): (1, 3600.0)}
    monkeypatch.setattr(rate_limits, "_LIMITS", limits)
    async with LocalDiscord() as local:
        for _ in range(2):
            async with asyncio.timeout(PATIENCE_S), connected(settings_for(local), FakeSupervisor()) as client:
                assert client.is_ready()
        async with asyncio.timeout(PATIENCE_S), connected(settings_for(local), FakeSupervisor()):
            assert (await local.invoke(2001, "status")).replies
