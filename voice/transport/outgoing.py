"""The sending thread: pulls 20 ms frames of the bot's voice, encodes, encrypts and paces them, and announces speaking.

Datagrams are finished ahead of their time: two if the sender holds them until then (`metronome`), so that this process
cannot delay them; else one, so that only a system call is left at its time. Not more, because finished frames cannot be
taken back when somebody interrupts. discord.py's player is not used: it ends with its source, cannot be silent in
between, and sends a burst after every pause. The frames come from voice/speaking.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import structlog

from voice.audio import DISCORD_RATE_HZ, FRAME_MS
from voice.errors import OpusError
from voice.transport.opus import SILENCE_FRAME, Encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.audio import Pcm

_log = structlog.get_logger()

_FRAME_S = FRAME_MS / 1000
# Bits a second of the bot's voice: what Discord's channels carry by default, and more than speech needs.
OPUS_BITRATE_BPS = 64_000
# Effort of encoding, 0-10; 10 costs twice the CPU of 5, for a difference that few hear in speech.
OPUS_COMPLEXITY = 5
# Percent of packets expected to be lost: each packet then carries a rough copy of the one before it. 0 would send none
# and cost a third less CPU.
OPUS_EXPECTED_LOSS_PERCENT = 10
# Discord: "send five frames of silence before stopping", or listeners' decoders run on into noise.
_SILENCE_FRAMES_AT_END = 5
# A longer stall is not caught up, because listeners' buffers would drop the burst.
_LONGEST_LAG_S = 0.1
# Handed over before their time: so long does a busy interpreter delay nothing, and somebody who speaks waits for it.
_AHEAD_S = 2 * _FRAME_S
# The encrypted group is made within two seconds of joining. Alone in a channel it never is; then time passes.
_LONGEST_WAIT_FOR_GROUP_S = 5.0


class FrameSource(Protocol):
    """The source of the frames that the link sends."""

    def next_frame(self) -> Pcm | None:
        """Return the next 20 ms (mono int16, 48 kHz, 960 samples), or None: nothing to say now.

        Called every 20 ms from the sending thread, so it must be quick and thread-safe.
        """


class PacketSender(Protocol):
    """Sends packets to Discord. Every call may come from any thread."""

    @property
    def can_send(self) -> bool:
        """Whether a frame sent now would reach the room, encrypted as the room is."""

    def is_connected(self) -> bool:
        """Return whether the voice connection is up, whatever its encryption."""

    @property
    def keys(self) -> object:
        """A value that changes whenever datagrams sealed before can no longer be decrypted by the room."""

    def seal(self, packet: bytes) -> bytes:
        """Return the datagram of the next Opus packet of 20 ms, encrypted as the room is now."""

    @property
    def keeps_time(self) -> bool:
        """Whether `send` holds a datagram until its time; otherwise it sends at once."""

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send a sealed datagram, at `at` (monotonic seconds) or now."""

    def set_speaking(self, speaking: bool) -> None:
        """Tell the room whether we speak."""


class SlotAction(Enum):
    """What to do in a 20 ms slot."""

    START = auto()  # announce that we speak, and send the frame
    SOUND = auto()
    SILENCE = auto()  # one of the five silence frames
    STOP = auto()  # announce that we stopped
    NOTHING = auto()


@dataclass(slots=True)
class Talkspurt:
    """Decides what to do in each slot. Pure."""

    _speaking: bool = False
    _silent: int = 0

    def step(self, *, has_frame: bool) -> SlotAction:
        """Return what to do in this slot."""
        if has_frame:
            started, self._speaking, self._silent = not self._speaking, True, 0
            return SlotAction.START if started else SlotAction.SOUND
        if not self._speaking:
            return SlotAction.NOTHING
        if self._silent < _SILENCE_FRAMES_AT_END:
            self._silent += 1
            return SlotAction.SILENCE
        self._speaking, self._silent = False, 0
        return SlotAction.STOP

    def interrupt(self) -> None:
        """Note that the connection went: the next frame must be announced again."""
        self._speaking, self._silent = False, 0


@dataclass(slots=True)
class SlotTimer:
    """Keeps 20 ms between slots over any number of them. Pure."""

    _next_at: float | None = None

    def wait_s(self, now: float) -> float:
        """Return how long to wait at the end of a slot."""
        due = now if self._next_at is None or now - self._next_at > _LONGEST_LAG_S else self._next_at
        self._next_at = due + _FRAME_S
        return max(0.0, self._next_at - now)


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A finished datagram, with its sender and the keys it was sealed with."""

    carrier: PacketSender
    keys: object
    opus: bytes
    datagram: bytes

    @classmethod
    def by(cls, carrier: PacketSender, opus: bytes) -> _Sealed:
        """Seal `opus` with the keys of now. They may change meanwhile, so they are looked at before."""
        keys = carrier.keys
        return cls(carrier, keys, opus, carrier.seal(opus))


@dataclass(slots=True)
class Readiness:
    """Decides whether to pull a frame that cannot be sent yet. Pure."""

    _unready_since: float | None = None

    def may_pull(self, now: float, *, connected: bool, can_send: bool) -> bool:
        """Return whether time passes for the source.

        While disconnected it does not. While the encrypted group is being made it waits, for some seconds.
        """
        if can_send or not connected:
            self._unready_since = None
            return can_send
        if self._unready_since is None:
            self._unready_since = now
        return now >= self._unready_since + _LONGEST_WAIT_FOR_GROUP_S


class Outgoing:
    """The sending thread. Owned by the link; ends with `stop`."""

    def __init__(
        self,
        source: FrameSource,
        carrier: Callable[[], PacketSender | None],
        *,
        channel_bitrate_bps: int | None = None,
        bitrate_bps: int = OPUS_BITRATE_BPS,
        expected_loss_percent: int = OPUS_EXPECTED_LOSS_PERCENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`carrier` is asked at every slot, because a reconnection brings another one.

        `channel_bitrate_bps`: what the channel is set to; more is not sent.
        """
        self._source = source
        self._carrier = carrier
        self._clock = clock
        self._encoder = Encoder(
            rate_hz=DISCORD_RATE_HZ,
            bitrate_bps=min(bitrate_bps, channel_bitrate_bps or bitrate_bps),
            complexity=OPUS_COMPLEXITY,
            expected_loss_percent=expected_loss_percent,
        )
        self._ahead: _Sealed | None = None
        # When the next frame that is handed over before its time is to leave.
        self._due = float("-inf")
        self._talkspurt = Talkspurt()
        self._readiness = Readiness()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="voice-outgoing", daemon=True)

    @property
    def running(self) -> bool:
        """Return whether the thread pulls frames."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to pull frames."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it does within a slot."""
        self._end.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end. Blocks."""
        self._thread.join(timeout_s)

    def slot(self) -> None:
        """Do one 20 ms slot: send what is ready, or what the source has now, and make the next one ready."""
        ahead, self._ahead = self._ahead, None
        carrier = self._carrier()
        connected = carrier is not None and carrier.is_connected()
        can_send = carrier is not None and carrier.can_send
        if not can_send:
            self._talkspurt.interrupt()
        if not self._readiness.may_pull(self._clock(), connected=connected, can_send=can_send):
            return
        if carrier is None or not can_send:
            # The source goes on although nobody hears it.
            self._source.next_frame()
            return
        if ahead is not None and ahead.carrier is not carrier:
            ahead = None
        if carrier.keeps_time:
            self._fill(carrier, ahead)
            return
        now = self._clock()
        if ahead is None:
            ahead = self._make(carrier)
        self._use(carrier, ahead, at=now)
        if ahead is not None:
            self._ahead = self._make(carrier)

    def _fill(self, carrier: PacketSender, ahead: _Sealed | None) -> None:
        """Hand over what is due from now until `_AHEAD_S` later. After a pause the first frame is due at once.

        `ahead`: what was made ready while the carrier did not keep time.
        """
        now = self._clock()
        if self._due < now:
            self._due = now
        while self._due - now < _AHEAD_S:
            sealed, ahead = ahead or self._make(carrier), None
            if sealed is None and self._due - now > _FRAME_S / 2:
                # The source may have something until then.
                return
            self._use(carrier, sealed, at=self._due)
            self._due += _FRAME_S

    def _use(self, carrier: PacketSender, sealed: _Sealed | None, *, at: float) -> None:
        match self._talkspurt.step(has_frame=sealed is not None):
            case SlotAction.START:
                carrier.set_speaking(True)
                self._send(sealed, at)
            case SlotAction.SOUND:
                self._send(sealed, at)
            case SlotAction.SILENCE:
                carrier.send(carrier.seal(SILENCE_FRAME), at=at)
            case SlotAction.STOP:
                carrier.set_speaking(False)
            case SlotAction.NOTHING:
                pass

    def _make(self, carrier: PacketSender) -> _Sealed | None:
        """Return the source's next frame ready to be sent, or None if it has none."""
        frame = self._source.next_frame()
        if frame is None:
            return None
        try:
            return _Sealed.by(carrier, self._encoder.encode(frame))
        except OpusError as error:
            _log.warning("frame_not_encoded", samples=len(frame), reason=str(error))
            return None

    def _send(self, sealed: _Sealed | None, at: float) -> None:
        assert sealed is not None
        if sealed.keys != sealed.carrier.keys:
            # The group went over to another epoch since.
            sealed = _Sealed.by(sealed.carrier, sealed.opus)
        sealed.carrier.send(sealed.datagram, at=at)

    def _run(self) -> None:
        pace = SlotTimer()
        while not self._end.wait(pace.wait_s(self._clock())):
            try:
                self.slot()
            except Exception:  # noqa: BLE001 - a connection that goes in mid-slot may fail in many ways
                _log.exception("outgoing_slot_failed")
