"""One recording as 20 ms Opus packets, with the first and last packet that carry voice.

The packets of Ogg/Opus files with 20 ms packets are used as they are. Any other file that PyAV can read (FLAC, WAV,
Opus with other frame sizes) is encoded once, when it is loaded, so that no encoding runs while people speak.

Voice is told by its energy: latency is measured from the acoustic end of speech, not from the end of the file. This
works for clean recordings and for the bot's own voice. It is no voice activity detector for a live channel.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from rehearsal.errors import PersonError
from voice.transport.opus import OpusError, packet_samples

# This is 32 dB under the loud frames. It is below a word-final "s" or "f" of the Kokoro and LibriSpeech voices that we
# measured, and above the breath and room noise that follow it.
RELATIVE_FLOOR = 0.025
# This is -54 dBFS. Anything softer counts as silence in every recording.
ABSOLUTE_FLOOR_RMS = 65.0
# Speech lasts for several frames. A single loud frame is a click where the recording was cut.
RUN_FRAMES = 2


@dataclass(frozen=True, slots=True)
class VoicedBounds:
    """The first and the last frame (inclusive) that carry voice."""

    first: int
    last: int


def frame_rms(pcm: NDArray[np.int16], frame_samples: int) -> NDArray[np.float64]:
    """Return the RMS of each whole or partial frame of `pcm` (mono), on the int16 scale."""
    if not len(pcm):
        return np.zeros(0)
    short = -len(pcm) % frame_samples
    frames = np.pad(pcm.astype(np.float64), (0, short)).reshape(-1, frame_samples)
    return np.asarray(np.sqrt(np.mean(frames**2, axis=1)))


def voiced_frames(pcm: NDArray[np.int16], frame_samples: int) -> NDArray[np.bool_]:
    """Return for each frame of `pcm` (mono int16) whether it carries voice."""
    rms = frame_rms(pcm, frame_samples)
    if not len(rms):
        return np.zeros(0, np.bool_)
    # The 95th percentile counts as "loud", because the maximum may be a single plosive.
    floor = max(ABSOLUTE_FLOOR_RMS, RELATIVE_FLOOR * float(np.percentile(rms, 95)))
    loud = rms > floor
    return np.asarray(loud & (np.roll(loud, 1) | np.roll(loud, -1)) if len(loud) >= RUN_FRAMES else loud)


def voiced_bounds(pcm: NDArray[np.int16], frame_samples: int) -> VoicedBounds | None:
    """Return where the voice in `pcm` (mono int16) begins and ends, or None if there is no voice."""
    voiced = np.flatnonzero(voiced_frames(pcm, frame_samples))
    if not len(voiced):
        return None
    return VoicedBounds(int(voiced[0]), int(voiced[-1]))


RATE_HZ = 48_000
FRAME_MS = 20
FRAME_S = FRAME_MS / 1000
FRAME_SAMPLES = RATE_HZ * FRAME_MS // 1000

# This is half of Discord's default of 64 kbit/s. Whisper still transcribes such a clip exactly as it does the source.
BITRATE_BPS = 32_000
# The number of samples before the sound starts in an Opus stream (RFC 7845, pre-skip). libopus writes 312 at 48 kHz.
_PRE_SKIP_SAMPLES = 312


@dataclass(frozen=True, slots=True)
class Clip:
    """One recording.

    `packets`: Opus packets of 20 ms each. `voiced`: the first and the last packet that carry voice.
    """

    name: str
    packets: tuple[bytes, ...]
    voiced: VoicedBounds

    @property
    def duration_s(self) -> float:
        """Return the length of the clip, including its silence."""
        return len(self.packets) * FRAME_S

    @property
    def voiced_start_s(self) -> float:
        """Return where the voice begins, in seconds from the start of the clip."""
        return self.voiced.first * FRAME_S

    @property
    def voiced_end_s(self) -> float:
        """Return where the voice ends, in seconds from the start of the clip."""
        return (self.voiced.last + 1) * FRAME_S

    @classmethod
    def load(cls, path: Path) -> Clip:
        """Read a recording, and encode it if it is not Opus. Blocking: a FLAC file of ten seconds takes about 50 ms.

        Raises `PersonError` when the file is missing, cannot be decoded, or is silent.
        """
        try:
            packets = _opus_packets(path)
            if packets is None:
                packets = _opus_packets(io.BytesIO(encode_ogg(_sound(path))))
            pcm = read_sound(path)
        except FileNotFoundError as exc:
            raise PersonError(f"{path}: this recording does not exist.") from exc
        except (FFmpegError, OSError, ValueError, OpusError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise PersonError(f"{path}: this recording cannot be played ({reason}).") from exc
        bounds = voiced_bounds(np.concatenate([np.zeros(_PRE_SKIP_SAMPLES, np.int16), pcm]), FRAME_SAMPLES)
        if not packets or bounds is None:
            raise PersonError(f"{path}: nothing is said in this recording.")
        last = min(bounds.last, len(packets) - 1)
        return cls(path.name, packets, VoicedBounds(min(bounds.first, last), last))


def opus_packets(pcm: NDArray[np.int16]) -> tuple[bytes, ...]:
    """Return 48 kHz mono sound as Opus packets of 20 ms each."""
    packets = _opus_packets(io.BytesIO(encode_ogg(iter([pcm]))))
    assert packets is not None, "encode_ogg writes packets of 20 ms"
    return packets


def read_sound(source: Path | io.BytesIO, *, rate_hz: int = RATE_HZ) -> NDArray[np.int16]:
    """Return the whole sound of a file as mono int16. Raises PyAV's errors (`FFmpegError`, `ValueError`)."""
    blocks = list(_sound(source, rate_hz))
    return np.concatenate(blocks) if blocks else np.zeros(0, np.int16)


def encode_ogg(sound: Iterator[NDArray[np.int16]], *, bitrate_bps: int = BITRATE_BPS) -> bytes:
    """Return an Ogg/Opus file of `sound` (blocks of 48 kHz mono int16), with 20 ms packets and in-band FEC.

    FEC is on as in Discord's own clients, so that packet loss has the same effect as with them.
    """
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as container:
        options = {"application": "voip", "frame_duration": str(FRAME_MS), "fec": "1", "packet_loss": "10"}
        stream = container.add_stream("libopus", rate=RATE_HZ, options=options)
        stream.bit_rate = bitrate_bps
        stream.layout = "mono"
        fifo = av.AudioFifo()
        for block in sound:
            fifo.write(_frame(block))
            while (frame := fifo.read(FRAME_SAMPLES)) is not None:
                container.mux(stream.encode(frame))
        rest = fifo.read(FRAME_SAMPLES, partial=True)
        if rest is not None:
            container.mux(stream.encode(rest))
        container.mux(stream.encode(None))
    return file.getvalue()


def _frame(block: NDArray[np.int16]) -> Any:
    frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = RATE_HZ
    return frame


def _opus_packets(source: Path | io.BytesIO) -> tuple[bytes, ...] | None:
    """Return the packets of an Ogg/Opus file. Return None for another format, or if the packets are not 20 ms long."""
    with av.open(source if isinstance(source, io.BytesIO) else str(source), "r") as container:
        stream = _audio_stream(container)
        if stream.codec_context.name not in {"opus", "libopus"}:
            return None
        # PyAV ends a stream with an empty flush packet.
        packets = tuple(bytes(packet) for packet in container.demux(stream) if packet.size)
    if any(packet_samples(packet) != FRAME_SAMPLES for packet in packets):
        return None
    return packets


def _sound(source: Path | io.BytesIO, rate_hz: int = RATE_HZ) -> Iterator[NDArray[np.int16]]:
    """Yield the sound of a file in blocks of mono int16."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate_hz)
    with av.open(source if isinstance(source, io.BytesIO) else str(source), "r") as container:
        for frame in container.decode(_audio_stream(container)):
            for block in resampler.resample(frame):
                yield block.to_ndarray()[0]
    for block in resampler.resample(None):
        yield block.to_ndarray()[0]


def _audio_stream(container: Any) -> Any:
    if not container.streams.audio:
        raise ValueError("it holds no sound")
    return container.streams.audio[0]
