"""A manifest of recordings becomes a scenario in which several people speak at once, but nobody over themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rehearsal.errors import ScenarioError
from rehearsal.script.recordings import JOIN_ID, scenario_from_recordings

if TYPE_CHECKING:
    from pathlib import Path


def recordings(folder: Path, *entries: tuple[str, float]) -> Path:
    """Write a manifest of (speaker, duration) and its files."""
    listed = []
    for number, (speaker, duration) in enumerate(entries):
        name = f"{number}x-{duration:g}.flac"
        (folder / name).touch()
        listed.append(
            {"file": name, "speaker": speaker, "text": f"text {number}", "duration": duration, "licence": "CC0"}
        )
    (folder / "manifest.json").write_text(json.dumps(listed))
    return folder


def test_every_recording_is_said_by_its_speaker(tmp_path: Path) -> None:
    """Every recording becomes a line of its speaker with its text, and the scenario has expectations about them."""
    made = scenario_from_recordings(recordings(tmp_path, ("anna", 2), ("anna", 3), ("ben", 4)))
    assert {(say.who, say.say) for say in made.says} == {("anna", "text 0"), ("anna", "text 1"), ("ben", "text 2")}
    assert [person.name for person in made.people] == ["anna", "ben"]
    assert {one.kind for one in made.expect} >= {"every_utterance_heard_once", "attributed", "max_wer"}
    assert made.history == ()


def test_speakers_are_interleaved_and_a_limit_keeps_them_all(tmp_path: Path) -> None:
    """The first recording of each speaker comes before anybody's second, and `limit` keeps every speaker."""
    folder = recordings(tmp_path, ("a", 2), ("a", 2), ("a", 2), ("b", 2), ("b", 2))
    assert [say.who for say in scenario_from_recordings(folder, lanes=1).says] == ["a", "b", "a", "b", "a"]
    assert sorted(say.who for say in scenario_from_recordings(folder, limit=3).says) == ["a", "a", "b"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=30)
@given(
    entries=st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9)), min_size=1, max_size=12),
    lanes=st.integers(1, 4),
)
def test_nobody_talks_over_themselves_and_lanes_bound_the_noise(
    tmp_path: Path, entries: list[tuple[str, int]], lanes: int
) -> None:
    """For any manifest, each lane plays one line after another, and each speaker is in one lane only."""
    made = scenario_from_recordings(recordings(tmp_path, *entries), lanes=lanes)
    known = {JOIN_ID}
    lane_of: dict[str, set[str]] = {}
    for say in made.says:
        assert say.after in known
        known.add(say.id)
        lane_of.setdefault(say.who, set()).add(say.id.rsplit("-", 1)[0])
    assert len(made.says) == len(entries)
    assert all(len(found) == 1 for found in lane_of.values())
    assert sum(say.after == JOIN_ID for say in made.says) == min(lanes, len(lane_of))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{not json", "JSON"),
        ("[" * 100_000, "JSON"),
        ("{}", "valid array"),
        ("[]", "at least 1 item"),
        ('[{"speaker": "a", "text": "b"}, {"file": "x", "speaker": "a", "text": ""}]', "number 2.text"),
        ('[{"file": "gone.flac", "speaker": "a", "text": "b"}]', 'no file "gone.flac"'),
    ],
)
def test_a_wrong_manifest_is_a_sentence(tmp_path: Path, content: str, word: str) -> None:
    """Each mistake is reported with its place, and all of the form at once."""
    with pytest.raises(ScenarioError, match="cannot be read"):
        scenario_from_recordings(tmp_path)
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        scenario_from_recordings(tmp_path)
    assert word in str(caught.value)
