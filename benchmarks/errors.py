"""The errors of benchmarks."""

from __future__ import annotations

from bot.errors import BotError


class BenchmarkError(BotError):
    """Base class of the benchmarks' errors. The message is a plain sentence with the remedy."""


class TranscriptFormatError(BenchmarkError):
    """A supplied conversation cannot be read: the user must change the file."""
