"""Synthetic screens for tests: a game's head-up display over a noisy picture."""

from __future__ import annotations

import io
import struct
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tests.patience import PATIENCE_S
from voice.screen import picture_worker
from voice.screen.frame import ScreenFrame, assemble_frame, check_header
from voice.screen.picture_worker import decode_luma

SIZE = (1280, 720)
HUD = (
    (60, 40, "Tokyo 2099: Spider-Islands"),
    (60, 640, "Winter Soldier  HP 87"),
    (900, 40, "Round 2 of 3"),
    (860, 300, "[Ben] push the payload now"),
)


_WITH_TIME = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("picture_worker", sys.argv.pop(1))
worker = module_from_spec(spec)
spec.loader.exec_module(worker)
worker.READ_S = float(sys.argv.pop(1))
worker.main()
"""
# The process that reads, with time for a whole picture: on a busy machine it would leave lines out.
PATIENT_READER = (sys.executable, "-P", "-c", _WITH_TIME, str(picture_worker.__file__), str(PATIENCE_S), "text")


def screen(texts: tuple[tuple[int, int, str], ...] = HUD, *, scene: int = 1, brightness: float = 90) -> Image.Image:
    """Return a screen with `texts` (left, top, words) over noise with the seed `scene`."""
    noise = np.random.default_rng(scene).normal(brightness, 30, (90, 160, 3)).clip(0, 255).astype(np.uint8)
    image = Image.fromarray(noise).resize(SIZE, Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(28)
    for left, top, words in texts:
        draw.text((left, top), words, font=font, fill="white", stroke_width=2, stroke_fill="black")
    return image


def jpeg(image: Image.Image, *, quality: int = 70, **options: object) -> bytes:
    """Encode a picture as a browser would send it."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality, **options)
    return file.getvalue()


def own_frame(data: bytes) -> ScreenFrame:
    """Check and decode a picture of our own in this process."""
    check_header(data)
    return assemble_frame(data, decode_luma(data))


def promising(picture: bytes, width: int, height: int) -> bytes:
    """Return a small JPEG file with a header that claims a picture of that size."""
    data = bytearray(picture)
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)
