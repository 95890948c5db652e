"""Calls run one after the other in a thread that keeps no process alive."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from tests.patience import PATIENCE_S
from voice.listening.daemon_thread import DaemonThread


def test_calls_run_in_order_and_their_errors_reach_the_caller() -> None:
    """A call that raises ends neither the thread nor the calls after it."""
    thread = DaemonThread("calls")
    thread.start()
    order: list[int] = []
    first, broken, last = (thread.submit(call) for call in (lambda: order.append(1), lambda: 1 // 0, lambda: 3))
    assert first.result(10) is None
    assert isinstance(broken.exception(10), ZeroDivisionError)
    assert (last.result(10), order) == (3, [1])
    thread.close()


def test_a_call_that_hangs_keeps_nothing_alive() -> None:
    """The thread is a daemon, which the interpreter does not wait for, and closing it waits for nothing. What waits
    behind the call is cancelled.
    """
    thread = DaemonThread("hangs")
    thread.start()
    begun, gate = threading.Event(), threading.Event()

    def hang() -> bool:
        begun.set()
        return gate.wait()

    hanging = thread.submit(hang)
    begun.wait()
    behind = thread.submit(lambda: True)
    [found] = [each for each in threading.enumerate() if each.name == "hangs"]
    assert found.daemon
    thread.close()
    thread.join(0)
    with pytest.raises(CancelledError):
        behind.result(10)
    gate.set()
    assert hanging.result(10)
    thread.join(PATIENCE_S)
    assert not found.is_alive()
