"""The figures and targets of the receive benchmark."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.receive import node_peer
from benchmarks.receive.bench import summary
from benchmarks.receive.options import ReceiveBenchOptions
from benchmarks.receive.targets import receive_targets
from benchmarks.receive.usage import cpu_by_thread, shares, spread_of
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from benchmarks.report import Json

SENT: dict[str, Json] = {"packets": 1000, "latest_ms": 3.0}
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


def test_targets_are_met_only_by_the_figures_that_they_name() -> None:
    bot: dict[str, Json] = {"100 speakers": {"lost": 0, "sent": 60_000, "loop_lag": {"p99_ms": 21.0}}}
    link: dict[str, Json] = {"100 speakers": {"lost": 0, "sent": 30_000, "core": 0.19}}
    assert [target.met for target in receive_targets({"link": link, "whole bot": bot})] == [True, True, False, True]
    assert [target.met for target in receive_targets({"link": {"10 speakers": {"lost": 1}}})] == [None] * 4


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
    assert ReceiveBenchOptions(speakers=(10, 20), only=("link",)).people == 20


def test_the_peer_s_version_is_the_one_of_its_package_file() -> None:
    package = (Path(node_peer.__file__).parent / "node" / "package.json").read_text("utf-8")
    for name, version in re.findall(r'"((?:@discordjs|@evan|@snazzah)/\w+)": "([\d.]+)"', package):
        assert f"{name} {version}" in node_peer.VERSION
