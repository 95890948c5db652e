"""A benchmark's bot is at its local Discord, and keeps nothing in the operator's database."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.local_bot import settings_at
from bot.tuning import split_overrides
from bot.wiring.settings import BotSettings
from config.load import load


def test_people_who_are_made_up_stay_out_of_the_operator_s_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ROOMTONE_DATABASE_URL is often set where benchmarks run."""
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", "postgresql://roomtone:secret@127.0.0.1/roomtone")
    certificate = tmp_path / "ca.pem"
    certificate.touch()
    discord = {
        "token": "1001.local.benchmark",
        "api_base": "https://127.0.0.1:1/api/v10",
        "gateway": "wss://127.0.0.1:1/gateway",
        "certificate": str(certificate),
    }
    tuning, chosen = split_overrides({"storage.data_dir": str(tmp_path), **settings_at(discord)})
    parts = BotSettings.from_schema(load(overrides=chosen), tuning)
    assert parts.storage.database == tmp_path / "roomtone.db"
    assert parts.discord.api_base == discord["api_base"]
