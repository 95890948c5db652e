"""Settings of a bot on the local Discord."""

from __future__ import annotations

from pathlib import Path

from bot.wiring.settings import BotSettings
from config.schema import Settings
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import settings_for


def settings_in(folder: Path, local: LocalDiscord, **more: object) -> BotSettings:
    """Return settings for the local Discord, without models on this machine and with a vision endpoint elsewhere.
    `more`: other sections.
    """
    settings = Settings.model_validate(
        {
            "storage": {"data_dir": folder},
            "models": {"directory": folder / "models"},
            "asr": {"base_url": "http://127.0.0.1:9/v1"},
            "web": {"port": 0},
            "screen": {"model": "eyes-1", "base_url": "https://eyes.example.org/v1"},
            **more,
        }
    )
    settings = settings.model_copy(update={"discord": settings_for(local)})
    return BotSettings.from_schema(settings)
