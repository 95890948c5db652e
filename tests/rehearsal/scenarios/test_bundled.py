"""The bundled scenarios have enough turns and voices for their purpose, and a fact that is said only once."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from rehearsal.people.clip import Clip
from rehearsal.script.scenario import AFTER_REPLY, Scenario, WaitStep
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario

HERE = Path(bundled_scenarios()["hello"]).parents[1]
# The scenarios with recordings of their own.
SCENARIOS = sorted({path.parent.name for path in HERE.glob("*/*.ogg")})
# See docs/memory.md: the first batch is turns 0 to 9 and is folded at the 61st turn.
FIRST_BATCH = 10
FIRST_DUE_AT = 61
FACT = "Lisbon"


def loaded(name: str) -> Scenario:
    """Return a bundled scenario."""
    return load_scenario(HERE / name / "scenario.toml")


BORROWERS = sorted({path.parent.name for path in HERE.glob("*/scenario.toml")} - set(SCENARIOS))


@pytest.mark.parametrize("name", BORROWERS)
def test_borrowed_sound_says_what_is_written(name: str) -> None:
    """A scenario that uses the recordings of another has the same words for them."""
    made = {say.audio.resolve(): say.say for other in SCENARIOS for say in loaded(other).says}
    assert all(made[say.audio.resolve()] == say.say for say in loaded(name).says)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_line_has_its_recording(name: str) -> None:
    """Each clip can be played and is as long as its words need. No recording is unused."""
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
    """The recordings of a scenario are smaller than 400 kB, because everybody who clones the project downloads them."""
    assert sum(path.stat().st_size for path in (HERE / name).glob("*.ogg")) < 400_000


def test_the_evening_stores_58_turns() -> None:
    """The history has 58 turns, including turns of the bot, so the first compaction is due at the third live turn."""
    history = loaded("evening").history
    assert len(history) == 58
    assert {turn.kind for turn in history} == {"speech", "assistant"}
    assert [turn.at for turn in history] == sorted(turn.at for turn in history)


def test_the_evening_is_spoken_by_three_voices() -> None:
    """The evening has at least 17 live lines in at least three voices."""
    scenario = loaded("evening")
    assert len(scenario.says) >= 17
    voices = {person.key: person.voice for person in scenario.people}
    assert len({voices[say.who] for say in scenario.says}) >= 3


def test_the_first_question_finds_a_batch_to_fold() -> None:
    """At the first question to the bot there are more turns than the window holds, so the oldest ten can be folded."""
    scenario = loaded("evening")
    asked = [index for index, say in enumerate(scenario.says) if say.say.startswith("Roomtone")]
    assert len(asked) >= 3
    assert len(scenario.history) + asked[0] + 1 >= FIRST_DUE_AT


def test_the_fact_is_said_in_the_first_ten_turns_alone() -> None:
    """The fact is said only in the first ten turns, so at the end only the summary can hold it."""
    scenario = loaded("evening")
    places = [index for index, turn in enumerate(scenario.history) if FACT in turn.text]
    assert places
    assert max(places) < FIRST_BATCH
    assert not [say for say in scenario.says if FACT in say.say]


def test_the_fact_is_out_of_a_window_of_fifty() -> None:
    """The fact is not in the last 50 turns before the question, so a run without compaction must fail."""
    scenario = loaded("evening")
    live_before = [say.id for say in scenario.says].index("ask-town")
    fact_at = next(index for index, turn in enumerate(scenario.history) if FACT in turn.text)
    assert len(scenario.history) + live_before - fact_at > 50


def test_the_question_shares_its_words_with_the_fact() -> None:
    """The question has enough words of the fact for a responder without a language model to find it."""
    scenario = loaded("evening")
    fact = next(turn for turn in scenario.history if FACT in turn.text)
    question = next(say.say for say in scenario.says if say.id == "ask-town")
    assert fact.speaker in question
    assert {"town", "want", "visit"} <= set(fact.text.rstrip(".").split())
    assert {"town", "want", "visit?"} <= set(question.split())


def test_the_compaction_has_landed_before_the_last_question() -> None:
    """The scenario waits for the compaction before the last question, so it tests the same thing on a slow machine."""
    steps = loaded("evening").steps
    waits = [index for index, step in enumerate(steps) if isinstance(step, WaitStep) and step.new_cursor == FIRST_BATCH]
    asks = [index for index, step in enumerate(steps) if step.id == "ask-town"]
    assert waits[0] < asks[0]


def test_every_question_to_the_bot_waits_for_its_answer() -> None:
    """After each question to the bot the scenario waits for the answer, so nobody speaks over it by accident."""
    steps = loaded("evening").steps
    for step, following in itertools.pairwise(steps):
        if step.id.startswith("ask-"):
            assert isinstance(following, WaitStep)
            assert following.wait_for == AFTER_REPLY


def test_the_history_is_json_lines() -> None:
    """Each line of the history is a JSON object with only the keys of the format."""
    for line in Path(HERE / "evening" / "history.jsonl").read_text(encoding="utf-8").splitlines():
        assert set(json.loads(line)) <= {"speaker", "text", "at", "kind"}
