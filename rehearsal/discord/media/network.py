"""The conditions of the local network, which can be changed while it runs, and its packet counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARES = ("loss", "padding", "reorder")


class NetworkConditions:
    """Three shares of the packets, each from 0 to 1. A change applies from the next packet on.

    `loss`: packets dropped on the way to one receiver. `padding`: packets sent with RTP padding (the P bit). `reorder`:
    packets sent after the next packet of the same speaker. A value outside 0..1 raises `LocalDiscordError`.
    """

    def __init__(self, *, loss: float = 0.0, padding: float = 0.05, reorder: float = 0.0) -> None:
        # Even a good network pads 5 % of the packets: Discord pads packets too, and a client must strip the padding.
        self._shares: dict[str, float] = {}
        self.update({"loss": loss, "padding": padding, "reorder": reorder})

    @property
    def loss(self) -> float:
        """Share of packets dropped."""
        return self._shares["loss"]

    @loss.setter
    def loss(self, share: float) -> None:
        self.update({"loss": share})

    @property
    def padding(self) -> float:
        """Share of packets padded."""
        return self._shares["padding"]

    @padding.setter
    def padding(self, share: float) -> None:
        self.update({"padding": share})

    @property
    def reorder(self) -> float:
        """Share of packets that the next packet overtakes."""
        return self._shares["reorder"]

    @reorder.setter
    def reorder(self, share: float) -> None:
        self.update({"reorder": share})

    def update(self, shares: Mapping[str, object]) -> None:
        """Set the given shares. If one of them is wrong, set none and raise `LocalDiscordError`."""
        checked: dict[str, float] = {}
        for name, share in shares.items():
            if name not in _SHARES:
                raise LocalDiscordError(f"The network has no setting {name!r}. Its settings are {', '.join(_SHARES)}.")
            number = isinstance(share, int | float) and not isinstance(share, bool)
            if not number or not 0 <= float(share) <= 1:  # type: ignore[arg-type]
                raise LocalDiscordError(f"{name} is a share from 0 to 1, for example 0.05; {share!r} is not.")
            checked[name] = float(share)  # type: ignore[arg-type]
        self._shares |= checked

    def as_dict(self) -> dict[str, float]:
        """Return the shares by name."""
        return dict(self._shares)


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
