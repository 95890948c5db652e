"""What is asked of a reader of screens, and its answer: of the OCR (`voice.screen.ocr`), or of a vision model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from voice.errors import VoiceError
from voice.screen.frame_diff import WHOLE, Box

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.screen.ocr_text import OcrLine


class VisionSource(StrEnum):
    """The kind of reader that read the screen."""

    OCR = "ocr"
    MODEL = "model"


class VisionError(VoiceError):
    """A picture could not be read: the reader is missing, hung or refused. The message is a plain sentence."""


class NoPictureError(VisionError):
    """There is no picture to read, or no picture any more. This is not a failure of the reader."""


@dataclass(frozen=True, slots=True)
class VisionRequest:
    """A picture to read. `boxes`: the parts to read. `who`: the person who shares it. `before`: the last note, so that
    a model can say what is new. `question`: what somebody wants to know, or empty.
    """

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


# Returns the picture to read. The reader calls it when the request's turn has come, so the picture is the latest one.
# Raises `NoPictureError` if there is nothing to read any more.
LatestRequest: TypeAlias = "Callable[[], VisionRequest]"
