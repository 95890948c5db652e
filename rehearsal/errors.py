"""What can go wrong in a rehearsal, named by who must act. Every message is a plain sentence with the remedy."""

from __future__ import annotations


class RehearsalError(Exception):
    """Base of every error this package raises."""


class ScenarioError(RehearsalError):
    """A scenario, its history or a speech manifest cannot be played: whoever wrote it must change the file.

    `mistakes` holds every one that was found, each a plain sentence with the place and an example.
    """

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class LocalDiscordError(RehearsalError):
    """The local Discord could not start or was asked for something it does not have."""


class PersonError(RehearsalError):
    """A person of the rehearsal could not join, speak or hear."""


class RunError(RehearsalError):
    """The run cannot go on: the bot did not come, crashed, or a wait passed its bound."""


class MlsError(LocalDiscordError):
    """Bytes of the group key exchange are malformed or forged: the client that sent them is at fault."""


class LanguageModelError(RehearsalError):
    """The language model that was to be served here cannot be: a file, a library or its process is at fault."""
