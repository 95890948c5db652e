"""The base of the rehearsal's errors, and those of the local Discord, one class for each party that must act. Every
message is a plain sentence with the remedy.
"""

from __future__ import annotations


class RehearsalError(Exception):
    """Base class of every error of this package."""


class LocalDiscordError(RehearsalError):
    """The local Discord could not start, or a request to it is wrong."""


class PersonError(RehearsalError):
    """A scripted person could not join, speak or hear."""


class MlsError(LocalDiscordError):
    """A client sent malformed or forged bytes for the group key exchange."""
