"""Draws the samples of long runs as one SVG: a column for each run, a row for each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIGURES: Mapping[str, str] = {
    "memory_mb": "memory, MB",
    "threads": "threads",
    "descriptors": "file descriptors",
    "payload_tokens": "payload, tokens",
}
_WIDTH, _HEIGHT = 380, 110
_LEFT, _TOP, _GAP = 58, 34, 34
# Grey and blue that are readable on white and on black.
_TEXT, _LINE, _AXIS = "#7a7f87", "#3b82c4", "#b4b8bf"


def draw(runs: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the SVG. `runs`: by title, the moments (`at_s`) and the values of each figure at these. Every row starts
    at zero.
    """
    drawn = {title: samples for title, samples in runs.items() if samples["at_s"]}
    width = len(drawn) * (_WIDTH + _LEFT) + 16
    height = _TOP + len(FIGURES) * (_HEIGHT + _GAP)
    size, font = f'viewBox="0 0 {width} {height}"', 'font-family="sans-serif" font-size="11"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} fill="{_TEXT}" role="img">']
    for column, (title, samples) in enumerate(drawn.items()):
        left = column * (_WIDTH + _LEFT) + _LEFT
        parts.append(f'<text x="{left}" y="14" font-size="13" font-weight="bold">{escape(title)}</text>')
        for row, (figure, words) in enumerate(FIGURES.items()):
            top = _TOP + row * (_HEIGHT + _GAP)
            parts += _panel(left, top, words, list(zip(samples["at_s"], samples[figure], strict=True)))
    return "\n".join((*parts, "</svg>")) + "\n"


def _panel(left: int, top: int, words: str, points: Sequence[tuple[float, float]]) -> list[str]:
    """Return one figure's curve with its axes."""
    end_s = points[-1][0] or 1.0
    most = max(value for _, value in points) or 1.0
    bottom = top + _HEIGHT
    curve = " ".join(
        f"{left + at / end_s * _WIDTH:.1f},{bottom - value / most * (_HEIGHT - 8):.1f}" for at, value in points
    )
    hours = end_s / 3600
    end = f"{hours:.3g} h" if hours >= 1 else f"{end_s / 60:.3g} min"
    return [
        f'<polyline points="{left},{top} {left},{bottom} {left + _WIDTH},{bottom}" fill="none" stroke="{_AXIS}"/>',
        f'<polyline points="{curve}" fill="none" stroke="{_LINE}" stroke-width="1.6"/>',
        f'<text x="{left}" y="{top - 4}">{escape(words)}</text>',
        f'<text x="{left - 4}" y="{top + 12}" text-anchor="end">{most:,.4g}</text>',
        f'<text x="{left - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left + _WIDTH}" y="{bottom + 13}" text-anchor="end">{end}</text>',
    ]
