"""The bundled scenarios have enough turns and voices for their purpose, and a fact that is said only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.people.clip import Clip
from rehearsal.script.scenario import Scenario
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario

HERE = Path(bundled_scenarios()["hello"]).parents[1]
# The scenarios with recordings of their own.
SCENARIOS = sorted({path.parent.name for path in HERE.glob("*/*.ogg")})


def loaded(name: str) -> Scenario:
    """Return a bundled scenario."""
    return load_scenario(HERE / name / "scenario.toml")


SPOKEN = [name for name in bundled_scenarios() if not loaded(name).written]


@pytest.mark.parametrize("name", SPOKEN)
def test_borrowed_sound_says_what_is_written(name: str) -> None:
    """A scenario that uses the recordings of another has the same words for them."""
    made = {
        say.audio: say.say
        for other in SCENARIOS
        for say in loaded(other).says
        if say.audio and say.audio.parent == HERE / other
    }
    assert all(say.audio and made[say.audio.resolve()] == say.say for say in loaded(name).says)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_line_has_its_recording(name: str) -> None:
    """Each clip can be played and is as long as its words need. No recording is unused."""
    scenario = loaded(name)
    for say in scenario.says:
        assert say.audio is not None
        clip = Clip.load(say.audio)
        words = len(say.say.split())
        assert 0.2 * words < clip.duration_s < 0.6 * words + 0.5, say.audio.name
        assert clip.voiced_start_s < 0.2
        # In one scenario people pause with an open microphone.
        assert clip.duration_s - clip.voiced_end_s < (1.0 if name == "two-calls" else 0.3)
    assert {say.audio for say in scenario.says} >= set((HERE / name).glob("*.ogg"))
