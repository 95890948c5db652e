"""Draws the screens of the bundled scenario `watched`: `python -m rehearsal.scenarios.make_screens`.

Run this by hand to change the pictures, which are committed. They show an invented game: a landscape with a health bar
and a chat, and the final screen of the game. Size and quality are those of the share page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FOLDER = Path(__file__).parent / "watched"
SIZE = (1280, 720)
# The JPEG quality that the share page uses.
QUALITY = 70


@dataclass(frozen=True, slots=True)
class Screen:
    """One screen.

    `sky`, `ground`: colours. `texts`: left, top, height, words. `health`: the filled share of the health bar.
    """

    sky: tuple[int, int, int]
    ground: tuple[int, int, int]
    texts: tuple[tuple[int, int, int, str], ...]
    health: float | None = None


_DAY, _LAWN = (52, 84, 120), (44, 82, 58)
_HUD = ((60, 40, 30, "Castle Yard"), (960, 40, 30, "Round 2 of 3"))
SCREENS = {
    "1-castle.jpg": Screen(_DAY, _LAWN, (*_HUD, (60, 600, 28, "Winter Soldier")), health=0.9),
    "2-danger.jpg": Screen(
        _DAY,
        _LAWN,
        (*_HUD, (60, 600, 28, "Winter Soldier"), (540, 300, 44, "DANGER"), (800, 520, 26, "[Ben] the healer is down")),
        health=0.1,
    ),
    "3-victory.jpg": Screen((14, 12, 24), (34, 24, 44), ((480, 260, 64, "VICTORY"), (490, 380, 34, "Three to one"))),
}


def draw_screen(screen: Screen) -> Image.Image:
    """Return the picture of a screen."""
    image = Image.new("RGB", SIZE, screen.sky)
    draw = ImageDraw.Draw(image)
    width, height = SIZE
    for ridge in range(4):
        shade = tuple(round(part * (0.7 + 0.1 * ridge)) for part in screen.ground)
        line = [
            (x, height * (0.45 + 0.12 * ridge) + 30 * math.sin(x / (70 + 25 * ridge) + 2 * ridge))
            for x in range(0, width + 1, 8)
        ]
        draw.polygon([(0, height), *line, (width, height)], fill=shade)
    if screen.health is not None:
        draw.rectangle((60, 650, 360, 676), fill=(30, 30, 34))
        colour = (200, 60, 50) if screen.health < 0.3 else (70, 180, 90)
        draw.rectangle((60, 650, 60 + 300 * screen.health, 676), fill=colour)
    for left, top, size, words in screen.texts:
        draw.text(
            (left, top), words, font=ImageFont.load_default(size), fill="white", stroke_width=2, stroke_fill="black"
        )
    return image


def main() -> None:
    """Write all pictures into the scenario's folder."""
    for name, screen in SCREENS.items():
        draw_screen(screen).save(FOLDER / name, "JPEG", quality=QUALITY)


if __name__ == "__main__":
    main()
