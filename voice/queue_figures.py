"""How full a queue is, as a value for metrics. Every owner of queues returns one for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue. `name`: in the metrics, the same for the queues of all rooms. `capacity`: None if nothing is ever
    refused or dropped. `dropped`: how much was, by reason, since the queue was made. A smaller number than before means
    that the queue was made anew.
    """

    name: str
    waiting: int
    capacity: int | None
    dropped: Mapping[str, int] = field(default_factory=dict)
