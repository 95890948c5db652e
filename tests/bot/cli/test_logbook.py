"""The log of every command contains no secrets from the settings."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import structlog

from bot.cli.environment import logging_from_settings
from bot.errors import BotError
from config.load import load

if TYPE_CHECKING:
    from pathlib import Path

KEY = "correct-horse-battery"


def test_a_key_is_written_nowhere(tmp_path: Path) -> None:
    """A secret is redacted in the log file and on the terminal, also in the middle of a sentence."""
    settings = load(
        overrides={"llm.api_key": KEY, "storage.data_dir": str(tmp_path)},
        directory=tmp_path,
        environ={},
    )
    terminal = io.StringIO()
    with logging_from_settings(settings, console=terminal) as logs:
        structlog.get_logger().warning("endpoint_failed", error=BotError(f"400: {KEY} may not use m"))
    written = logs.path.read_text("utf-8")
    assert "[redacted] may not use m" in written
    assert "[redacted] may not use m" in terminal.getvalue()
    assert KEY not in written + terminal.getvalue()
