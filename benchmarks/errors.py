"""The errors of benchmarks."""

from __future__ import annotations

from bot.errors import BotError


class BenchmarkError(BotError):
    """Base class of the benchmarks' errors. The message is a plain sentence with the remedy."""


class TranscriptFormatError(BenchmarkError):
    """A supplied conversation cannot be read: the user must change the file."""


class PeerError(BenchmarkError):
    """Another library could not be installed or run. The report mentions it, and the benchmark continues without it."""


class ModelFormatError(BenchmarkError):
    """A model cannot be converted into another recogniser's format. The benchmark continues without that recogniser."""
