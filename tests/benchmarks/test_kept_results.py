"""The results that are kept with the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cluster.bench import BUSY_SHARE, HEARD_TIMES, SPEECH_SHARE
from benchmarks.document import LONG_RUNS, kept_results
from benchmarks.figures import number_at
from benchmarks.registry import BENCHMARKS

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
RESULTS = sorted(FOLDER.glob("*.json"))
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.stem))
def test_kept_result_is_whole_and_names_no_place_of_a_machine(path: Path) -> None:
    """A kept result is complete and finished, and names no path of a machine."""
    text = path.read_text("utf-8")
    told = json.loads(text)
    assert {"bench", "machine", "ours", "targets"} <= told.keys()
    assert all({"name", "goal", "value", "met"} <= target.keys() for target in told["targets"])
    assert not any("not finished" in remark for remark in told["remarks"])
    assert "/tmp" not in text
    assert "/home" not in text


def test_every_kept_result_is_told() -> None:
    """A result that no benchmark names would be missing on the page."""
    named = {file for entry in BENCHMARKS for file in entry.results} | set(LONG_RUNS)
    assert set(kept_results()) <= named


def test_the_number_of_rooms_is_the_kept_figures_multiplied() -> None:
    """A room of which somebody speaks half of the time, with two answers a minute, on cores that are half busy."""
    kept = kept_results()
    bot = ("ours", "a bot with 6 rooms")
    silent_s, speech_s, heard_s, answer_s = (
        number_at(kept[name], *path) or 0.0
        for name, path in (
            ("cluster", (*bot, "cpu_s_a_silent_s")),
            ("cluster", (*bot, "cpu_s_a_speech_s")),
            ("asr", ("ours", "opus", "cpu_s_for_1_s")),
            ("reply-questions", ("ours", "answers", "cpu_s_an_answer")),
        )
    )
    speaking_s = 60 * SPEECH_SHARE
    minute_s = 60 * silent_s + speaking_s * speech_s + speaking_s * HEARD_TIMES * heard_s + 2 * answer_s
    page = " ".join((FOLDER.parent / "operations.md").read_text("utf-8").split())
    told = (
        f"{minute_s:.1f} s of a core",
        f"About {WORDS[int(2 * 60 * BUSY_SHARE / minute_s)]} on two cores",
    )
    assert [each for each in told if each not in page] == []
