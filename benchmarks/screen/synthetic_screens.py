"""Generates screens with known text (a game's head-up display and a chat) over more or less noisy scenes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from voice.screen.frame import assemble_frame, check_header
from voice.screen.picture_worker import decode_luma

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from voice.screen.frame import ScreenFrame

SIZE = (1280, 720)
# The JPEG quality of the page's pictures.
QUALITY = 70
_NAMES = ("Ada", "Ben", "Cleo", "Dev", "Esme")
_SAID = (
    "push the payload now",
    "healer is down",
    "who has the key",
    "wait for the timer",
    "nice shot",
    "back to the bridge",
    "two on the left",
    "heading north",
    "the gate is open",
)
_PLACES = ("Tokyo 2099", "Hell's Heaven", "Castle Yard", "Symbiotic Surface", "Royal Palace", "Klyntar")
_HEROES = ("Winter Soldier", "Luna Snow", "Rocket", "Magneto", "Groot", "Storm")


@dataclass(frozen=True, slots=True)
class ScreenText:
    """Words on a screen, with their position and height in points."""

    left: int
    top: int
    height: int
    words: str


def hud(rng: random.Random, *, height: int = 28) -> list[ScreenText]:
    """Return the texts of a head-up display."""
    return [
        ScreenText(60, 40, height, rng.choice(_PLACES)),
        ScreenText(60, 640, height, f"{rng.choice(_HEROES)}  HP {rng.randint(30, 99)}"),
        ScreenText(940, 40, height, f"Round {rng.randint(1, 3)} of 3"),
        ScreenText(860, 300, height, chat(rng)),
    ]


def chat(rng: random.Random) -> str:
    """Return one chat line."""
    return f"[{rng.choice(_NAMES)}] {rng.choice(_SAID)}"


def scene(seed: int, *, brightness: float = 90, unrest: float = 30) -> Image.Image:
    """Return a scene without text. `unrest`: how much its surface varies (0-255)."""
    noise = np.random.default_rng(seed).normal(brightness, unrest, (90, 160, 3)).clip(0, 255).astype(np.uint8)
    return Image.fromarray(noise).resize(SIZE, Image.Resampling.BICUBIC)


def written(image: Image.Image, texts: Sequence[ScreenText]) -> Image.Image:
    """Return a copy of a picture with the words written on it."""
    copy = image.copy()
    draw = ImageDraw.Draw(copy)
    for text in texts:
        draw.text(
            (text.left, text.top),
            text.words,
            font=ImageFont.load_default(text.height),
            fill="white",
            stroke_width=max(1, text.height // 14),
            stroke_fill="black",
        )
    return copy


def jpeg(image: Image.Image, *, quality: int = QUALITY) -> bytes:
    """Return a picture as a JPEG file, as the page sends it."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def own_frame(data: bytes) -> ScreenFrame:
    """Check and decode a picture of our own in this process."""
    return assemble_frame(data, check_header(data), decode_luma(data))
