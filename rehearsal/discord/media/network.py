"""The conditions of the local network, which can be changed while it runs, and its packet counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class NetworkConditions:
    """Three shares of the packets, each from 0 to 1. A change applies from the next packet on.

    `loss`: packets dropped on the way to one receiver. `padding`: packets sent with RTP padding (the P bit). Even a
    good network pads some: Discord does too, and a client must strip it. `reorder`: packets sent after the next packet
    of the same speaker.
    """

    loss: float = 0.0
    padding: float = 0.05
    reorder: float = 0.0

    def update(self, shares: Mapping[str, object]) -> None:
        """Set the given shares. If one of them is wrong, set none and raise `LocalDiscordError`."""
        for name, share in shares.items():
            number = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
            if name not in self.as_dict() or not number:
                known = ", ".join(self.as_dict())
                raise LocalDiscordError(f"The network has {known}, each from 0 to 1; not {name} = {share!r}.")
        for name, share in shares.items():
            setattr(self, name, share)

    def as_dict(self) -> dict[str, float]:
        """Return the shares by name."""
        return asdict(self)


@dataclass(slots=True)
class ForwarderCounters:
    """The forwarder's packet counts since it started."""

    received: int = 0
    forwarded: int = 0
    dropped: int = 0  # by the set loss
    bad: int = 0  # not authentic, not RTP, or of nobody who is here
    injected: int = 0  # by faults
    unannounced: int = 0  # of a client that has sent no op 5 yet
    forgotten: int = 0  # by a NAT that has forgotten the client

    def as_dict(self) -> dict[str, int]:
        """Return the counters under their names in the control API."""
        return {
            "in": self.received,
            "out": self.forwarded,
            "dropped": self.dropped,
            "bad": self.bad,
            "injected": self.injected,
            "unannounced": self.unannounced,
            "forgotten": self.forgotten,
        }
