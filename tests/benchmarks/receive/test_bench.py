"""The figures and targets of the receive benchmark."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.receive.bench import _perform, summary
from benchmarks.receive.options import ReceiveBenchOptions
from benchmarks.receive.scene import Scene
from benchmarks.receive.targets import receive_targets
from benchmarks.receive.usage import cpu_by_thread, shares, spread_of
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from benchmarks.report import Json

SENT: dict[str, Json] = {"packets": 1000, "measured": 1000, "latest_ms": 3.0}
FOUND: dict[str, Json] = {
    "wall_s": 10.0,
    "cpu_s": 2.0,
    "threads": {"MainThread": 0.2},
    "loop_lag": {"p99_ms": 4.0},
    "counters": {"decoded": 980, "silence": 5, "late": 15},
}


def test_what_became_no_sound_is_lost() -> None:
    found = summary(SENT, FOUND)
    assert (found["sent"], found["lost"], found["core"], found["cpu_s_a_speaker_second"]) == (1000, 15, 0.2, 0.1)


def test_the_warm_up_costs_nothing_and_its_packets_may_be_lost() -> None:
    """The cost is of the packets after the warm-up, and every packet has to become sound."""
    recogniser: dict[str, Json] = {"busy": 0.9, "texts": 40}
    found = summary({**SENT, "measured": 500}, {**FOUND, "recogniser": recogniser})
    assert (found["sent"], found["lost"], found["core"], found["cpu_s_a_speaker_second"]) == (1000, 15, 0.2, 0.2)
    assert (found["measured_s"], found["recogniser"]) == (10.0, recogniser)


def test_targets_are_met_only_by_the_figures_that_they_name() -> None:
    bot: dict[str, Json] = {"lost": 0, "sent": 60_000, "loop_lag": {"p99_ms": 21.0}, "recogniser": {"texts": 40}}
    link: dict[str, Json] = {
        "100 speakers": {"lost": 0, "sent": 30_000, "core": 0.19},
        "200 speakers in step": {"lost": 1, "sent": 60_000},
    }
    found = receive_targets({"link": link, "whole bot": {"100 speakers": bot}})
    assert [target.met for target in found] == [True, True, False, False, True]
    assert [target.met for target in receive_targets({"link": {"10 speakers": {"lost": 1}}})] == [None] * 5


@pytest.mark.parametrize("recogniser", [None, {"texts": 0}])
def test_a_lag_without_recognitions_beside_it_is_no_measurement(recogniser: Json) -> None:
    """In a room that hears so many people the recogniser is never idle, so the lag of an idle one says nothing."""
    bot: dict[str, Json] = {"lost": 0, "sent": 60_000, "loop_lag": {"p99_ms": 9.0}, "recogniser": recogniser}
    lag = receive_targets({"whole bot": {"100 speakers": bot}})[3]
    assert (lag.name, lag.met) == ("whole bot, 100 speakers: loop lag P99, ms", None)


def test_threads_are_named_without_their_numbers() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        sum(range(1_000_000))
        ready.set()
        done.wait(PATIENCE_S)

    thread = threading.Thread(target=work, name="voice-socket-reader:0x7f00")
    thread.start()
    ready.wait(PATIENCE_S)
    used = cpu_by_thread()
    done.set()
    thread.join()
    assert used["voice-socket-reader"] > 0
    assert used["MainThread"] > 0
    assert shares({"a": 1.0}, {"a": 3.0, "b": 0.5, "c": 0.0}, 10.0) == {"a": 0.2, "b": 0.05}
    assert spread_of([]) == {}
    assert spread_of([1.0, 2.0, 3.0]) == {"p50_ms": 2.0, "p99_ms": 3.0, "max_ms": 3.0}


def test_a_run_needs_as_many_people_as_its_largest_crowd() -> None:
    options = ReceiveBenchOptions(speakers=(10, 20), in_step=30, bot_speakers=(40,), only=("link",))
    assert options.people == 30
    assert replace(options, in_step=0).people == 20
    assert replace(options, only=("bot",)).people == 40


def test_only_the_bot_s_speakers_pause() -> None:
    """The target of the link counts what is lost while all speak; the bot recognises only what has an end."""
    options = ReceiveBenchOptions(speakers=(10,), in_step=20, bot_speakers=(30,), seconds=6.0)
    assert options.link_scenes == (Scene(10, 6.0, 1.0), Scene(20, 6.0, 1.0, in_step=True))
    assert [scene.name for scene in options.link_scenes] == ["10 speakers", "20 speakers in step"]
    assert options.bot_scenes == (Scene(30, 30.0, 10.0, pauses=True),)


@pytest.mark.asyncio
@pytest.mark.parametrize("pauses", [True, False])
async def test_the_cost_is_that_of_the_time_in_which_people_speak(
    monkeypatch: pytest.MonkeyPatch, *, pauses: bool
) -> None:
    """It begins after the warm-up and ends with their last packet: silence after it would make a share of a core
    smaller. The packets count from the first one.
    """
    asked: list[str] = []

    async def wait(_: float) -> None:
        asked.append("wait")

    monkeypatch.setattr("benchmarks.receive.bench.asyncio.sleep", wait)
    crowd, receiver = _Child(asked), _Child(asked)
    await _perform(Scene(2, 3.0, 1.0, pauses=pauses), crowd, receiver, 1)  # type: ignore[arg-type]
    assert asked == ["prepare", "announce", "wait", "begin", "perform", "wait", "warmed_up", "end", "wait"]


class _Child:
    """A child process that answers nothing and notes what it was asked."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def ask(self, op: str, **_: object) -> dict[str, Json]:
        self._asked.append(op)
        return {}
