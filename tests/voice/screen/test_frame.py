"""Browser pictures are accepted; anything else is refused with a reason, from a bounded part of the header."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.voice.screen.screens import jpeg, own_frame, promising, screen
from voice.screen.frame import (
    LUMA_HEIGHT,
    LUMA_WIDTH,
    MAX_FRAME_BYTES,
    MAX_SEGMENTS,
    MAX_SIDE_PX,
    FrameRefusedError,
    check_header,
)

GOOD = jpeg(screen())
SIZE_AT = GOOD.index(b"\xff\xc0")
SCAN_AT = GOOD.index(b"\xff\xda")
EMPTY_SEGMENT = b"\xff\xe1\0\2"


def other(kind: str) -> bytes:
    file = io.BytesIO()
    screen().resize((320, 180)).save(file, kind)
    return file.getvalue()


def stuffed(segments: bytes) -> bytes:
    """Return the picture with more bytes at the beginning of its header."""
    return GOOD[:2] + segments + GOOD[2:]


def test_a_picture_is_taken() -> None:
    """A picture is accepted with a grey copy for change detection, and a hash."""
    frame = own_frame(GOOD)
    assert frame.luma.shape == (LUMA_HEIGHT, LUMA_WIDTH)
    assert frame.luma.dtype == np.uint8
    assert abs(float(frame.luma.mean()) - 90) < 20
    assert frame.hash != own_frame(jpeg(screen(scene=2))).hash
    assert len(frame.hash) == 16
    # The limit applies to the longer side, and browsers send colours, but need not.
    check_header(jpeg(screen().resize((700, 1280)).convert("L")))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        GOOD[:2],
        b"\xff\xd8\xff" + b"\0" * 100 + b"\xff\xd9",
        b"\xff\xd8\xff\xd9",
        other("PNG"),
        other("WEBP"),
        other("GIF"),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        GOOD + b"\0" * MAX_FRAME_BYTES,
        GOOD[: len(GOOD) // 2],
        jpeg(screen(), progressive=True),
        GOOD[:-2] + b"\xff\xda" * 50 + GOOD[-2:],
        promising(GOOD, 65_000, 65_000),
        promising(GOOD, MAX_SIDE_PX + 1, 720),
        jpeg(Image.new("RGB", (1300, 700))),
        jpeg(Image.new("RGB", (16, 16))),
        jpeg(screen().convert("CMYK")),
        stuffed(EMPTY_SEGMENT * MAX_SEGMENTS),
        b"\xff\xd8" + EMPTY_SEGMENT * 99_999 + b"\xff\xd9",
        stuffed(b"\xff" * 100_000),
        stuffed(b"\xff\xe0\xff\xff"),
        stuffed(b"\xff\xe0\0\1"),
        stuffed(b"\xff\xc3\0\2"),
        stuffed(b"\xff\xc0\0\2"),
        stuffed(GOOD[SIZE_AT:SCAN_AT]),
        GOOD[:SIZE_AT] + GOOD[SCAN_AT:],
    ],
)
def test_a_bad_picture_is_refused(data: bytes) -> None:
    """Wrong types, huge pictures, incomplete files, too many scans and wrong sizes."""
    with pytest.raises(FrameRefusedError):
        check_header(data)


def test_several_pictures_in_one_are_refused() -> None:
    """A JPEG that carries a second picture is refused."""
    file = io.BytesIO()
    screen().save(file, "MPO", save_all=True, append_images=[screen(scene=2)], quality=40)
    with pytest.raises(FrameRefusedError):
        check_header(file.getvalue())


class CountedBytes(bytes):
    """Counts how often a part of the file is looked at."""

    looks = 0

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("segments", [EMPTY_SEGMENT * 90_000, b"\xff" * 300_000, b"\xff\xfe\0\3x" * 60_000])
def test_a_header_of_100_000_segments_costs_no_more_than_64(segments: bytes) -> None:
    """The check looks at a bounded number of places, however many segments a file has."""
    data = CountedBytes(stuffed(segments)[: MAX_FRAME_BYTES - 2] + b"\xff\xd9")
    with pytest.raises(FrameRefusedError):
        check_header(data)
    assert data.looks <= 6 * MAX_SEGMENTS


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=30), st.data())
def test_no_damage_does_more_than_be_refused(changes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever bytes are damaged, the check refuses or finds a size within the limits, and raises nothing else."""
    broken = bytearray(GOOD)
    for at, value in changes:
        broken[at] = value
    broken[data.draw(st.integers(0, 700))] = data.draw(st.integers(0, 255))
    try:
        check_header(bytes(broken))
    except FrameRefusedError:
        return
    with suppress(OSError, SyntaxError), Image.open(io.BytesIO(broken), formats=["JPEG"]) as image:
        assert max(image.size) <= MAX_SIDE_PX
