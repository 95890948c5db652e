"""Validates a picture of a shared screen, and makes the small grey copy for change detection.

Pictures come from browsers, which an attacker may control. Nothing is trusted before it is checked, and the check must
be cheap for any input.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image, UnidentifiedImageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The maximum size of a picture that the page sends. A screen full of text at quality 0.7 has about 250 KB.
MAX_FRAME_BYTES: Final = 400_000
# The page scales pictures so that the longer side is at most this.
MAX_SIDE_PX: Final = 1_280
MIN_SIDE_PX: Final = 32
# The size of the copy for change detection: 32 x 18 tiles of 10 x 10 pixels.
LUMA_WIDTH: Final = 320
LUMA_HEIGHT: Final = 180

_JPEG_START: Final = b"\xff\xd8\xff"
_JPEG_END: Final = b"\xff\xd9"
# The marker that begins a scan. A picture straight from a browser has one scan, or one for each colour. Each further
# scan makes the decoder process the whole picture again, and thousands of scans fit into a small file. The marker's two
# bytes never occur within a scan's data.
_SCAN: Final = b"\xff\xda"
_MAX_SCANS: Final = 4
_HASH_CHARS: Final = 16


class FrameRefusal(StrEnum):
    """Why a picture was refused."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NOT_JPEG = "not_jpeg"
    WRONG_SIZE = "wrong_size"
    MANY_FRAMES = "many_frames"
    PROGRESSIVE = "progressive"
    DAMAGED = "damaged"


class FrameRefusedError(Exception):
    """A picture was refused; `reason` says why."""

    def __init__(self, reason: FrameRefusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False)
class ScreenFrame:
    """A checked picture. `luma`: grey, uint8, (180, 320). `hash` identifies the picture, which is never stored."""

    jpeg: bytes
    width: int
    height: int
    luma: NDArray[np.uint8]
    hash: str


def check_frame(data: bytes) -> ScreenFrame:
    """Decode and check the picture file `data`. Raises `FrameRefusedError`.

    Takes about 3 ms for 1280x720, and never more than about 20 ms. Thread-safe.
    """
    if not data:
        raise FrameRefusedError(FrameRefusal.EMPTY)
    if len(data) > MAX_FRAME_BYTES:
        raise FrameRefusedError(FrameRefusal.TOO_LARGE)
    if not data.startswith(_JPEG_START):
        raise FrameRefusedError(FrameRefusal.NOT_JPEG)
    if data.count(_SCAN) > _MAX_SCANS:
        raise FrameRefusedError(FrameRefusal.PROGRESSIVE)
    # If the end of a file is missing, Pillow fills that part of the picture with grey and reports no error.
    if not data.rstrip(b"\0").endswith(_JPEG_END):
        raise FrameRefusedError(FrameRefusal.DAMAGED)
    try:
        with warnings.catch_warnings():
            # Pillow warns about a header with many pixels. The sides are checked below, before any pixel is decoded.
            warnings.simplefilter("ignore")
            return _decoded(data)
    except FrameRefusedError:
        raise
    except Image.DecompressionBombError as error:
        raise FrameRefusedError(FrameRefusal.WRONG_SIZE) from error
    except UnidentifiedImageError as error:
        raise FrameRefusedError(FrameRefusal.NOT_JPEG) from error
    except Exception as error:
        # A hostile file can make the decoder raise almost anything (OSError, ValueError, struct.error, SyntaxError, …).
        raise FrameRefusedError(FrameRefusal.DAMAGED) from error


def _decoded(data: bytes) -> ScreenFrame:
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as image:
        width, height = image.size
        if not (MIN_SIDE_PX <= width <= MAX_SIDE_PX and MIN_SIDE_PX <= height <= MAX_SIDE_PX):
            raise FrameRefusedError(FrameRefusal.WRONG_SIZE)
        if image.format != "JPEG" or getattr(image, "n_frames", 1) != 1:
            raise FrameRefusedError(FrameRefusal.MANY_FRAMES)
        if image.info.get("progressive"):
            raise FrameRefusedError(FrameRefusal.PROGRESSIVE)
        # Decode at an eighth, a quarter or a half of the size, whichever is the smallest that is still large enough.
        # This takes a quarter of the time.
        image.draft("L", (LUMA_WIDTH, LUMA_HEIGHT))
        image.load()
        small = image.convert("L").resize((LUMA_WIDTH, LUMA_HEIGHT), Image.Resampling.BOX)
    return ScreenFrame(
        jpeg=data,
        width=width,
        height=height,
        luma=np.asarray(small, dtype=np.uint8),
        hash=hashlib.sha256(data).hexdigest()[:_HASH_CHARS],
    )
