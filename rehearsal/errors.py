"""The errors of the rehearsal, one class for each party that must act. Every message is a plain sentence with the
remedy.
"""

from __future__ import annotations


class RehearsalError(Exception):
    """Base class of every error of this package."""


class ScenarioError(RehearsalError):
    """A scenario, its history or a manifest of recordings has mistakes, so its author must change the file.

    `mistakes`: every mistake as a plain sentence with the place and an example.
    """

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class LocalDiscordError(RehearsalError):
    """The local Discord could not start, or a request to it is wrong."""


class PersonError(RehearsalError):
    """A scripted person could not join, speak or hear."""


class RunError(RehearsalError):
    """The run cannot continue: the bot did not join, it crashed, or a wait timed out."""


class MlsError(LocalDiscordError):
    """A client sent malformed or forged bytes for the group key exchange."""
