"""The operator learns of a cluster's recognisers whose model that reads fails, from their answers."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from voice.asr import pool_readers
from voice.asr.pool_readers import FORGOTTEN_AFTER_S, PoolReaders
from voice.asr.text_end import ReaderFault


class Clock:
    """Time for `PoolReaders`, which is set."""

    now_s = 100.0

    def __call__(self) -> float:
        """Return it."""
        return self.now_s


def answer(recogniser: object = "north/4711", fault: object = "fails") -> dict[str, Any]:
    """Return what matters of an answer, as it is written in JSON."""
    return {"text": "hello there", "recogniser": recogniser, "reader_fault": fault}


def failing(readers: PoolReaders) -> dict[ReaderFault, float]:
    """Return since when which fault is there."""
    found = {fault: readers.failing_since(fault) for fault in ReaderFault}
    return {fault: since for fault, since in found.items() if since is not None}


def test_a_fault_lasts_until_the_same_recogniser_reads_again() -> None:
    """The others say nothing of it, and it is logged once, with where to look."""
    clock = Clock()
    readers = PoolReaders(monotonic=clock)
    with capture_logs() as logs:
        readers.on_answer(answer())
        clock.now_s += 5
        readers.on_answer(answer())
        readers.on_answer(answer("south/12", None))
    assert failing(readers) == {ReaderFault.FAILS: 100.0}
    assert logs == [
        {"event": "pool_reader_failed", "log_level": "warning", "recogniser": "north/4711", "fault": "fails"}
    ]
    readers.on_answer(answer(fault=None))
    assert failing(readers) == {}


def test_two_recognisers_may_have_two_faults() -> None:
    """Each has its own remedy."""
    clock = Clock()
    readers = PoolReaders(monotonic=clock)
    readers.on_answer(answer())
    clock.now_s += 5
    readers.on_answer(answer("south/12", "not_loaded"))
    assert failing(readers) == {ReaderFault.FAILS: 100.0, ReaderFault.NOT_LOADED: 105.0}


def test_a_recogniser_of_which_nothing_is_heard_is_forgotten() -> None:
    """It was replaced, mostly. If it fails again later, that begins then."""
    clock = Clock()
    readers = PoolReaders(monotonic=clock)
    readers.on_answer(answer())
    clock.now_s += FORGOTTEN_AFTER_S - 1
    assert failing(readers) == {ReaderFault.FAILS: 100.0}
    clock.now_s += 1
    assert failing(readers) == {}
    readers.on_answer(answer())
    assert failing(readers) == {ReaderFault.FAILS: clock.now_s}


@pytest.mark.parametrize(
    "told",
    [
        # From a release without these parts, and from a newer one with another fault.
        {"text": "hello there"},
        answer(fault="tired"),
        answer(fault=["fails"]),
        answer(fault=True),
        answer(7),
        answer(None),
        answer(""),
        answer("north\n4711"),
        answer("n" * 301),
    ],
)
def test_what_is_not_understood_is_no_fault(told: dict[str, Any]) -> None:
    """Nothing is kept of it, and nothing is logged."""
    readers = PoolReaders()
    with capture_logs() as logs:
        readers.on_answer(told)
    assert (failing(readers), logs) == ({}, [])


def test_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was heard of longest ago goes first."""
    monkeypatch.setattr(pool_readers, "MOST_KEPT", 2)
    clock = Clock()
    readers = PoolReaders(monotonic=clock)
    for name, at_s in (("a/1", 0.0), ("b/1", 1.0), ("a/1", 2.0), ("c/1", 3.0)):
        clock.now_s = at_s
        readers.on_answer(answer(name))
    assert failing(readers) == {ReaderFault.FAILS: 0.0}
    readers.on_answer(answer("a/1", None))
    assert failing(readers) == {ReaderFault.FAILS: 3.0}, "b is gone"
