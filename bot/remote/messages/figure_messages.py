"""What a room's process tells the gateway process of the figures that it measures."""

from __future__ import annotations

from dataclasses import dataclass

from bot.monitoring.process_figures import Series
from bot.remote.messages.frames import Notice


@dataclass(frozen=True, slots=True)
class FiguresTold(Notice):
    """All that the process has measured since it began. Its rooms tell the same figures, so none is counted twice."""

    series: tuple[Series, ...]
