"""Checks the header of a picture of a shared screen, without decoding it. Pure.

Pictures come from browsers, which an attacker may control. The process that holds the bot's token only counts: it walks
the segments of the header, with limits, and never hands the file to a decoder. `voice.screen.frame_decoder` has the
picture decoded in another process.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

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

# Browsers write about ten segments before the first scan, and some more for a colour profile. A file of 400 KB has room
# for 100,000 empty ones, which cost a decoder 140 ms.
MAX_SEGMENTS: Final = 64
# A picture straight from a browser has one scan, or one for each colour. Each further scan makes the decoder process
# the whole picture again, and thousands of scans fit into a small file. The marker's two bytes never occur within a
# scan's data.
_MAX_SCANS: Final = 4
_JPEG_START: Final = b"\xff\xd8\xff"
_JPEG_END: Final = b"\xff\xd9"
_SCAN: Final = b"\xff\xda"
# The second byte of the marker that begins a segment (ITU T.81, table B.1).
_START_OF_SCAN: Final = 0xDA
_SEQUENTIAL: Final = frozenset({0xC0, 0xC1})
# A scan or another frame header out of its turn, and frame headers of coding processes that the page does not ask for:
# progressive, lossless, hierarchical, arithmetic. 0xC4, 0xC8 and 0xCC in between are tables.
_REFUSED: Final = frozenset({_START_OF_SCAN, *range(0xC0, 0xD0)}) - {0xC4, 0xC8, 0xCC}
# Markers without a length. None of them belongs before the first scan.
_STANDALONE: Final = frozenset({0x00, 0x01, *range(0xD0, 0xDA), 0xFF})
_APP2: Final = 0xE2
# An APP2 segment that begins so lists further pictures in the same file.
_MULTI_PICTURE: Final = b"MPF\0"
_SIDES: Final = struct.Struct(">BHHB")
_HASH_CHARS: Final = 16


class FrameRefusedError(Exception):
    """A picture is none that the page sends, or is damaged."""


@dataclass(frozen=True, slots=True, eq=False)
class ScreenFrame:
    """A checked picture. `luma`: grey, uint8, (180, 320). `hash` identifies the picture, which is never stored."""

    jpeg: bytes
    luma: NDArray[np.uint8]
    hash: str


def check_header(data: bytes) -> None:
    """Raise `FrameRefusedError` unless the header of the picture file `data` is one that the page sends. Reads at most
    `MAX_SEGMENTS` segments.

    Takes less than a millisecond for any input. The picture itself may still be damaged.
    """
    if len(data) > MAX_FRAME_BYTES or not data.startswith(_JPEG_START) or data.count(_SCAN) > _MAX_SCANS:
        raise FrameRefusedError
    # If the end of a file is missing, decoders fill that part of the picture with grey and report no error.
    if not data.rstrip(b"\0").endswith(_JPEG_END):
        raise FrameRefusedError
    _walk(data)


def assemble_frame(data: bytes, luma: bytes) -> ScreenFrame:
    """Return the frame of a checked picture. `luma`: its grey copy, row by row. Raises `FrameRefusedError`."""
    if len(luma) != LUMA_WIDTH * LUMA_HEIGHT:
        raise FrameRefusedError
    return ScreenFrame(
        jpeg=data,
        luma=np.frombuffer(luma, dtype=np.uint8).reshape(LUMA_HEIGHT, LUMA_WIDTH),
        hash=hashlib.sha256(data).hexdigest()[:_HASH_CHARS],
    )


def _walk(data: bytes) -> None:
    """Walk the segments up to the first scan, with one frame header among them."""
    is_sized = False
    at = len(_JPEG_START) - 1
    for _ in range(MAX_SEGMENTS):
        # Browsers put no fill bytes between segments, so each begins where the one before ends.
        if at + 4 > len(data) or data[at] != 0xFF or data[at + 1] in _STANDALONE:
            raise FrameRefusedError
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        body, at = data[at + 4 : at + 2 + length], at + 2 + length
        if length < 2 or at > len(data):
            raise FrameRefusedError
        if marker == _START_OF_SCAN and is_sized:
            return
        if marker in _SEQUENTIAL and not is_sized:
            _check_size(body)
            is_sized = True
        elif marker in _REFUSED or (marker == _APP2 and body.startswith(_MULTI_PICTURE)):
            raise FrameRefusedError
    raise FrameRefusedError


def _check_size(body: bytes) -> None:
    """Check the frame header's `body`: precision, height, width, colours, then three bytes a colour."""
    if len(body) < _SIDES.size:
        raise FrameRefusedError
    precision, height, width, colours = _SIDES.unpack_from(body)
    if precision != 8 or colours not in {1, 3} or len(body) != _SIDES.size + 3 * colours:
        raise FrameRefusedError
    if not (MIN_SIDE_PX <= width <= MAX_SIDE_PX and MIN_SIDE_PX <= height <= MAX_SIDE_PX):
        raise FrameRefusedError
