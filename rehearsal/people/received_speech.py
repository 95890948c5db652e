"""The speech that one person received from another, as Opus packets that are decoded on request.

Packets are decoded only when a caller asks for the sound. So a long run costs about 8 kB of memory per second of
speech, and no CPU time while the bot is measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rehearsal.people.clip import frame_rms
from rehearsal.people.media_socket import TIMESTAMP_STEP
from voice.transport.opus import SILENCE_FRAME, Decoder, OpusError

RATE_HZ = 16_000
FRAME_S = 0.02
FRAME_SAMPLES = 320

# The number of packets in ten minutes of unbroken speech.
MAX_PACKETS = 30_000
# This is -44 dBFS: far below any synthesised voice, but above the sound that Opus makes of digital silence.
VOICED_RMS = 200.0
# A decoder that starts in the middle of speech needs a few frames before its output is right.
_WARM_UP_PACKETS = 5
# A longer gap is a pause of the speaker, not packet loss.
_MAX_CONCEALED_FRAMES = 5
# In sound for a recogniser, longer pauses are shortened to this.
_MAX_PAUSE_S = 1.0
# A gap of a frame or two between arrivals is no pause.
_JITTER_S = 3 * FRAME_S


@dataclass(frozen=True, slots=True)
class ReceivedPacket:
    """One decrypted Opus packet.

    `arrived_at`: monotonic seconds. `position`: the RTP sequence number without wrap-around.
    """

    arrived_at: float
    ssrc: int
    position: int
    timestamp: int
    opus: bytes


@dataclass(frozen=True, slots=True)
class ReceivedFrame:
    """20 ms of sound (mono int16 at 16 kHz) and the time at which it arrived.

    A frame that replaces a lost one has the time at which the loss was noticed.
    """

    arrived_at: float
    pcm: NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class HeardTalkspurt:
    """Unbroken sound from one voice session. The times are those of its first and last packet, in monotonic seconds.

    `sound_s`: the sound that it has. A listener who is busy gets packets late, so its times may span more.
    """

    ssrc: int
    began_at: float
    ended_at: float
    sound_s: float


class ReceivedSpeech:
    """The last ten minutes of speech that one person received from another. Not thread-safe."""

    def __init__(self) -> None:
        self._packets: deque[ReceivedPacket] = deque(maxlen=MAX_PACKETS)
        self._ssrc: int | None = None
        self._position = 0
        self.last_sound_at: float | None = None

    def __len__(self) -> int:
        """Return the number of packets in memory."""
        return len(self._packets)

    def add(self, *, arrived_at: float, ssrc: int, sequence: int, timestamp: int, opus: bytes) -> None:
        """Add one packet. The silence frames that end a talkspurt count for the sequence but not as sound."""
        if ssrc == self._ssrc:
            # RFC 3550, appendix A.1: choose the nearest number that has these 16 bits.
            step = (sequence - self._position + 0x8000) % 0x10000 - 0x8000
            position = self._position + step
            self._position = max(self._position, position)
        else:
            self._ssrc, self._position, position = ssrc, sequence, sequence
        self._packets.append(ReceivedPacket(arrived_at, ssrc, position, timestamp, opus))
        if opus != SILENCE_FRAME:
            self.last_sound_at = arrived_at

    def clear(self) -> None:
        """Forget the packets, so that a run of hours needs no more memory than a short one."""
        self._packets.clear()

    def frames(self, *, since: float, until: float = float("inf"), rate_hz: int = RATE_HZ) -> list[ReceivedFrame]:
        """Return the sound that arrived from `since` to `until`, in the order of sending, with short gaps filled in."""
        packets = list(self._packets)
        first = next((i for i, packet in enumerate(packets) if packet.arrived_at >= since), len(packets))
        chosen = [packet for packet in packets[max(0, first - _WARM_UP_PACKETS) :] if packet.arrived_at <= until]
        return [frame for frame in _decoded(chosen, rate_hz) if frame.arrived_at >= since]

    def pcm(self, *, since: float, until: float = float("inf")) -> NDArray[np.int16]:
        """Return the sound of that time as one array (mono int16 at 16 kHz) with its pauses, for a recogniser."""
        pieces: list[NDArray[np.int16]] = []
        previous: float | None = None
        for frame in self.frames(since=since, until=until):
            if previous is not None:
                pause_s = frame.arrived_at - previous - FRAME_S
                if pause_s > _JITTER_S:
                    pieces.append(np.zeros(int(min(pause_s, _MAX_PAUSE_S) * RATE_HZ), np.int16))
            pieces.append(frame.pcm)
            previous = frame.arrived_at
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def track(self, *, since: float, until: float, rate_hz: int) -> NDArray[np.int16]:
        """Return the sound of that time (mono int16) with all its silence. What comes late follows what came before."""
        sound = np.zeros(int((until - since) * rate_hz), np.int16)
        end = 0
        for frame in self.frames(since=since, until=until, rate_hz=rate_hz):
            at = int((frame.arrived_at - since) * rate_hz)
            begin = at if at - end > _JITTER_S * rate_hz else end
            end = min(begin + len(frame.pcm), len(sound))
            sound[begin:end] = frame.pcm[: max(0, end - begin)]
        return sound

    def talkspurts(self, *, since: float, pause_s: float) -> list[HeardTalkspurt]:
        """Return the sound that arrived after `since`, by voice session, parted where nothing came for `pause_s`.

        Two that overlap are two voices at once.
        """
        found: list[HeardTalkspurt] = []
        latest: dict[int, int] = {}
        for packet in list(self._packets):
            if packet.arrived_at < since or packet.opus == SILENCE_FRAME:
                continue
            at = latest.get(packet.ssrc)
            if at is not None and packet.arrived_at - found[at].ended_at <= pause_s:
                longer_s = found[at].sound_s + FRAME_S
                found[at] = replace(found[at], ended_at=packet.arrived_at, sound_s=longer_s)
            else:
                latest[packet.ssrc] = len(found)
                found.append(HeardTalkspurt(packet.ssrc, packet.arrived_at, packet.arrived_at, FRAME_S))
        return found

    def voiced_at(self, *, since: float, until: float = float("inf")) -> tuple[float, float] | None:
        """Return when the first and the last frame that carries voice arrived; None: none does."""
        frames = self.frames(since=since, until=until)
        at = [one.arrived_at for one in frames if frame_rms(one.pcm, FRAME_SAMPLES).max(initial=0.0) > VOICED_RMS]
        return (at[0], at[-1]) if at else None


def _decoded(packets: list[ReceivedPacket], rate_hz: int) -> Iterator[ReceivedFrame]:
    """Decode packets in the order of sending, with one decoder for each SSRC."""
    decoder = Decoder(rate_hz=rate_hz)
    samples = int(FRAME_S * rate_hz)
    previous: ReceivedPacket | None = None
    for packet in _in_order(packets):
        if previous is not None and previous.ssrc != packet.ssrc:
            decoder, previous = Decoder(rate_hz=rate_hz), None
        if previous is not None:
            lost = packet.position - previous.position - 1
            if 0 < lost <= _MAX_CONCEALED_FRAMES and _continues(previous, packet, lost):
                for _ in range(lost - 1):
                    yield ReceivedFrame(packet.arrived_at, decoder.conceal(samples))
                yield ReceivedFrame(packet.arrived_at, _or_silence(decoder.recover, packet.opus, samples))
        yield ReceivedFrame(packet.arrived_at, _or_silence(decoder.decode, packet.opus, samples))
        previous = packet


def _in_order(packets: list[ReceivedPacket]) -> list[ReceivedPacket]:
    """Sort the packets of each SSRC by position. The SSRCs stay in order of arrival."""
    order: dict[int, int] = {}
    for packet in packets:
        order.setdefault(packet.ssrc, len(order))
    kept = {(packet.ssrc, packet.position): packet for packet in packets}
    return sorted(kept.values(), key=lambda packet: (order[packet.ssrc], packet.position))


def _continues(previous: ReceivedPacket, packet: ReceivedPacket, lost: int) -> bool:
    """Return whether the timestamps show lost sound, as opposed to a pause between talkspurts."""
    step = (packet.timestamp - previous.timestamp) & 0xFFFFFFFF
    return step == (lost + 1) * TIMESTAMP_STEP


def _or_silence(decode: Callable[[bytes], NDArray[np.int16]], opus: bytes, samples: int) -> NDArray[np.int16]:
    """Return the sound that `decode` finds in a packet: its own, or that of the lost one before it (in-band FEC)."""
    try:
        return decode(opus)
    except OpusError:
        return np.zeros(samples, np.int16)
