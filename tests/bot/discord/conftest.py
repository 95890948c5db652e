"""Nobody waits here for what is tested elsewhere: Discord's limits (tests/rehearsal), and pauses before another try."""

from __future__ import annotations

import discord
import pytest

from bot.discord import posting
from rehearsal.discord.rest import gate


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(*_: object, **__: object) -> None:
        """Identify without discord.py's pause of five seconds."""

    monkeypatch.setattr(discord.Client, "before_identify_hook", at_once)
    monkeypatch.setattr(gate, "LIMITS", {})
    monkeypatch.setattr(posting, "AGAIN_AFTER_S", 0.0)
