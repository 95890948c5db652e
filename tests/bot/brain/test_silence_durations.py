"""For how long a spoken request wants the bot to be silent."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.silence_durations import split_duration
from bot.brain.silence_requests import asks_for_silence

TABLE = tomllib.loads((Path(__file__).parent / "silence_requests.toml").read_text(encoding="utf-8"))
# Of the cases that were held apart while the durations were made. Before, 7 of them were judged rightly.
RIGHT_APART = 19


def minutes_of(text: str) -> float:
    """Return for how many minutes a request wants silence; 0 without an end, -1 if it is none."""
    rest, minutes = split_duration(text)
    return (minutes or 0) if asks_for_silence(rest) else -1


@pytest.mark.parametrize("case", TABLE["tuned"], ids=lambda case: case["say"])
def test_people_say_for_how_long(case: dict[str, float | str]) -> None:
    """A request is recognised with its duration, and what only sounds like one is none."""
    assert minutes_of(str(case["say"])) == case["minutes"]


def test_of_sentences_held_apart_nearly_all_are_judged_rightly() -> None:
    """And no sentence that is no request silences the bot."""
    judged = [(minutes_of(case["say"]), case["minutes"]) for case in TABLE["apart"]]
    assert sum(found == wanted for found, wanted in judged) >= RIGHT_APART
    assert all(found < 0 for found, wanted in judged if wanted < 0)


@pytest.mark.parametrize("text", ["Be quiet for a second.", "Be quiet.", "", "Play the second song."])
def test_what_is_no_duration_stays_in_the_text(text: str) -> None:
    """'A second' means a moment."""
    assert split_duration(text) == (text, None)


@given(st.text())
def test_any_text_can_be_split(text: str) -> None:
    """A duration is never negative."""
    _, minutes = split_duration(text)
    assert minutes is None or minutes >= 0
