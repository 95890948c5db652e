"""Which embedded voices are installed, as the models' folder was last seen.

The folder is looked at in a thread, because its disk may hang, and everybody in all rooms would wait for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import structlog

from bot.background_task import logged_task
from bot.models.voices import VOICES
from voice.daemon_thread import STOP_TIMEOUT_S, DaemonThread

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from bot.models.entry import ModelEntry
    from bot.models.voices import EmbeddedVoice

log = structlog.get_logger()

# How long somebody waits for what the folder holds now. Discord waits for three seconds.
LOOK_TIMEOUT_S: Final = 1.0
# Seconds after which the folder is looked at again, when somebody wants a voice that was not there.
LOOK_AGAIN_S: Final = 30.0


class InstalledVoices:
    """Looks at the models' folder when it is entered, and whenever it is asked to. For one event loop.

    `holds`: returns whether a model is there (`ModelDirectory.holds`); it is called in a thread, and may block.
    *Ownership*: an async context manager that owns one thread, and the task that waits for it.
    """

    def __init__(self, holds: Callable[[ModelEntry], bool], monotonic: Callable[[], float]) -> None:
        self._holds = holds
        self._monotonic = monotonic
        self._thread = DaemonThread("models-folder")
        # The names of the models that were there; None before the first answer.
        self._seen: frozenset[str] | None = None
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._thread.start()
        await self.look()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    def holds(self, voice: EmbeddedVoice) -> bool:
        """Return whether the voice was installed when the folder was last seen."""
        return self._seen is not None and voice.model.name in self._seen

    @property
    def is_known(self) -> bool:
        """Whether the folder has answered at all."""
        return self._seen is not None

    async def look(self) -> None:
        """Look at the folder. If its disk does not answer in time, what was seen last counts."""
        await asyncio.wait({self._look_task()}, timeout=LOOK_TIMEOUT_S)

    def look_soon(self) -> None:
        """Begin to look at the folder, unless that was done a moment ago."""
        if self._monotonic() - self._looked_at >= LOOK_AGAIN_S:
            self._look_task()

    def _look_task(self) -> asyncio.Task[None]:
        """Return the task that looks. There is one at a time, so that a disk that hangs is asked once."""
        if self._looking is None or self._looking.done():
            self._looked_at = self._monotonic()
            self._looking = logged_task(self._look(), name="installed-voices")
        return self._looking

    async def _look(self) -> None:
        try:
            self._seen = await asyncio.wrap_future(self._thread.submit(self._see))
        except OSError as error:
            log.warning("voices_not_looked_up", problem=error)

    def _see(self) -> frozenset[str]:
        """Return the models that are there. Runs in the thread."""
        return frozenset(voice.model.name for voice in VOICES if self._holds(voice.model))
