"""Counts every packet by its fate, to tell a bot that receives nothing from a silent room."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(slots=True)
class PacketCounters:
    """Counts since the connection was opened; they survive reconnects. The receiver writes them with its lock held.

    Every datagram adds to `received` and later to exactly one fate. `padded` and the frame counts are separate.
    """

    received: int = 0
    # Fates of a datagram.
    decoded: int = 0  # became sound
    foreign: int = 0  # not RTP
    rtcp: int = 0
    video: int = 0
    malformed: int = 0
    excluded: int = 0  # of a bot or an opted-out member: dropped before any decryption
    transport_failures: int = 0  # the connection's key did not fit
    excess: int = 0  # more from one sender than any client sends: dropped before end-to-end decryption
    not_ready: int = 0  # the end-to-end group was not ready
    dave_failures: int = 0  # the sender's key did not fit
    clear: int = 0  # not end-to-end encrypted, although the call is
    unknown_ssrc: int = 0  # the sender was never identified
    late: int = 0  # came after its place was concealed
    duplicate: int = 0
    silence: int = 0  # silence frames outside a talkspurt: nothing to hear
    padding: int = 0  # nothing but padding
    undecodable: int = 0  # not Opus
    discarded: int = 0  # waiting when its speaker left or opted out
    # Frames, not datagrams.
    lost: int = 0  # sequence numbers that did not arrive in time
    recovered: int = 0  # of those: decoded from forward error correction
    concealed: int = 0  # of those: invented by the decoder
    # Neither fates nor part of the frame counts above.
    padded: int = 0
    held: int = 0  # waited until the sender was known
    talkspurts: int = 0
    overflowed: int = 0  # datagrams that the system dropped, because its receive buffer was full
    overrun_frames: int = 0  # decoded, then dropped: the event loop did not fetch them in time

    def count(self, reason: str) -> None:
        """Add one to the counter called `reason` (a `Rejection`, `DecryptFailure`, `PushResult` or a field's name)."""
        setattr(self, reason, getattr(self, reason) + 1)

    def as_dict(self) -> dict[str, int]:
        return dataclasses.asdict(self)
