"""The errors of the rehearsal, by who must act. Every message is a plain sentence with the remedy."""

from __future__ import annotations


class RehearsalError(Exception):
    """Base of every error of this package."""


class ScenarioError(RehearsalError):
    """A scenario, its history or a speech manifest has mistakes: its author must change the file.

    `mistakes`: all of them, each a plain sentence with the place and an example.
    """

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class LocalDiscordError(RehearsalError):
    """The local Discord could not start, or a request to it is wrong."""


class PersonError(RehearsalError):
    """A scripted person could not join, speak or hear."""


class RunError(RehearsalError):
    """The run cannot go on: the bot did not come, it crashed, or a wait timed out."""


class MlsError(LocalDiscordError):
    """Bytes of the group key exchange are malformed or forged: the client that sent them is at fault."""


class LanguageModelError(RehearsalError):
    """The local language model could not be served: a file, a library or its process is at fault."""
