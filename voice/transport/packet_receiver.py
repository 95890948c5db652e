"""What the voice connection passes its datagrams and the gateway's messages to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from voice.transport.counters import PacketCounters
    from voice.transport.decrypt import LiveKeys


class PacketReceiver(Protocol):
    """`Receiver` turns packets into sound; `HeaderRecorder` only notes what they look like."""

    @property
    def members(self) -> frozenset[int]:
        """The connected people without the bot."""

    # Called by the reader thread.

    def datagram(self, datagram: bytes, keys: LiveKeys) -> None:
        """Handle one datagram on arrival. `keys` are read during the call."""

    def set_time(self, at: float | None) -> None:
        """Take `at` for the time (monotonic seconds), because what is read next came then; None: it comes just now."""

    def flush(self) -> float:
        """Do what is due, and return in how many seconds to call again."""

    def overflowed(self, datagrams: int) -> None:
        """Count datagrams that the system dropped before they were read."""

    # Called on the event loop.

    def joined(self, user_ids: Iterable[int]) -> None:
        """Handle op 11."""

    def rekeyed(self) -> None:
        """Handle op 22."""

    def speaks(self, ssrc: int, user_id: int, *, announced: bool = True) -> None:
        """Handle op 5 or 12."""

    def left(self, user_id: int) -> None:
        """Handle op 13."""

    def pause(self) -> None:
        """Handle a lost connection."""

    def reset(self) -> None:
        """Handle a new connection (op 2)."""

    def counters(self) -> PacketCounters:
        """Return what became of the packets so far."""
