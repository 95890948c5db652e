"""The thread that reads the UDP socket of the voice connection."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog
from discord.voice_state import SocketReader, VoiceConnectionState

from voice.transport import receive_buffer

if TYPE_CHECKING:
    from voice.transport.receiver import Receiver

_log = structlog.get_logger()

# A datagram is at most one Ethernet frame; discord.py reads the same size.
_DATAGRAM_BYTES = 2048
# Most datagrams read before the receiver is flushed: 128 take about 5 ms to decode.
_DRAIN = 128
_NO_SOCKET_PAUSE_S = 0.02
# After it has emptied the socket, the reader rests until sound is to be handed on, and at most for so long, so that a
# wake-up brings many datagrams. With 20, 60 and 100 speakers a packet takes 111, 70 and 58 us of CPU time; with rests
# of 4 ms and up to four batches in 20 ms it took 124, 71 and 63 (five pairs of 6 s each, load 7 to 10 on 2 cores). No
# sound comes later. While several people speak, the beginning of a talkspurt may be noted so much too late.
_LONGEST_REST_S = 0.01
# In a crowd, where so many datagrams came in the last rest, it rests as long as sound is gathered before it is handed
# on, which the receiver decides. That is at most so long.
_CROWD_DATAGRAMS = 40
_CROWD_REST_S = 0.04
# If the socket is replaced during a poll, the reader notices after this time at most.
LONGEST_POLL_S = 0.2
# If the reader could not look at the socket for so long, the process stood still. What waits came at different times,
# and the system is asked for them, which makes a datagram some 6 % dearer. A reader that is merely behind, because the
# machine is busy, looks more often, and keeps the times of its reading: they shift everything alike, while the times of
# arrival would lie so far behind the clock, which ends speech, that it is cut at its pauses. Up to a second, packets
# that are late leave no hole in a talkspurt (`talkspurt_clock`).
_STANDSTILL_S = 1.0
# The reader asks this often what the system dropped.
_OVERFLOW_CHECK_S = 1.0


class PollingReader(SocketReader):
    """Reads the UDP socket with `poll` until it is empty, and flushes the receiver when nothing comes.

    discord.py's reader uses `select`, which receives nothing and spins when the socket's number is 1024 or more, and it
    reads only one datagram per wake-up.
    """

    def __init__(self, state: VoiceConnectionState, receiver: Receiver) -> None:
        """`state`: has the socket, which each connection replaces. Datagrams go to its listeners."""
        super().__init__(state)
        self._receiver = receiver
        # Wakes the thread from a poll when it has to end: in silence that would last, and whoever leaves waits for it.
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        # Starts paused, before the thread runs, until `resume`. discord.py's reader pauses itself once its thread runs,
        # and on a busy machine this undoes an earlier `resume` or `stop`.
        self._idle_paused = False
        self._overflow: tuple[object, int] = (None, 0)
        self._overflow_checked_at = 0.0
        # When the reader last looked at the socket; before a standstill, until what came in it is read.
        self._looked_at = 0.0
        # What came before this has been read.
        self._emptied_at = 0.0

    def stop(self) -> None:
        super().stop()
        with suppress(OSError):
            # It is full, or the thread has ended.
            self._waker.send(b"\0")

    def run(self) -> None:
        try:
            self._do_run()
        finally:
            self.stop()
            self._callbacks.clear()
            self._woken.close()
            self._waker.close()

    def _do_run(self) -> None:
        wait_s = 0.0
        while not self._end.is_set():
            if not self._running.is_set():
                self._running.wait()
                continue
            sock = self.state.socket
            wait_s = min(wait_s, LONGEST_POLL_S)
            try:
                readable = self._poll(sock, wait_s)
            except (OSError, ValueError, AttributeError, TypeError):
                # Between two connections the socket is missing or closed.
                time.sleep(_NO_SOCKET_PAUSE_S)
                continue
            late = readable and self._stood_still()
            read = self._drain(sock, late=late) if readable else 0
            self._count_overflow(sock)
            if not late and self._stood_still():
                # Since the socket was looked at. What came must be read before anything counts as missing.
                wait_s = 0.0
                continue
            wait_s = self._flush()
            if late:
                self._receiver.set_time(None)
                # The flush was at an earlier time. What has become due since is done once nothing is left to read.
                wait_s = 0.0
            if readable and read < _DRAIN:
                rest_s = min(wait_s, _CROWD_REST_S if read >= _CROWD_DATAGRAMS else _LONGEST_REST_S)
                time.sleep(rest_s)
                wait_s -= rest_s

    def _poll(self, sock: Any, wait_s: float) -> bool:
        """Return whether something has arrived, after waiting for it so long at most."""
        asked_at = time.monotonic()
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        found = [number for number, _ in poll.poll(wait_s * 1000)]
        if sock.fileno() in found:
            return True
        self._looked_at = self._emptied_at = asked_at + wait_s
        return False

    def _count_overflow(self, sock: Any) -> None:
        """Report, once a second, how many datagrams the system dropped since the last time."""
        now = time.monotonic()
        if now < self._overflow_checked_at + _OVERFLOW_CHECK_S:
            return
        self._overflow_checked_at = now
        before = self._overflow[1] if self._overflow[0] is sock else 0
        self._overflow = sock, max(before, receive_buffer.dropped(sock))
        if self._overflow[1] > before:
            self._receiver.overflowed(self._overflow[1] - before)

    def _stood_still(self) -> bool:
        """Return whether the process stood still since the reader looked at the socket."""
        return time.monotonic() > self._looked_at + _STANDSTILL_S

    def _drain(self, sock: Any, *, late: bool) -> int:
        """Handle what has arrived, `_DRAIN` datagrams at most, with the times of its arrival if `late`. Returns how
        many it were.
        """
        came_after = self._emptied_at
        datagrams = self._read(sock, late=late)
        callbacks = list(self._callbacks)
        self._receiver.set_came_after(came_after)
        for datagram, came_at in datagrams:
            if came_at is not None:
                self._receiver.set_time(came_at)
            for callback in callbacks:
                try:
                    callback(datagram)
                except Exception:  # noqa: BLE001 - one listener's fault must not deafen the others
                    _log.exception("datagram_listener_failed")
        return len(datagrams)

    def _read(self, sock: Any, *, late: bool) -> list[tuple[bytes, float | None]]:
        """Return what waits in the socket, `_DRAIN` datagrams at most, with the times of its arrival if `late`.

        All are read before any is handled: the processor then runs the system's code and the decoder's in turn, and
        not both for each datagram. That takes 1.5 % less CPU time with 100 speakers (median of 18 pairs of 15,000
        datagrams, of which 3 took more).
        """
        began_at = time.monotonic()
        if not late:
            self._looked_at = began_at
        datagrams: list[tuple[bytes, float | None]] = []
        try:
            while len(datagrams) < _DRAIN:
                datagrams.append(self._receive_late(sock) if late else (sock.recv(_DATAGRAM_BYTES), None))
        except OSError:
            # The socket is empty, or had an ICMP error, which poll reports as readable and this call has cleared.
            self._looked_at = self._emptied_at = began_at
        return datagrams

    def _receive_late(self, sock: Any) -> tuple[bytes, float]:
        """Return a datagram that waited, and when it came."""
        datagram, came_ns = receive_buffer.receive(sock, _DATAGRAM_BYTES)
        now = time.monotonic()
        ago_s = 0.0 if came_ns is None else (time.time_ns() - came_ns) / 1e9
        # The wall clock may have been set meanwhile.
        return datagram, min(now, max(self._looked_at, now - ago_s))

    def _flush(self) -> float:
        try:
            return self._receiver.flush()
        except Exception:  # noqa: BLE001 - the reader thread must outlive whatever one packet does
            _log.exception("receiver_flush_failed")
            return _NO_SOCKET_PAUSE_S


def end_thread(reader: SocketReader) -> None:
    """End discord.py's reader, which its constructor started. Repeats `stop`, because one before the thread runs is
    lost.
    """
    for _ in range(100):
        reader.stop()
        reader.join(0.01)
        if not reader.is_alive():
            return
