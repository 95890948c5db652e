"""Decodes one person's packets and gathers the sound in runs of whole 20 ms frames.

A `SpeakerStream` owns one SSRC's jitter buffer, its Opus decoder, and the sound that waits for the next batch. It knows
no keys and no lock: the `Receiver` hands it decrypted frames, one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np

from voice.audio import FRAME_MS, LISTEN_RATE_HZ, Pcm
from voice.errors import OpusError
from voice.transport import opus
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.jitter import JitterBuffer, MissingFrame, OrderedFrame, PushResult, Released, SpurtEnded
from voice.transport.talkspurt_clock import CLOCK_HZ

if TYPE_CHECKING:
    from collections.abc import Iterable

    from voice.transport.counters import PacketCounters

# Frames of one talkspurt lie on a 20 ms grid. Rounding shifts them by microseconds, a hole by 20 ms.
_CONTIGUOUS_S = 0.002


class SpeakerStream:
    """The sound of `user_id` on one SSRC.

    `batch` gets a run of sound when the next frame does not continue it, and the end of each talkspurt. The fate of
    each frame is added to `counters`. Times are seconds of the receiver's clock.
    """

    __slots__ = (
        "_batch",
        "_concealed",
        "_counters",
        "_decoder",
        "_frame_samples",
        "_jitter",
        "_late",
        "_lost",
        "_pieces",
        "_rate_hz",
        "_samples",
        "_started_at",
        "_told_lost",
        "heard_at",
        "heard_since",
        "ssrc",
        "user_id",
    )

    def __init__(
        self,
        user_id: int,
        ssrc: int,
        *,
        heard_since: float | None,
        counters: PacketCounters,
        batch: list[AudioEvent],
        rate_hz: int = LISTEN_RATE_HZ,
    ) -> None:
        """`rate_hz`: of the sound."""
        self.user_id = user_id
        self.ssrc = ssrc
        # Since when its speaker may be heard, as it was when it was opened.
        self.heard_since = heard_since
        # When the last frame came in which there is something to hear. The receiver notes it.
        self.heard_at = float("-inf")
        self._counters = counters
        self._batch = batch
        self._jitter = JitterBuffer()
        self._rate_hz = rate_hz
        self._frame_samples = rate_hz * FRAME_MS // 1000
        self._decoder = opus.Decoder(rate_hz=rate_hz)
        # How many of the jitter buffer's losses and latecomers are counted already.
        self._lost = 0
        self._late = 0
        # The run that waits: its sound, and when it began.
        self._pieces: list[Pcm] = []
        self._samples = 0
        self._started_at = 0.0
        # The losses that earlier runs have told, and the frames concealed since.
        self._told_lost = 0
        self._concealed = 0

    @property
    def deadline(self) -> float | None:
        """When `release` must be called at the latest; None while no packet waits."""
        return self._jitter.deadline

    @property
    def waiting(self) -> bool:
        """Whether sound waits for `take`."""
        return bool(self._pieces)

    def has(self, sequence: int, timestamp: int, *, arrived_at: float) -> bool:
        """Return whether this packet is a copy of one that has arrived before."""
        return self._jitter.has(sequence, timestamp, arrived_at=arrived_at)

    def hear(self, sequence: int, timestamp: int, frame: bytes, *, arrived_at: float, ticks: int) -> bool:
        """Take an Opus frame of `ticks` at 48 kHz. Returns whether it was decoded at once; otherwise call `release`.

        A frame that comes next in order while the person speaks need not wait in the jitter buffer.
        """
        at = self._jitter.pass_on(sequence, timestamp, frame, arrived_at=arrived_at, ticks=ticks)
        if at is not None:
            self._decode(at, ticks, frame)
            return True
        arrival = self._jitter.push(sequence, timestamp, frame, arrived_at=arrived_at, ticks=ticks)
        if arrival is not PushResult.ACCEPTED and arrival is not PushResult.UNDECIDED:
            self._counters.count(arrival)
        return False

    def pass_over(self, sequence: int, timestamp: int, *, arrived_at: float) -> None:
        """Take a packet without sound, so that its number is no loss."""
        self._jitter.push(sequence, timestamp, b"", arrived_at=arrived_at)

    def release(self, now: float) -> None:
        """Decode what need not or must not wait any longer."""
        self._play_out(self._jitter.release(now))

    def close(self) -> None:
        """Decode what waits, and end the talkspurt."""
        self._play_out(self._jitter.close())

    def discard(self, now: float) -> None:
        """Drop what waits undecoded, and end the talkspurt: its speaker opted out."""
        talking = self._jitter.talking
        self._counters.late += self._jitter.late - self._late
        self._counters.discarded += self._jitter.discard()
        self._pieces.clear()
        if talking:
            self._batch.append(TalkspurtEnded(self.user_id, self.ssrc, now))

    def take(self, *, final: bool) -> SpeechFrames | None:
        """Return the run in whole 20 ms frames. A remainder stays, or is filled up with silence if `final`."""
        if not self._pieces:
            return None
        pcm = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
        over = len(pcm) % self._frame_samples
        started_at = self._started_at
        self._pieces, self._samples = [], 0
        if over and final:
            pcm = np.concatenate([pcm, np.zeros(self._frame_samples - over, np.int16)])
        elif over:
            self._gather(pcm[-over:], started_at + (len(pcm) - over) / self._rate_hz)
            pcm = pcm[:-over]
        if not len(pcm):
            return None
        lost, concealed = self._jitter.lost - self._told_lost, self._concealed
        self._told_lost, self._concealed = self._jitter.lost, 0
        return SpeechFrames(self.user_id, self.ssrc, started_at, pcm, lost, concealed)

    def _play_out(self, released: Iterable[Released]) -> None:
        for item in released:
            match item:
                case OrderedFrame():
                    self._decode(item.captured_at, item.ticks, item.payload)
                case MissingFrame():
                    self._fill(item)
                case SpurtEnded():
                    self._hand_on_run()
                    self._batch.append(TalkspurtEnded(self.user_id, self.ssrc, item.at))
                    self._counters.talkspurts += 1
                case _:
                    assert_never(item)
        self._counters.lost += self._jitter.lost - self._lost
        self._counters.late += self._jitter.late - self._late
        self._lost, self._late = self._jitter.lost, self._jitter.late

    def _decode(self, at: float, ticks: int, payload: bytes) -> None:
        try:
            pcm = self._decoder.decode(payload)
        except OpusError:
            self._counters.undecodable += 1
            self._conceal(at, ticks)
            return
        self._counters.decoded += 1
        self._add(pcm, at)

    def _fill(self, gap: MissingFrame) -> None:
        """Decode a lost frame from the copy in the next packet, else let the decoder conceal it."""
        if gap.next_payload is not None and opus.carries_fec(gap.next_payload):
            try:
                pcm = self._decoder.recover(gap.next_payload, gap.ticks * self._rate_hz // CLOCK_HZ)
            except OpusError:
                pass
            else:
                self._counters.recovered += 1
                self._add(pcm, gap.captured_at)
                return
        self._counters.concealed += 1
        self._concealed += 1
        self._conceal(gap.captured_at, gap.ticks)

    def _conceal(self, at: float, ticks: int) -> None:
        samples = ticks * self._rate_hz // CLOCK_HZ
        try:
            pcm = self._decoder.conceal(samples)
        except OpusError:
            # Opus has no frame of this length.
            pcm = np.zeros(samples, np.int16)
        self._add(pcm, at)

    def _add(self, pcm: Pcm, at: float) -> None:
        """Add sound to the run, or begin another one if a hole lies between."""
        if self._pieces and abs(self._started_at + self._samples / self._rate_hz - at) >= _CONTIGUOUS_S:
            self._hand_on_run()
        self._gather(pcm, at)

    def _gather(self, pcm: Pcm, at: float) -> None:
        if not self._pieces:
            self._started_at = at
        self._pieces.append(pcm)
        self._samples += len(pcm)

    def _hand_on_run(self) -> None:
        run = self.take(final=True)
        if run is not None:
            self._batch.append(run)
