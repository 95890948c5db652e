"""The bundled scenarios have what they are for: enough turns, enough voices, and a fact that is said only once."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from rehearsal.people.clip import Clip
from rehearsal.scenarios.make_audio import HERE, SCENARIOS, read_lines
from rehearsal.script.scenario import AFTER_REPLY, Scenario, WaitStep
from rehearsal.script.scenario_file import load_scenario

# COMPACTION.md: the first batch is the turns 0..9, and it is due at the 61st turn.
FIRST_BATCH = 10
FIRST_DUE_AT = 61
FACT = "Lisbon"


def loaded(name: str) -> Scenario:
    """Return a bundled scenario."""
    return load_scenario(HERE / name / "scenario.toml")


BORROWERS = sorted({path.parent.name for path in HERE.glob("*/scenario.toml")} - set(SCENARIOS))


def test_every_bundled_scenario_is_known() -> None:
    """Sound that lies here is what the maker makes; who has none borrows all of it."""
    assert sorted({path.parent.name for path in HERE.glob("*/*.ogg")}) == sorted(SCENARIOS)
    for name in BORROWERS:
        assert {say.audio.parent.name for say in loaded(name).says} <= set(SCENARIOS)


@pytest.mark.parametrize("name", BORROWERS)
def test_borrowed_sound_says_what_is_written(name: str) -> None:
    """The words beside it are those of the scenario that it was made for."""
    made = {
        line.audio.resolve(): line.text for other in SCENARIOS for line in read_lines(HERE / other / "scenario.toml")
    }
    assert all(made[say.audio.resolve()] == say.say for say in loaded(name).says)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_line_has_its_recording(name: str) -> None:
    """Each clip can be played, is as long as its words take, and no recording lies about unused."""
    scenario = loaded(name)
    for say in scenario.says:
        clip = Clip.load(say.audio)
        words = len(say.say.split())
        assert 0.2 * words < clip.duration_s < 0.6 * words + 0.5, say.audio.name
        assert clip.voiced_start_s < 0.2
        assert clip.duration_s - clip.voiced_end_s < 0.3
    assert {say.audio for say in scenario.says} == set((HERE / name).glob("*.ogg"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_recordings_are_small(name: str) -> None:
    """Everybody who clones the project downloads them."""
    assert sum(path.stat().st_size for path in (HERE / name).glob("*.ogg")) < 400_000


def test_the_evening_stores_58_turns() -> None:
    """The stored part is one short of two turns before the first batch is due, and the bot is in it."""
    history = loaded("evening").history
    assert len(history) == 58
    assert {turn.kind for turn in history} == {"speech", "assistant"}
    assert [turn.at for turn in history] == sorted(turn.at for turn in history)


def test_the_evening_is_spoken_by_three_voices() -> None:
    """At least 17 live turns, at least three different voices among them."""
    scenario = loaded("evening")
    assert len(scenario.says) >= 17
    voices = {person.key: person.voice for person in scenario.people}
    assert len({voices[say.who] for say in scenario.says}) >= 3


def test_the_first_question_finds_a_batch_to_fold() -> None:
    """When the bot is first asked, more turns stand than the window holds, so the oldest ten can go."""
    scenario = loaded("evening")
    asked = [index for index, say in enumerate(scenario.says) if say.say.startswith("Roomtone")]
    assert len(asked) >= 3
    assert len(scenario.history) + asked[0] + 1 >= FIRST_DUE_AT


def test_the_fact_is_said_in_the_first_ten_turns_alone() -> None:
    """Nobody repeats it, in the history or live, so only the summary can hold it at the end."""
    scenario = loaded("evening")
    places = [index for index, turn in enumerate(scenario.history) if FACT in turn.text]
    assert places
    assert max(places) < FIRST_BATCH
    assert not [say for say in scenario.says if FACT in say.say]


def test_the_fact_is_out_of_a_window_of_fifty() -> None:
    """With the last 50 turns alone the question cannot be answered: that run must fail."""
    scenario = loaded("evening")
    live_before = [say.id for say in scenario.says].index("ask-town")
    fact_at = next(index for index, turn in enumerate(scenario.history) if FACT in turn.text)
    assert len(scenario.history) + live_before - fact_at > 50


def test_the_question_shares_its_words_with_the_fact() -> None:
    """A reader without a language model finds the sentence by who and what is asked."""
    scenario = loaded("evening")
    fact = next(turn for turn in scenario.history if FACT in turn.text)
    question = next(say.say for say in scenario.says if say.id == "ask-town")
    assert fact.speaker in question
    assert {"town", "want", "visit"} <= set(fact.text.rstrip(".").split())
    assert {"town", "want", "visit?"} <= set(question.split())


def test_the_compaction_has_landed_before_the_last_question() -> None:
    """The scenario waits for it, so that a slow machine tests the same thing."""
    steps = loaded("evening").steps
    waits = [index for index, step in enumerate(steps) if isinstance(step, WaitStep) and step.new_cursor == FIRST_BATCH]
    asks = [index for index, step in enumerate(steps) if step.id == "ask-town"]
    assert waits[0] < asks[0]


def test_every_question_to_the_bot_waits_for_its_answer() -> None:
    """Nobody talks over the bot by accident."""
    steps = loaded("evening").steps
    for step, following in itertools.pairwise(steps):
        if step.id.startswith("ask-"):
            assert isinstance(following, WaitStep)
            assert following.wait_for == AFTER_REPLY


def test_the_history_is_json_lines() -> None:
    """Each line is one object with exactly the format's keys."""
    for line in Path(HERE / "evening" / "history.jsonl").read_text(encoding="utf-8").splitlines():
        assert set(json.loads(line)) <= {"speaker", "text", "at", "kind"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_maker_reads_what_the_stage_plays(name: str) -> None:
    """The words that were spoken are the words that are the reference."""
    made = [(line.text, line.audio) for line in read_lines(HERE / name / "scenario.toml")]
    assert made == [(say.say, say.audio) for say in loaded(name).says]
