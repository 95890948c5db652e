"""Accepts the pictures of one page: only so many a second, and only those that can be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.texts.text import sentence_of
from voice.screen.frame import FrameRefusedError
from voice.screen.port import VisionError
from voice.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from bot.screen.readers import ScreenReaders
    from bot.texts.text import Text
    from voice.screen.frame import ScreenFrame

# The page sends two pictures each second. A rate of three allows for a fast clock, and a burst of six for a network
# that stalled.
_PICTURES_PER_S = 3.0
_BURST = 6.0
# Refused pictures that a page may send by accident, for example because of a fast clock.
_OFFENCES = 30.0
_OFFENCES_FORGIVEN_PER_S = 0.5
TAKEN = "taken"
DROPPED = "dropped"
# No process could be started to decode the picture, which is not the page's fault.
UNDECODED = "undecoded"


class MisbehavedError(Exception):
    """A page keeps sending pictures that are refused; its share should end."""


class PictureIntake:
    """The intake of one page. `on_trouble`: gets a sentence when no picture can be decoded, and what limits the readers
    when one can again.
    """

    def __init__(self, readers: ScreenReaders, clock: Clock, *, on_trouble: Callable[[Text], None]) -> None:
        self._readers = readers
        self._clock = clock
        self._on_trouble = on_trouble
        self._rate = TokenBucket(rate=_PICTURES_PER_S, burst=_BURST)
        self._offences = TokenBucket(rate=_OFFENCES_FORGIVEN_PER_S, burst=_OFFENCES)
        # Whether no process could be started for the latest picture.
        self._undecoded = False

    async def check(self, data: bytes) -> ScreenFrame | str:
        """Return the decoded picture; or `DROPPED` (too many), `UNDECODED`, or the reason for refusing it."""
        if not self._rate.take(self._clock.monotonic()):
            return DROPPED
        try:
            frame = await self._readers.check(data)
        except FrameRefusedError as error:
            return error.reason.value
        except VisionError as error:
            self._undecoded = True
            self._on_trouble(sentence_of(error))
            return UNDECODED
        if self._undecoded:
            self._undecoded = False
            self._on_trouble(self._readers.limitation)
        return frame

    def hold_against(self, outcome: str) -> None:
        """Count what became of a picture against its page. Raises `MisbehavedError` if too many were not taken."""
        if outcome not in {TAKEN, UNDECODED} and not self._offences.take(self._clock.monotonic()):
            raise MisbehavedError
