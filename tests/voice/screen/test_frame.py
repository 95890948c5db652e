"""Browser pictures are accepted; anything else is refused with a reason."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.voice.screen.screens import jpeg, screen
from voice.screen.frame import (
    LUMA_HEIGHT,
    LUMA_WIDTH,
    MAX_FRAME_BYTES,
    MAX_SIDE_PX,
    FrameRefusal,
    FrameRefusedError,
    check_frame,
)

GOOD = jpeg(screen())


def refusal(data: bytes) -> FrameRefusal:
    with pytest.raises(FrameRefusedError) as caught:
        check_frame(data)
    return caught.value.reason


def other(kind: str) -> bytes:
    file = io.BytesIO()
    screen().resize((320, 180)).save(file, kind)
    return file.getvalue()


def promising(width: int, height: int) -> bytes:
    """Return a small file whose header claims a picture of that size."""
    data = bytearray(GOOD)
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def test_a_picture_is_taken() -> None:
    """A picture is accepted with its size, a grey copy for change detection, and a hash."""
    frame = check_frame(GOOD)
    assert (frame.width, frame.height) == (1280, 720)
    assert frame.luma.shape == (LUMA_HEIGHT, LUMA_WIDTH)
    assert frame.luma.dtype == np.uint8
    assert abs(float(frame.luma.mean()) - 90) < 20
    assert frame.hash != check_frame(jpeg(screen(scene=2))).hash
    assert len(frame.hash) == 16


def test_a_tall_window_is_taken() -> None:
    """A tall picture is accepted, because the limit applies to its longer side."""
    assert check_frame(jpeg(screen().resize((700, 1280)))).height == 1280


def test_grey_is_a_picture_too() -> None:
    """A grey picture is accepted, although browsers send colours."""
    assert check_frame(jpeg(screen().convert("L"))).width == 1280


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", FrameRefusal.EMPTY),
        (b"hello", FrameRefusal.NOT_JPEG),
        (GOOD[:2], FrameRefusal.NOT_JPEG),
        (b"\xff\xd8\xff" + b"\0" * 100 + b"\xff\xd9", FrameRefusal.NOT_JPEG),
        (b"\xff\xd8\xff\xd9", FrameRefusal.NOT_JPEG),
        (other("PNG"), FrameRefusal.NOT_JPEG),
        (other("WEBP"), FrameRefusal.NOT_JPEG),
        (other("GIF"), FrameRefusal.NOT_JPEG),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", FrameRefusal.NOT_JPEG),
        (GOOD + b"\0" * MAX_FRAME_BYTES, FrameRefusal.TOO_LARGE),
        (GOOD[: len(GOOD) // 2], FrameRefusal.DAMAGED),
        (jpeg(screen(), progressive=True), FrameRefusal.PROGRESSIVE),
        (GOOD[:-2] + b"\xff\xda" * 50 + GOOD[-2:], FrameRefusal.PROGRESSIVE),
        (promising(65_000, 65_000), FrameRefusal.WRONG_SIZE),
        (promising(MAX_SIDE_PX + 1, 720), FrameRefusal.WRONG_SIZE),
        (jpeg(Image.new("RGB", (1300, 700))), FrameRefusal.WRONG_SIZE),
        (jpeg(Image.new("RGB", (16, 16))), FrameRefusal.WRONG_SIZE),
    ],
)
def test_a_bad_picture_is_refused_with_its_reason(data: bytes, reason: FrameRefusal) -> None:
    """Wrong types, huge pictures, incomplete files, too many scans and wrong sizes are refused, each with
    its reason.
    """
    assert refusal(data) is reason


def test_several_pictures_in_one_are_refused() -> None:
    """A JPEG that carries a second picture is refused."""
    file = io.BytesIO()
    screen().save(file, "MPO", save_all=True, append_images=[screen(scene=2)], quality=40)
    assert refusal(file.getvalue()) is FrameRefusal.MANY_FRAMES


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=30), st.data())
def test_no_damage_does_more_than_be_refused(changes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Damaged bytes, also in the header, give a picture or a refusal and never another error."""
    broken = bytearray(GOOD)
    for at, value in changes:
        broken[at] = value
    broken[data.draw(st.integers(0, 700))] = data.draw(st.integers(0, 255))
    try:
        frame = check_frame(bytes(broken))
    except FrameRefusedError:
        return
    assert frame.luma.shape == (LUMA_HEIGHT, LUMA_WIDTH)
