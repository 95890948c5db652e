"""The errors of benchmarks, named by who must act."""

from __future__ import annotations

from bot.errors import BotError


class BenchmarkError(BotError):
    """Base of what a benchmark raises. The message is a plain sentence with the remedy."""


class TranscriptFormatError(BenchmarkError):
    """A conversation to be measured with cannot be read: whoever brought it must change the file."""


class EndpointError(BenchmarkError):
    """The language model that was to be used cannot be reached or started."""


class PeerError(BenchmarkError):
    """Another library could not be installed or run; the report says so and the rest goes on."""
