"""The streams of one voice connection, one for each SSRC, and the batches in which their sound is delivered.

`receiver` decides whose frame goes to which stream; `speaker_stream` puts the frames of one in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from voice.transport.speaker_stream import SpeakerStream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from voice.transport.audio_events import AudioEvent
    from voice.transport.counters import PacketCounters
    from voice.transport.roster import HeldFrame

    # Returns since when a person may be heard, in monotonic seconds; None: they may not.
    HeardSince: TypeAlias = Callable[[int], float | None]

# The streams are looked at this often, even if nothing is due.
_IDLE_S = 1.0
# Seconds of sound delivered at once. More saves CPU, but adds latency.
_BATCH_S = 0.02
# While so many people speak at once, what they say waits for the recogniser for seconds anyway. Receiving 100 of them
# takes 5 to 9 % less CPU time with this than with the usual batches (three pairs of 15 s).
_CROWD = 40
_CROWD_BATCH_S = 0.04


class BatchQueue(Protocol):
    """Takes the sound of all speakers, in batches."""

    def put(self, batch: Sequence[AudioEvent], /) -> None:
        """Take a batch. Never waits."""


class SpeakerStreams:
    """The streams of one connection. Not thread-safe: the receiver calls it with its lock held.

    `deliver` gets the batches. What waits of a person who may not be heard any more (`heard_since`) is dropped
    undecoded, also if they may be heard again meanwhile. The fate of each frame is added to `counters`. `now`:
    seconds of the receiver's clock, here and in the methods. `rate_hz`: of the sound.
    """

    def __init__(
        self,
        *,
        deliver: BatchQueue,
        heard_since: HeardSince,
        counters: PacketCounters,
        now: float,
        rate_hz: int,
    ) -> None:
        self._deliver = deliver
        self._heard_since = heard_since
        self._counters = counters
        self._rate_hz = rate_hz
        self._streams: dict[int, SpeakerStream] = {}
        self._batch: list[AudioEvent] = []
        self._delivered_at = now
        self._batch_s = _BATCH_S
        # Whether sound waits for the next batch.
        self._sounded = False
        # A lower bound: no stream is due before.
        self._due = now

    def on(self, ssrc: int) -> SpeakerStream | None:
        """Return the stream on `ssrc`, whosever it is."""
        return self._streams.get(ssrc)

    def of(self, user_id: int, ssrc: int, now: float) -> SpeakerStream:
        """Return the stream of `user_id` on `ssrc`, never another person's. It is opened if there is none."""
        self.close_unless_of(user_id, ssrc, now)
        stream = self._streams.get(ssrc)
        if stream is None:
            since = self._heard_since(user_id)
            stream = SpeakerStream(
                user_id, ssrc, heard_since=since, counters=self._counters, batch=self._batch, rate_hz=self._rate_hz
            )
            self._streams[ssrc] = stream
        return stream

    # -- what comes in ---------------------------------------------------------------------------------------

    def hear(self, stream: SpeakerStream, held: HeldFrame, frame: bytes, *, ticks: int) -> None:
        """Give a stream an Opus frame of `ticks` at 48 kHz. `held`: the same frame as it came."""
        if stream.hear(held.sequence, held.timestamp, frame, arrived_at=held.arrived_at, ticks=ticks):
            # The stream's deadline only moves back, so `_due` stays a lower bound.
            self._sounded = True
        else:
            self._release(stream, held.arrived_at)

    def pass_over(self, ssrc: int, sequence: int, timestamp: int, now: float) -> None:
        """Take a packet without sound, so that its number is no loss."""
        stream = self._streams.get(ssrc)
        if stream is not None:
            stream.pass_over(sequence, timestamp, arrived_at=now)
            self._release(stream, now)

    def add(self, event: AudioEvent) -> None:
        """Deliver an event with the next batch."""
        self._batch.append(event)

    # -- what goes out ---------------------------------------------------------------------------------------

    def is_due(self, now: float) -> bool:
        """Return whether a stream may be due, or none was looked at for a second."""
        return now >= self._due

    def flush(self, now: float) -> float:
        """Release what is due, deliver a batch if it is time, and return when to call again."""
        if now >= self._due:
            self._release_due(now)
        due = self._due
        if self._batch or self._sounded:
            batch_due = self._delivered_at + self._batch_s
            if now >= batch_due:
                self.hand_on(now)
            else:
                due = min(due, batch_due)
        return due

    def _release_due(self, now: float) -> None:
        """Release every stream that is due, and compute the next due time. Runs five times a second during speech."""
        self._due = now + _IDLE_S
        for stream in list(self._streams.values()):
            deadline = stream.deadline
            if deadline is not None and deadline <= now:
                self._release(stream, now)
            elif deadline is not None:
                self._due = min(self._due, deadline)

    def _release(self, stream: SpeakerStream, now: float) -> None:
        if self._heard_since(stream.user_id) != stream.heard_since:
            self._discard(stream.ssrc, now)
            return
        stream.release(now)
        self._sounded = self._sounded or stream.waiting
        deadline = stream.deadline
        if deadline is not None:
            self._due = min(self._due, deadline)

    def hand_on(self, now: float) -> None:
        """Deliver all sound."""
        for stream in self._streams.values():
            frames = stream.take(final=False)
            if frames is not None:
                self._batch.append(frames)
        self._sounded = False
        self._delivered_at = now
        # Nearly all of it is sound, a run of each speaker.
        self._batch_s = _CROWD_BATCH_S if len(self._batch) >= _CROWD else _BATCH_S
        if self._batch:
            batch = self._batch.copy()
            self._batch.clear()
            self._deliver.put(batch)

    # -- the ends of streams ---------------------------------------------------------------------------------

    def close(self, ssrc: int, now: float) -> None:
        """Decode a stream's waiting packets, and remove it."""
        stream = self._streams.pop(ssrc, None)
        if stream is None:
            return
        if self._heard_since(stream.user_id) != stream.heard_since:
            stream.discard(now)
        else:
            stream.close()

    def close_unless_of(self, user_id: int, ssrc: int, now: float) -> None:
        """Close the stream on `ssrc` if it is another person's."""
        stream = self._streams.get(ssrc)
        if stream is not None and stream.user_id != user_id:
            self.close(ssrc, now)

    def close_all(self, now: float) -> None:
        """Close every stream."""
        for ssrc in list(self._streams):
            self.close(ssrc, now)

    def discard_unless_of(self, since: float | None, ssrc: int, now: float) -> None:
        """Remove the stream on `ssrc` without decoding it, unless its speaker has been heard all the time since."""
        stream = self._streams.get(ssrc)
        if stream is not None and stream.heard_since != since:
            self._discard(ssrc, now)

    def _discard(self, ssrc: int, now: float) -> None:
        stream = self._streams.pop(ssrc, None)
        if stream is not None:
            stream.discard(now)
