"""Receives the datagrams of one voice connection on the reader thread, and finds out whose sound each one carries.

Discord sends the sound of everybody in a channel to one socket. A datagram names its sender by a number only (the
SSRC). It is encrypted twice: for the way to the voice server, with one key for the connection, and from end to end,
with a key of the person who speaks, which the server does not have. So each datagram goes through the same steps:

1. `rtp.parse` reads its head. What is no sound is counted and dropped.
2. The SSRC tells whose it is, if that is known. Whoever may not be heard is dropped here, before any key is used.
3. The transport key opens it. Whatever somebody has forged ends here, so it takes nothing from anybody's share of
   packets.
4. The person's own key opens the frame, and the frame goes into their stream (`speaker_streams`), which puts the frames
   in order and makes sound of them.

Two things make that harder than it sounds. **Whose an SSRC is comes by another road** (the websocket, op 5) and may
come later than the sound. Frames of an unknown SSRC therefore wait for a moment in the roster; and since nobody but its
owner can have encrypted a frame, each member's key is tried on some of them. **Keys change** whenever somebody comes or
goes, and old and new ones are in use side by side. What no key opens is counted with its cause, and the watchdog finds
out from the counts who is not heard although they speak.

When a frame came matters as much as whose it is: somebody may have agreed to be heard only a second ago, and what
waited in the socket since before that is not heard either.

The thread that reads the socket calls `datagram` and `flush`; the event loop calls the rest. One lock guards all state,
held for one datagram at a time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ
from voice.errors import OpusError
from voice.transport import opus
from voice.transport.audio_events import SpeakerLeft
from voice.transport.counters import PacketCounters
from voice.transport.decrypt import (
    DecryptFailure,
    LiveKeys,
    can_identify_sender,
    find_sender,
    is_group_ready,
    is_in_group,
    open_frame,
    open_transport,
)
from voice.transport.jitter import FRAME_TICKS
from voice.transport.roster import HeldFrame, Roster
from voice.transport.rtp import AudioPacket, PacketOpener, Rejection, frame_of, parse
from voice.transport.speaker_streams import BatchQueue, SpeakerStreams
from voice.transport.watchdog import Watchdog, WatchdogFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from voice.transport.speaker_stream import SpeakerStream
    from voice.transport.speaker_streams import HeardSince


# Clients send 50. The shortest frames that Opus has, 2.5 ms, are 400, and a network that stood still for some seconds
# brings everything at once.
MOST_PER_S = 500


class PacketRate:
    """Counts the packets of each sender in the current second. What it keeps is no more than the packets of a second.

    The voice server passes on whatever a modified client sends, and end-to-end decryption and Opus cost the most of a
    packet: 5,000 a second of one client would take a third of a core from everybody else.
    """

    def __init__(self) -> None:
        self._since = float("-inf")
        self._counts: Counter[int] = Counter()

    def take(self, sender: int, now: float) -> bool:
        """Count a packet. Return whether its sender has not sent too many. `now`: monotonic seconds."""
        if not self._since <= now < self._since + 1.0:
            self._since = now
            self._counts.clear()
        self._counts[sender] += 1
        return self._counts[sender] <= MOST_PER_S


_log = structlog.get_logger()

_SHORTEST_WAIT_S = 0.001
_ANY_SSRC = -1
# Op 5 may come so much later than the sound that it announces: TCP sends again what was lost, UDP does not wait.
_LATE_ANNOUNCEMENT_S = 1.0


class Receiver:
    """Receives one voice connection.

    `deliver` gets the batches, in the thread that calls `flush` (or `reset`, `left`, …). `heard_since` returns since
    when a person may be heard, in seconds of the same clock; None: they may not. It is called for every packet, in the
    reader thread too, so it must be quick and thread-safe. What arrived before is dropped before any decryption,
    however late its sender becomes known, and the person's key is not tried on it.
    """

    def __init__(
        self,
        *,
        deliver: BatchQueue,
        heard_since: HeardSince,
        rate_hz: int = LISTEN_RATE_HZ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rate_hz`: of the sound. `clock`: monotonic seconds. Raises `OpusMissingError` early, not at the first
        packet.
        """
        opus.library()
        self._heard_since = heard_since
        self._clock = clock
        # The time that stands for the clock's, while datagrams are read late (`set_time`).
        self._read_at: float | None = None
        # What is handled came after this; None: it is handled as it comes (`set_came_after`).
        self._came_after: float | None = None
        self._lock = threading.Lock()
        self._opener = PacketOpener()
        # By person, whatever SSRCs they send on; and by SSRC until it is known, or a key shows, whose it is.
        self._rate, self._unknown_rate = PacketRate(), PacketRate()
        self._counters = PacketCounters()
        self._roster = Roster()
        self._watchdog = Watchdog()
        self._streams = SpeakerStreams(
            deliver=deliver, heard_since=heard_since, counters=self._counters, now=self._now(), rate_hz=rate_hz
        )
        self._keys: LiveKeys | None = None

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
            now = self._now()
            came_after = now if self._came_after is None else self._came_after
            if user_id is not None:
                since = self._heard_since(user_id)
                self._streams.discard_unless_of(since, packet.ssrc, now)
                if since is None or since >= came_after:
                    self._counters.excluded += 1
                    return
            payload = open_transport(datagram, packet, keys.secret_key, self._opener)
            if payload is None:
                self._counters.transport_failures += 1
                return
            # Forged packets have not come this far, so they use up nobody's share.
            within = self._unknown_rate.take(packet.ssrc, now) if user_id is None else self._rate.take(user_id, now)
            if not within:
                self._counters.excess += 1
                return
            self._counters.padded += packet.padded
            frame = frame_of(packet, payload)
            if frame is None:
                self._counters.malformed += 1
                return
            if not frame:
                self._counters.padding += 1
                self._pass_over(packet, user_id)
                return
            held = HeldFrame(packet.sequence, packet.timestamp, frame, now, came_after)
            if user_id is None:
                self._take_unknown(packet.ssrc, held, keys)
            else:
                self._take_known(user_id, packet.ssrc, held, keys)

    def set_time(self, at: float | None) -> None:
        """Take `at` for the time, until the next call; None: the clock's.

        What waited while the process stood still is read at once. With the time at which each datagram came, it is
        handled as if it had been read then: no talkspurt ends in between, and no time line gets a hole.
        """
        self._read_at = at

    def set_came_after(self, at: float) -> None:
        """Take it that what is handled from now on came after `at`: it may have waited in the socket since. Somebody
        may have agreed to be heard meanwhile, and is heard only if it came after that.
        """
        self._came_after = at

    def flush(self) -> float:
        """Release what is due, deliver a batch if it is time, and return in how many seconds to call again."""
        with self._lock:
            now = self._now()
            if self._streams.is_due(now):
                self._roster.expire(now)
            return max(_SHORTEST_WAIT_S, self._streams.flush(now) - now)

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
            # First, so that frames which overtook this message and wait count.
            if announced and self._heard_since(user_id) is not None and not self._was_just_heard(user_id, ssrc):
                self._watchdog.announced(user_id, self._now())
            self._place(ssrc, user_id)

    def not_recovered(self, user_id: int) -> None:
        """Record that the recovery which `check` found for `user_id` failed."""
        with self._lock:
            self._watchdog.not_recovered(user_id)

    def left(self, user_id: int) -> None:
        """Handle op 13: deliver the last sound of `user_id`, then `SpeakerLeft` unless they are excluded."""
        with self._lock:
            now = self._now()
            for ssrc in self._roster.left(user_id):
                self._streams.close(ssrc, now)
            self._watchdog.left(user_id)
            if self._heard_since(user_id) is not None:
                self._streams.add(SpeakerLeft(user_id, now))
                self._streams.hand_on(now)

    def pause(self) -> None:
        """Handle a lost connection: deliver the waiting sound and end every talkspurt."""
        with self._lock:
            now = self._now()
            self._streams.close_all(now)
            self._streams.hand_on(now)

    def reset(self) -> None:
        """Handle a new connection (op 2): forget the old one's SSRCs and members."""
        with self._lock:
            now = self._now()
            self._streams.close_all(now)
            self._roster.clear()
            self._watchdog.reconnected()
            self._streams.hand_on(now)

    # Called from any thread.

    @property
    def members(self) -> frozenset[int]:
        """The connected people without the bot; excluded people are included."""
        with self._lock:
            return self._roster.members

    def counters(self) -> PacketCounters:
        """Return a copy of what was counted so far."""
        with self._lock:
            return replace(self._counters, unknown_ssrc=self._roster.dropped)

    def check(self, *, connected: bool, in_transition: bool, deafened: bool) -> list[WatchdogFinding]:
        """Return what is wrong with the sound now, each problem once. Parameters: see `Watchdog.check`."""
        with self._lock:
            return self._watchdog.check(
                self._now(),
                connected=connected,
                ready=self._keys is not None and is_group_ready(self._keys),
                in_transition=in_transition,
                deafened=deafened,
            )

    # Called with the lock held.

    def _now(self) -> float:
        return self._clock() if self._read_at is None else self._read_at

    def _was_just_heard(self, user_id: int, ssrc: int) -> bool:
        stream = self._streams.on(ssrc)
        if stream is None or stream.user_id != user_id:
            return False
        return self._now() <= stream.heard_at + _LATE_ANNOUNCEMENT_S

    def _take_unknown(self, ssrc: int, held: HeldFrame, keys: LiveKeys) -> None:
        """Hold a frame of an unknown SSRC, unless a member's key opens it."""
        if held.frame == opus.SILENCE_FRAME:
            self._counters.silence += 1
            return
        if not self._take_by_key(ssrc, held, keys):
            self._counters.held += 1
            self._roster.hold(ssrc, held)

    def _take_by_key(self, ssrc: int, held: HeldFrame, keys: LiveKeys) -> bool:
        """Try the members' keys on a frame. Whose key opens it has the SSRC now. Returns whether one did."""
        if not (can_identify_sender(held.frame, keys) and self._roster.may_try(ssrc, held.arrived_at)):
            return False
        # One sender may use any number of SSRCs, and it is not known whose they are before all keys were tried.
        if not self._unknown_rate.take(_ANY_SSRC, held.arrived_at):
            return False
        heard = [user_id for user_id in self._roster.candidates() if self._may_open(held, user_id)]
        found = find_sender(held.frame, heard, keys)
        if found is None:
            return False
        if not self._rate.take(found.user_id, held.arrived_at):
            self._counters.excess += 1
            return True
        _log.info("sender_found_by_key", ssrc=ssrc, user_id=found.user_id)
        self._place(ssrc, found.user_id)
        self._pass_to_stream(self._streams.of(found.user_id, ssrc, self._now()), held, found.frame)
        return True

    def _place(self, ssrc: int, user_id: int) -> None:
        """Assign `ssrc` to `user_id`, and process the frames held for it.

        What this user's key does not open is counted. No other key is tried, because a former owner's would take the
        SSRC back, and the frames after it would be delivered as theirs.
        """
        self._streams.close_unless_of(user_id, ssrc, self._now())
        for old in self._roster.ssrcs_of(user_id):
            if old != ssrc:
                self._streams.close(old, self._now())
        for held in self._roster.speaks(ssrc, user_id):
            if not self._may_open(held, user_id):
                self._counters.excluded += 1
            elif not self._rate.take(user_id, self._now()):
                self._counters.excess += 1
            elif self._keys is not None and (failure := self._take_of_owner(user_id, ssrc, held, self._keys)):
                self._count_unopened(failure, user_id, held.arrived_at, self._keys)

    def _may_open(self, held: HeldFrame, user_id: int) -> bool:
        """Return whether this person might be heard when a frame came, and ever since."""
        since = self._heard_since(user_id)
        return since is not None and since < held.came_after

    def _pass_over(self, packet: AudioPacket, user_id: int | None) -> None:
        """Handle a packet that is nothing but padding: its number is no loss."""
        if user_id is not None:
            self._watchdog.silent(user_id)
        self._streams.pass_over(packet.ssrc, packet.sequence, packet.timestamp, self._now())

    def _take_known(self, user_id: int, ssrc: int, held: HeldFrame, keys: LiveKeys) -> None:
        """Open a frame of an SSRC that is a user's, and pass it to their stream."""
        failure = self._take_of_owner(user_id, ssrc, held, keys)
        # The server may have given the SSRC to somebody else, and op 5 is still to come or was lost.
        if failure is DecryptFailure.DAVE_FAILED and self._take_by_key(ssrc, held, keys):
            return
        if failure is not None:
            self._count_unopened(failure, user_id, held.arrived_at, keys)

    def _take_of_owner(self, user_id: int, ssrc: int, held: HeldFrame, keys: LiveKeys) -> DecryptFailure | None:
        """Open a frame with the key of the SSRC's owner, and pass it to their stream. Returns why it was not opened."""
        stream = self._streams.on(ssrc)
        if stream is not None and stream.has(held.sequence, held.timestamp, arrived_at=held.arrived_at):
            self._counters.duplicate += 1
            return None
        frame = open_frame(held.frame, user_id, keys)
        if isinstance(frame, DecryptFailure):
            return frame
        if stream is None or stream.user_id != user_id:
            stream = self._streams.of(user_id, ssrc, self._now())
        self._pass_to_stream(stream, held, frame)
        return None

    def _count_unopened(self, failure: DecryptFailure, user_id: int, arrived_at: float, keys: LiveKeys) -> None:
        self._counters.count(failure)
        match failure:
            case DecryptFailure.NOT_READY:
                self._watchdog.unready(user_id, arrived_at)
            case DecryptFailure.DAVE_FAILED:
                self._watchdog.failed(user_id, in_group=is_in_group(user_id, keys))
            case DecryptFailure.CLEAR:
                # The group's keys are not in question, so nothing is recovered.
                self._watchdog.refused(user_id)
            case _:
                assert_never(failure)

    def _pass_to_stream(self, stream: SpeakerStream, held: HeldFrame, frame: bytes) -> None:
        """Pass an Opus frame to its stream, with the length that it claims."""
        ticks = FRAME_TICKS
        if frame == opus.SILENCE_FRAME:
            self._watchdog.silent(stream.user_id)
        else:
            self._watchdog.heard(stream.user_id)
            stream.heard_at = held.arrived_at
            try:
                ticks = opus.packet_samples(frame)
            except OpusError:
                self._counters.undecodable += 1
                return
        self._streams.hear(stream, held, frame, ticks=ticks)
