"""Turn datagrams into each person's sound, on the reader thread. Datagrams without sound are counted by reason.

Owns the streams (one jitter buffer and decoder per SSRC) and the roster. discord.py's reader thread calls `datagram`
and `flush`; the event loop calls the rest. One lock guards all state, held for one datagram at a time.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, assert_never

import numpy as np
import structlog

from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ
from voice.errors import OpusError
from voice.transport import opus
from voice.transport.aead import PacketOpener
from voice.transport.audio_events import SpeakerLeft, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.decrypt import DecryptFailure, can_tell_sender, find_sender, open_frame, open_transport
from voice.transport.jitter import (
    CLOCK_HZ,
    FRAME_TICKS,
    JitterBuffer,
    MissingFrame,
    OrderedFrame,
    PushResult,
    SpurtEnded,
)
from voice.transport.roster import HeldFrame, Roster
from voice.transport.rtp import Rejection, frame_of, parse
from voice.transport.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from voice.audio import Pcm
    from voice.transport.audio_events import AudioEvent
    from voice.transport.decrypt import LiveKeys
    from voice.transport.jitter import Released
    from voice.transport.rtp import AudioPacket
    from voice.transport.watchdog import WatchdogFinding

_log = structlog.get_logger()

# The reader thread checks this often, even if nothing is due.
_IDLE_S = 1.0
_SHORTEST_WAIT_S = 0.001
# Seconds of sound delivered at once. More saves CPU in rooms with many speakers, but adds latency.
_BATCH_S = 0.02
# Frames of one talkspurt lie on a 20 ms grid. Rounding shifts them by microseconds, a hole by 20 ms.
_CONTIGUOUS_S = 0.002


class _Stream:
    """One SSRC: its jitter buffer, its decoder, and the sound for the next batch."""

    __slots__ = ("concealed", "decoder", "jitter", "late", "lost", "pieces", "samples", "ssrc", "started_at", "user_id")

    def __init__(self, user_id: int, ssrc: int, jitter: JitterBuffer) -> None:
        self.user_id = user_id
        self.ssrc = ssrc
        self.jitter = jitter
        self.decoder = opus.Decoder()
        self.lost = 0
        self.late = 0
        self.pieces: list[Pcm] = []
        self.samples = 0
        self.concealed = 0
        self.started_at = 0.0

    def continues(self, at: float) -> bool:
        """Return whether sound that starts at `at` continues the current run."""
        return bool(self.pieces) and abs(self.started_at + self.samples / LISTEN_RATE_HZ - at) < _CONTIGUOUS_S

    def add(self, pcm: Pcm, at: float, *, concealed: bool) -> None:
        if not self.pieces:
            self.started_at = at
        self.pieces.append(pcm)
        self.samples += len(pcm)
        self.concealed += len(pcm) if concealed else 0

    def take(self, *, final: bool) -> SpeechFrames | None:
        """Return the run in whole 20 ms frames. A remainder stays, or is filled up with silence if `final`."""
        if not self.pieces:
            return None
        pcm = self.pieces[0] if len(self.pieces) == 1 else np.concatenate(self.pieces)
        over = len(pcm) % LISTEN_FRAME_SAMPLES
        started_at, concealed = self.started_at, self.concealed
        self.pieces, self.samples, self.concealed = [], 0, 0
        if over and final:
            pcm = np.concatenate([pcm, np.zeros(LISTEN_FRAME_SAMPLES - over, np.int16)])
        elif over:
            self.add(pcm[-over:], started_at + (len(pcm) - over) / LISTEN_RATE_HZ, concealed=False)
            pcm = pcm[:-over]
        if not len(pcm):
            return None
        return SpeechFrames(self.user_id, self.ssrc, started_at, pcm, min(concealed, len(pcm)))


class Receiver:
    """Receives one voice connection.

    `deliver` gets the batches, in the thread that calls `flush` (or `reset`, `left`, …). `is_excluded` is called for
    every packet, in the reader thread too, so it must be quick and thread-safe. Excluded people's packets are dropped
    before any decryption, and their keys are never tried.
    """

    def __init__(
        self,
        *,
        deliver: Callable[[Sequence[AudioEvent]], None],
        is_excluded: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock`: monotonic seconds. Raises `OpusMissingError` early, not at the first packet."""
        opus.library()
        self._deliver = deliver
        self._is_excluded = is_excluded
        self._clock = clock
        self._lock = threading.Lock()
        self._opener = PacketOpener()
        self._counters = PacketCounters()
        self._roster = Roster()
        self._watchdog = Watchdog()
        self._streams: dict[int, _Stream] = {}
        self._keys: LiveKeys | None = None
        self._batch: list[AudioEvent] = []
        self._delivered_at = clock()
        self._sounded = False  # sound waits for the next batch
        self._due = clock()  # a lower bound: no stream is due before

    # Called by the reader thread.

    def datagram(self, datagram: bytes, keys: LiveKeys) -> None:
        """Handle one datagram on arrival. `keys` are read during the call."""
        with self._lock:
            self._keys = keys
            self._counters.received += 1
            packet = parse(datagram)
            if isinstance(packet, Rejection):
                self._counters.count(packet)
                return
            user_id = self._roster.user_of(packet.ssrc)
            if user_id is not None and self._is_excluded(user_id):
                self._counters.excluded += 1
                self._discard(packet.ssrc)
                return
            payload = open_transport(datagram, packet, keys.secret_key, self._opener)
            if payload is None:
                self._counters.transport_failures += 1
                return
            self._counters.padded += packet.padded
            frame = frame_of(packet, payload)
            if frame is None:
                self._counters.malformed += 1
                return
            if not frame:
                self._counters.padding += 1
                self._pass_over(packet)
                return
            held = HeldFrame(packet.sequence, packet.timestamp, frame, self._clock())
            if user_id is None:
                self._of_somebody(packet.ssrc, held, keys)
            else:
                self._of_user(user_id, packet.ssrc, held, keys)

    def flush(self) -> float:
        """Release what is due, deliver a batch if it is time, and return in how many seconds to call again."""
        with self._lock:
            now = self._clock()
            if now >= self._due:
                self._release_due(now)
            due = self._due
            if self._batch or self._sounded:
                batch_due = self._delivered_at + _BATCH_S
                if now >= batch_due:
                    self._hand_on(now)
                else:
                    due = min(due, batch_due)
            return max(_SHORTEST_WAIT_S, due - now)

    def overflowed(self, datagrams: int) -> None:
        """Count datagrams that the system dropped before they were read."""
        with self._lock:
            self._counters.overflowed += datagrams

    # Called on the event loop, for messages of the voice gateway.

    def joined(self, user_ids: Iterable[int]) -> None:
        """Handle op 11: these people are connected."""
        with self._lock:
            self._roster.joined(user_ids)

    def rekeyed(self) -> None:
        """Handle op 22: everybody now sends with the current keys."""
        with self._lock:
            self._roster.rekeyed()

    def speaks(self, ssrc: int, user_id: int, *, announced: bool = True) -> None:
        """Handle op 5 or 12: `user_id` sends on `ssrc`. `announced`: they are speaking now."""
        with self._lock:
            self._place(ssrc, user_id)
            if announced and not self._is_excluded(user_id):
                self._watchdog.announced(user_id, self._clock())

    def left(self, user_id: int) -> None:
        """Handle op 13: deliver the last sound of `user_id`, then `SpeakerLeft`."""
        with self._lock:
            now = self._clock()
            for ssrc in self._roster.left(user_id):
                self._close(ssrc)
            self._watchdog.left(user_id)
            if not self._is_excluded(user_id):
                self._batch.append(SpeakerLeft(user_id, now))
                self._hand_on(now)

    def pause(self) -> None:
        """Handle a lost connection: deliver the waiting sound and end every talkspurt."""
        with self._lock:
            for ssrc in list(self._streams):
                self._close(ssrc)
            self._hand_on(self._clock())

    def reset(self) -> None:
        """Handle a new connection (op 2): forget the old one's SSRCs and members."""
        with self._lock:
            for ssrc in list(self._streams):
                self._close(ssrc)
            self._roster.clear()
            self._watchdog.reconnected()
            self._hand_on(self._clock())

    # Called from any thread.

    @property
    def members(self) -> frozenset[int]:
        """The connected people without the bot; excluded people are included."""
        with self._lock:
            return self._roster.members

    def counters(self) -> PacketCounters:
        with self._lock:
            counters = self._counters.copy()
            counters.unknown_ssrc = self._roster.dropped
            return counters

    def check(self, *, connected: bool, runner_alive: bool, in_transition: bool) -> list[WatchdogFinding]:
        with self._lock:
            return self._watchdog.check(
                self._clock(), connected=connected, runner_alive=runner_alive, in_transition=in_transition
            )

    # Called with the lock held.

    def _of_somebody(self, ssrc: int, held: HeldFrame, keys: LiveKeys) -> None:
        """Hold a frame of an unknown SSRC, and try the members' keys on it."""
        if held.frame == opus.SILENCE_FRAME:
            self._counters.silence += 1
            return
        self._counters.held += 1
        found = None
        if can_tell_sender(held.frame, keys) and self._roster.may_try(ssrc, held.arrived_at):
            found = find_sender(held.frame, self._roster.candidates(self._is_excluded), keys)
        if found is None:
            self._roster.hold(ssrc, held)
            return
        _log.info("sender_found_by_key", ssrc=ssrc, user_id=found.user_id)
        self._place(ssrc, found.user_id)
        self._of_stream(self._stream(ssrc, found.user_id), held, found.frame)

    def _place(self, ssrc: int, user_id: int) -> None:
        """Assign `ssrc` to `user_id`, and process the frames held for it."""
        stream = self._streams.get(ssrc)
        if stream is not None and stream.user_id != user_id:
            self._close(ssrc)
        for old in self._roster.ssrcs_of(user_id):
            if old != ssrc:
                self._close(old)
        waited = self._roster.speaks(ssrc, user_id)
        if self._is_excluded(user_id):
            self._counters.excluded += len(waited)
            return
        for held in waited:
            if self._keys is not None:
                self._of_user(user_id, ssrc, held, self._keys)

    def _pass_over(self, packet: AudioPacket) -> None:
        """Handle a packet that is nothing but padding: its number is no loss."""
        stream = self._streams.get(packet.ssrc)
        if stream is not None:
            now = self._clock()
            stream.jitter.push(packet.sequence, packet.timestamp, b"", arrived_at=now)
            self._release(stream, now)

    def _of_user(self, user_id: int, ssrc: int, held: HeldFrame, keys: LiveKeys) -> None:
        stream = self._streams.get(ssrc)
        if stream is not None and stream.jitter.has(held.sequence, held.timestamp):
            self._counters.duplicate += 1
            return
        frame = open_frame(held.frame, user_id, keys)
        if isinstance(frame, DecryptFailure):
            self._not_opened(frame, user_id, held.arrived_at)
        else:
            self._of_stream(stream or self._stream(ssrc, user_id), held, frame)

    def _not_opened(self, failure: DecryptFailure, user_id: int, arrived_at: float) -> None:
        self._counters.count(failure)
        match failure:
            case DecryptFailure.NOT_READY:
                self._watchdog.unready(user_id, arrived_at)
            case DecryptFailure.DAVE_FAILED:
                self._watchdog.failed(user_id)
            case DecryptFailure.CLEAR:
                # The group's keys are not in question, so nothing is recovered.
                pass
            case _:
                assert_never(failure)

    def _of_stream(self, stream: _Stream, held: HeldFrame, frame: bytes) -> None:
        """Push an Opus frame into the jitter buffer, and decode what it releases."""
        ticks = FRAME_TICKS
        if frame != opus.SILENCE_FRAME:
            self._watchdog.heard(stream.user_id)
            try:
                ticks = opus.packet_samples(frame)
            except OpusError:
                self._counters.undecodable += 1
                return
        at = stream.jitter.pass_on(held.sequence, held.timestamp, frame, arrived_at=held.arrived_at, ticks=ticks)
        if at is not None:
            # The stream's deadline only moves back, so `_due` stays a lower bound.
            self._sound(stream, at, ticks, frame)
            return
        arrival = stream.jitter.push(held.sequence, held.timestamp, frame, arrived_at=held.arrived_at, ticks=ticks)
        if arrival is not PushResult.ACCEPTED and arrival is not PushResult.UNDECIDED:
            self._counters.count(arrival)
        self._release(stream, held.arrived_at)

    def _stream(self, ssrc: int, user_id: int) -> _Stream:
        stream = self._streams.get(ssrc)
        if stream is None:
            jitter = JitterBuffer()
            stream = self._streams[ssrc] = _Stream(user_id, ssrc, jitter)
        return stream

    def _release_due(self, now: float) -> None:
        """Release every stream that is due, and compute the next due time. Runs five times a second during speech."""
        self._roster.expire(now)
        self._due = now + _IDLE_S
        for stream in list(self._streams.values()):
            deadline = stream.jitter.deadline
            if deadline is not None and deadline <= now:
                self._release(stream, now)
            elif deadline is not None:
                self._due = min(self._due, deadline)

    def _release(self, stream: _Stream, now: float) -> None:
        if self._is_excluded(stream.user_id):
            self._discard(stream.ssrc)
            return
        self._hear(stream, stream.jitter.release(now))
        deadline = stream.jitter.deadline
        if deadline is not None:
            self._due = min(self._due, deadline)

    def _hear(self, stream: _Stream, released: list[Released]) -> None:
        for item in released:
            match item:
                case OrderedFrame():
                    self._sound(stream, item.captured_at, item.ticks, item.payload)
                case MissingFrame():
                    self._fill(stream, item)
                case SpurtEnded():
                    self._end(stream, item.at)
        self._counters.lost += stream.jitter.lost - stream.lost
        self._counters.late += stream.jitter.late - stream.late
        stream.lost, stream.late = stream.jitter.lost, stream.jitter.late

    def _sound(self, stream: _Stream, at: float, ticks: int, payload: bytes) -> None:
        try:
            pcm = stream.decoder.decode(payload)
        except OpusError:
            self._counters.undecodable += 1
            self._add(stream, self._conceal(stream, ticks), at, concealed=True)
            return
        self._counters.decoded += 1
        self._add(stream, pcm, at, concealed=False)

    def _fill(self, stream: _Stream, gap: MissingFrame) -> None:
        """Decode a lost frame from the copy in the next packet, else let the decoder conceal it."""
        if gap.next_payload is not None and opus.carries_fec(gap.next_payload):
            samples = gap.ticks * LISTEN_RATE_HZ // CLOCK_HZ
            try:
                pcm = stream.decoder.recover(gap.next_payload, samples)
            except OpusError:
                pass
            else:
                self._counters.recovered += 1
                self._add(stream, pcm, gap.captured_at, concealed=False)
                return
        self._counters.concealed += 1
        self._add(stream, self._conceal(stream, gap.ticks), gap.captured_at, concealed=True)

    def _conceal(self, stream: _Stream, ticks: int) -> Pcm:
        samples = ticks * LISTEN_RATE_HZ // CLOCK_HZ
        try:
            return stream.decoder.conceal(samples)
        except OpusError:
            # Opus has no frame of this length.
            return np.zeros(samples, np.int16)

    def _add(self, stream: _Stream, pcm: Pcm, at: float, *, concealed: bool) -> None:
        if not stream.continues(at):
            self._take(stream, final=True)
        stream.add(pcm, at, concealed=concealed)
        self._sounded = True

    def _take(self, stream: _Stream, *, final: bool) -> None:
        frames = stream.take(final=final)
        if frames is not None:
            self._batch.append(frames)

    def _end(self, stream: _Stream, at: float) -> None:
        self._take(stream, final=True)
        self._batch.append(TalkspurtEnded(stream.user_id, stream.ssrc, at))
        self._counters.talkspurts += 1

    def _close(self, ssrc: int) -> None:
        """Decode a stream's waiting packets, and remove it."""
        stream = self._streams.pop(ssrc, None)
        if stream is None:
            return
        if self._is_excluded(stream.user_id):
            self._drop(stream)
        else:
            self._hear(stream, stream.jitter.close())

    def _discard(self, ssrc: int) -> None:
        """Remove a stream without decoding it: its speaker opted out."""
        stream = self._streams.pop(ssrc, None)
        if stream is not None:
            self._drop(stream)

    def _drop(self, stream: _Stream) -> None:
        talking = stream.jitter.talking
        self._counters.late += stream.jitter.late - stream.late
        self._counters.discarded += stream.jitter.discard()
        stream.pieces.clear()
        if talking:
            self._batch.append(TalkspurtEnded(stream.user_id, stream.ssrc, self._clock()))

    def _hand_on(self, now: float) -> None:
        """Deliver all sound."""
        for stream in self._streams.values():
            self._take(stream, final=False)
        self._sounded = False
        self._delivered_at = now
        if self._batch:
            batch, self._batch = self._batch, []
            self._deliver(batch)
