"""Draws the samples of long runs as one SVG: a column for each run, a row for each figure.

The warm-up is shaded. Memory has the line of its growth after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tests.endurance.samples import WARM_UP_S, middle_line

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
_TEXT, _LINE, _AXIS, _GROWTH = "#7a7f87", "#3b82c4", "#b4b8bf", "#d97706"


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
            points = list(zip(samples["at_s"], samples[figure], strict=True))
            parts += _panel(left, top, words, points)
            if figure == "memory_mb":
                parts += _growth(left, top, points)
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
    shaded = min(1.0, WARM_UP_S / end_s) * _WIDTH
    return [
        f'<rect x="{left}" y="{top}" width="{shaded:.1f}" height="{_HEIGHT}" fill="{_AXIS}" fill-opacity="0.25"/>',
        f'<polyline points="{left},{top} {left},{bottom} {left + _WIDTH},{bottom}" fill="none" stroke="{_AXIS}"/>',
        f'<polyline points="{curve}" fill="none" stroke="{_LINE}" stroke-width="1.6"/>',
        f'<text x="{left}" y="{top - 4}">{escape(words)}</text>',
        f'<text x="{left - 4}" y="{top + 12}" text-anchor="end">{most:,.4g}</text>',
        f'<text x="{left - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left + _WIDTH}" y="{bottom + 13}" text-anchor="end">{end}</text>',
    ]


def _growth(left: int, top: int, points: Sequence[tuple[float, float]]) -> list[str]:
    """Return the line of memory after the warm-up and what it says, or nothing if the run was too short for one."""
    settled = [(at_s, value) for at_s, value in points if at_s >= WARM_UP_S]
    line = middle_line([at_s / 3600 for at_s, _ in settled], [value for _, value in settled])
    if line is None:
        return []
    end_s, most = points[-1][0], max(value for _, value in points) or 1.0
    (x1, y1), (x2, y2) = (
        (left + at_s / end_s * _WIDTH, top + _HEIGHT - line.at(at_s / 3600) / most * (_HEIGHT - 8))
        for at_s in (settled[0][0], end_s)
    )
    return [
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_GROWTH}" stroke-dasharray="5 4"/>',
        (
            f'<text x="{left + _WIDTH}" y="{top + _HEIGHT - 8}" text-anchor="end" fill="{_GROWTH}">'
            f"{line.an_hour:+.3g} MB an hour</text>"
        ),
    ]
