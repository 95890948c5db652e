"""The process of `paced_sender`: holds finished datagrams and sends each at its time.

Run as a file. It imports few modules and none of Roomtone's, so it takes 8 MB and starts quickly. It has its own
interpreter, so a busy bot does not delay it.

    argument: the number of the inherited socket on which messages come
    message: kind (one byte), line (uint32), time (double, CLOCK_MONOTONIC), the datagram
        OPEN: from now on `line` is the socket passed along; CLOSE: forget `line`; SEND: send the datagram at `time`

It ends when the other end of its socket is closed.
"""

import heapq
import os
import select
import socket
import struct
import sys
import time

HEADER = struct.Struct("=BId")
OPEN, CLOSE, SEND = 1, 2, 3
# A voice datagram has a few hundred bytes; the largest Opus frame with all headers is smaller than this.
LARGEST_BYTES = 8192
# Sending this much too early is better than sleeping for one more kernel tick.
EARLY_S = 0.00005


def serve(messages: socket.socket) -> None:
    """Handle messages until the other end of the socket is closed."""
    lines: dict[int, int] = {}
    waiting: list[tuple[float, int, int, bytes]] = []
    order = 0
    while True:
        wait_s = None if not waiting else max(0.0, waiting[0][0] - time.monotonic() - EARLY_S)
        readable, _, _ = select.select([messages], [], [], wait_s)
        now = time.monotonic() + EARLY_S
        while waiting and waiting[0][0] <= now:
            _, _, line, datagram = heapq.heappop(waiting)
            _send(lines.get(line), datagram)
        if not readable:
            continue
        message, descriptors, _, _ = socket.recv_fds(messages, LARGEST_BYTES, 1)
        if not message:
            return
        kind, line, at = HEADER.unpack_from(message)
        if kind == SEND:
            order += 1
            heapq.heappush(waiting, (at, order, line, message[HEADER.size :]))
        elif line in lines:
            os.close(lines.pop(line))
        if kind == OPEN:
            lines[line] = descriptors[0]


def take_precedence() -> None:
    """Ask for real-time priority, as audio players do. Most systems grant it to administrators only."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except OSError:
        # Without it the process still runs as soon as a processor is free, which is mostly at once.
        return


def _send(descriptor: int | None, datagram: bytes) -> None:
    if descriptor is None:
        return
    try:
        os.write(descriptor, datagram)
    except OSError:
        # A datagram that the network refuses is lost, like any other lost datagram.
        return


if __name__ == "__main__":
    take_precedence()
    serve(socket.socket(fileno=int(sys.argv[1])))
