"""What the stage asks of the local servers behind a scenario: to behave differently, and what came to them.

`rehearsal.runner.local_servers` runs the real ones; a scenario without any has nobody backstage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rehearsal.errors import StageError

if TYPE_CHECKING:
    from rehearsal.script.scenario import Conduct


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that a model called, and what it was told of it."""

    name: str
    told: str


@dataclass(frozen=True, slots=True)
class ServersSeen:
    """What came to the servers. `heard_ms`: every place at which speech-to-speech was told that it was cut off."""

    tools: tuple[ToolUse, ...] = ()
    heard_ms: tuple[int, ...] = ()
    realtime_sessions: int = 0


class Backstage(Protocol):
    """The servers of one scenario."""

    @property
    def seen(self) -> ServersSeen:
        """Return what came to them so far."""

    async def conduct(self, step: Conduct) -> None:
        """Let a server behave as the step says from now on. Raises `StageError` where it is not there."""


class NobodyBackstage:
    """The backstage of a scenario without servers."""

    @property
    def seen(self) -> ServersSeen:
        """Return nothing."""
        return ServersSeen()

    async def conduct(self, step: Conduct) -> None:
        """Refuse: there is no such server."""
        raise StageError(f'There is no {step.server} server here. Give the scenario a table "[servers.{step.server}]".')
