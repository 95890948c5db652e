"""What a room knows of its parts: each runs, is told what happens, and ends, whatever it does beside that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot import events
    from voice.queue_figures import QueueFigures


class RoomPart:
    """A part of one room. A part has its own of these where it needs them; the room calls all on its loop.

    `task`: the name of the task in which the room runs `run`; empty: there is none.
    """

    task: str = ""

    async def run(self) -> None:
        """Work until the room cancels it. What it raises is a crash of the room."""

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Bring to an end what must not be lost, while `run` still runs. `goes_on`: another process goes on with the
        session. `process_ends`: nobody has sent the bot away.
        """

    def on_event(self, event: events.Event) -> None:
        """Take note of what happens in the room. Does not wait."""

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits in it."""
        return ()
