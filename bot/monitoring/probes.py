"""Answers what monitoring asks: is the process alive, can it do its work, and its metrics.

Implements `bot.web.probes.Probes`. The answers hold kinds and our own sentences, and nothing about people.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.health import Health
    from bot.web.dashboard_port import Json

# The `status` of liveness, by which `roomtone doctor` recognises a bot.
ALIVE: Final = "alive"
DEAD: Final = "dead"
DEGRADED = "{count} of my parts fail and others stand in for them; /status in Discord says which."


class HealthProbes:
    """The probes of one process. `metrics`: returns the metrics and their content type."""

    def __init__(self, health: Health, metrics: Callable[[], tuple[bytes, str]]) -> None:
        self._health = health
        self.metrics = metrics

    def liveness(self) -> tuple[bool, Json]:
        """See `Probes.liveness`. That it answers shows that the event loop runs."""
        if not self._health.needs_restart:
            return True, {"status": ALIVE, "causes": []}
        causes = [
            {"cause": "task", "sentence": f"My task {name} has ended, which is a defect: restart me. The log says why."}
            for name in self._health.dead_tasks()
        ]
        causes += [
            {"cause": fault.kind.value, "sentence": fault.sentence}
            for fault in self._health.faults()
            if fault.needs_restart
        ]
        return False, {"status": DEAD, "causes": causes}

    def readiness(self) -> tuple[bool, Json]:
        """See `Probes.readiness`. The same sentence about several rooms is given once, with their number."""
        faults = Counter(self._health.faults())
        causes = [
            {"cause": fault.kind.value, "sentence": fault.sentence, "count": count} for fault, count in faults.items()
        ]
        degraded = self._health.degraded_count()
        notes = [DEGRADED.format(count=degraded)] if degraded else []
        return not faults, {"status": "not_ready" if faults else "ready", "causes": causes, "notes": notes}
