"""The sending thread: it fetches 20 ms frames of the bot's voice, encodes, encrypts and paces them, and announces
speaking.

If the sender holds datagrams until their time (`paced_sender`), it finishes two ahead, so that this process cannot
delay them. It finishes no more, because finished frames cannot be taken back and would still be sent after somebody
interrupts. Without such a sender it finishes each frame at its time.

discord.py's player is not used: it ends with its source, cannot be silent in between, and sends a burst after every
pause. The frames come from voice/speaking.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from voice.audio import DISCORD_RATE_HZ, FRAME_MS, Pcm
from voice.errors import OpusError
from voice.transport.opus import SILENCE_FRAME, Encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.transport.connector import Connector

_log = structlog.get_logger()

_FRAME_S = FRAME_MS / 1000
# Bits a second of the bot's voice: the default of Discord's channels, and more than speech needs.
OPUS_BITRATE_BPS = 64_000
# Discord: "send five frames of silence before stopping". Otherwise listeners' decoders continue with noise.
_SILENCE_FRAMES_AT_END = 5
# After a longer stall the missed frames are not sent in a burst, because listeners' buffers would drop them.
_LONGEST_LAG_S = 0.1
# How long before its time a frame is passed on. A shorter stall of the interpreter delays nothing, but an interruption
# takes this much longer to be heard.
_AHEAD_S = 2 * _FRAME_S
# The encrypted group forms within two seconds of joining. It never forms while the bot is alone; then frames are pulled
# and dropped after this wait.
_LONGEST_WAIT_FOR_GROUP_S = 5.0


class FrameSource(Protocol):
    """The source of the frames that the connection sends."""

    def next_frame(self) -> Pcm | bytes | None:
        """Return the next 20 ms, or None if there is nothing to play now: mono int16 at 48 kHz (960 samples), or an
        Opus packet.

        Called every 20 ms from the sending thread, so it must be quick and thread-safe.
        """


class PacketSender(Protocol):
    """Sends packets to Discord. Any thread may call it."""

    @property
    def can_send(self) -> bool:
        """Whether the connection is up and has the keys to encrypt for the room."""

    def is_connected(self) -> bool:
        """Return whether the voice connection is up, with or without encryption keys."""

    @property
    def keys(self) -> object:
        """A value that changes whenever the room can no longer decrypt datagrams sealed before."""

    def seal(self, packet: bytes) -> bytes:
        """Return the next datagram: `packet` (Opus, 20 ms) encrypted with the current keys."""

    @property
    def keeps_time(self) -> bool:
        """Whether `send` holds a datagram until its time; otherwise it sends at once."""

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send a sealed datagram: at `at` (monotonic seconds) if `keeps_time`, else now."""

    def set_speaking(self, speaking: bool) -> None:
        """Announce to the room whether the bot is speaking."""


@dataclass(slots=True)
class SlotTimer:
    """Keeps slots 20 ms apart without accumulating error. Pure."""

    _next_at: float | None = None

    def wait_s(self, now: float) -> float:
        """Move on to the next slot, and return the seconds from `now` (monotonic) until its start; 0 if it is late.

        After a longer lag the slots begin anew at `now`, so that no frames are sent in a burst.
        """
        due = now if self._next_at is None or now - self._next_at > _LONGEST_LAG_S else self._next_at
        self._next_at = due + _FRAME_S
        return max(0.0, self._next_at - now)


@dataclass(slots=True)
class Readiness:
    """Decides whether to pull a frame that cannot be sent yet. Pure."""

    _unready_since: float | None = None

    def may_pull(self, now: float, *, connected: bool, can_send: bool) -> bool:
        """Return whether to pull the next frame.

        While disconnected the source is paused. While the encrypted group forms it is paused for some seconds at most.
        """
        if can_send or not connected:
            self._unready_since = None
            return can_send
        if self._unready_since is None:
            self._unready_since = now
        return now >= self._unready_since + _LONGEST_WAIT_FOR_GROUP_S


class Outgoing:
    """The sending thread. Owned by the connection; ends with `stop`."""

    def __init__(
        self,
        source: FrameSource,
        connector: Connector,
        *,
        channel_bitrate_bps: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The client of `connector` is asked for in every slot, because a reconnection replaces it.

        `channel_bitrate_bps`: the channel's limit; the encoder stays at or below it.
        """
        self._source = source
        self._connector = connector
        self._clock = clock
        self._encoder = Encoder(
            rate_hz=DISCORD_RATE_HZ,
            bitrate_bps=min(OPUS_BITRATE_BPS, channel_bitrate_bps or OPUS_BITRATE_BPS),
        )
        # The sending time of the next frame that is passed on ahead.
        self._due = float("-inf")
        # Whether the room was told that the bot speaks, and how many silence frames have followed the last sound.
        self._speaking = False
        self._silent = 0
        self._readiness = Readiness()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="voice-outgoing", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it ends within one slot."""
        self._end.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def slot(self) -> None:
        """Do one 20 ms slot: send the source's next frame, or pass on the frames that are due soon."""
        carrier: PacketSender | None = self._connector.client
        connected = carrier is not None and carrier.is_connected()
        can_send = carrier is not None and carrier.can_send
        if not can_send:
            # The next frame has to be announced again.
            self._speaking = False
        if not self._readiness.may_pull(self._clock(), connected=connected, can_send=can_send):
            return
        if carrier is None or not can_send:
            # The source advances although nobody hears it.
            self._source.next_frame()
        elif carrier.keeps_time:
            self._fill(carrier)
        else:
            self._use(carrier, self._encoded(), at=self._clock())

    def _fill(self, carrier: PacketSender) -> None:
        """Pass on the frames due in the next `_AHEAD_S`. After a pause the first frame is due at once."""
        now = self._clock()
        if self._due < now:
            self._due = now
        while self._due - now < _AHEAD_S:
            opus = self._encoded()
            if opus is None and self._due - now > _FRAME_S / 2:
                # The source may have a frame by then.
                return
            self._use(carrier, opus, at=self._due)
            self._due += _FRAME_S

    def _use(self, carrier: PacketSender, opus: bytes | None, *, at: float) -> None:
        if opus is not None:
            if not self._speaking:
                carrier.set_speaking(True)
            self._speaking, self._silent = True, 0
            self._send(carrier, opus, at)
        elif self._speaking and self._silent < _SILENCE_FRAMES_AT_END:
            self._silent += 1
            carrier.send(carrier.seal(SILENCE_FRAME), at=at)
        elif self._speaking:
            self._speaking = False
            carrier.set_speaking(False)

    def _encoded(self) -> bytes | None:
        """Return the source's next frame as Opus; None if the source has none."""
        frame = self._source.next_frame()
        if frame is None or isinstance(frame, bytes):
            return frame
        try:
            return self._encoder.encode(frame)
        except OpusError as error:
            _log.warning("frame_not_encoded", samples=len(frame), problem=error)
            return None

    def _send(self, carrier: PacketSender, opus: bytes, at: float) -> None:
        keys = carrier.keys
        datagram = carrier.seal(opus)
        # A group that was reset meanwhile sealed nothing: the frame would go out in the clear.
        if carrier.keys == keys and carrier.can_send:
            carrier.send(datagram, at=at)

    def _run(self) -> None:
        pace = SlotTimer()
        while not self._end.wait(pace.wait_s(self._clock())):
            try:
                self.slot()
            except Exception:  # noqa: BLE001 - a connection that goes in mid-slot may fail in many ways
                _log.exception("outgoing_slot_failed")
