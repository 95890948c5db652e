"""The port of screen readers, and the values that pass through it.

Embedded character recognition (`voice.screen.ocr`) implements it; the service brings a vision model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from voice.errors import VoiceError
from voice.screen.frame_diff import WHOLE, Box

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.screen.ocr_text import OcrLine


class VisionSource(StrEnum):
    """What read the screen."""

    OCR = "ocr"
    MODEL = "model"


class VisionError(VoiceError):
    """A picture could not be read: the reader is missing, hung or refused. The message is a plain sentence."""


class NoPictureError(VisionError):
    """There is no picture to read, or none any more. No reader failed."""


@dataclass(frozen=True, slots=True)
class VisionRequest:
    """A picture to read. `boxes`: which parts; `who`: who shares it; `before`: the last note, so that a model can tell
    what is new; `question`: what somebody wants to know, or empty."""

    jpeg: bytes
    boxes: tuple[Box, ...] = (WHOLE,)
    who: str = ""
    before: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class VisionReading:
    """The result: lines of text with their places (OCR), or a description (a model)."""

    source: VisionSource
    lines: tuple[OcrLine, ...] = ()
    description: str = ""


# Returns what is to be read; called when the reader's turn for it has come, so that it is the latest there is. It
# raises `NoPictureError` when there is nothing to look at any more.
LatestRequest: TypeAlias = "Callable[[], VisionRequest]"


class VisionReader(Protocol):
    """Reads pictures, one at a time. Made and closed by its owner; safe for all tasks of one loop."""

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """Return what is on the screen. `urgent`: somebody waits for it. Raises `VisionError`.

        *Cancellation*: at once; the answer is dropped.
        """
