"""The recordings that are played: by default those of the bundled scenarios, and where their voices end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.recordings import (
    INTERRUPTION,
    QUESTION,
    find_recording,
    load_recordings,
    voice_end_s,
    voiced_after_s,
)
from rehearsal.people.clip import RATE_HZ, encode_ogg

if TYPE_CHECKING:
    from pathlib import Path


def test_the_bundled_sound_serves_by_default() -> None:
    """The bundled recordings are chosen evenly and repeated if more are wanted. A number of 0 means all of them."""
    said = load_recordings(None)
    assert not said.real
    assert len(said.recordings) >= 25
    assert said.some(0) == said.recordings
    assert len(said.some(100)) == 100
    assert said.some(100)[len(said.recordings)] == said.recordings[0]
    few = said.some(5)
    places = [said.recordings.index(one) for one in few]
    assert places == sorted(set(places))
    assert places[-1] > len(said.recordings) // 2
    assert all(one.path.is_file() for one in said.recordings)


@pytest.mark.parametrize(
    ("source", "real"), [("synthetic voice, talks/judging.toml, seed 15", False), ("LibriSpeech", True), (None, True)]
)
def test_a_manifest_tells_whether_people_spoke(tmp_path: Path, source: str | None, real: bool) -> None:
    """Recordings of people need no source; those of synthetic voices name it."""
    (tmp_path / "one.ogg").write_bytes(encode_ogg(iter([np.zeros(RATE_HZ, np.int16)])))
    entry = {"file": "one.ogg", "speaker": "anna", "text": "We leave at nine.", "duration": 1.0}
    (tmp_path / "manifest.json").write_text(json.dumps([entry if source is None else {**entry, "source": source}]))
    said = load_recordings(tmp_path)
    assert ([one.text for one in said.recordings], said.real) == (["We leave at nine."], real)


def test_what_is_said_over_the_bot_is_long_enough_to_count() -> None:
    """The recording of the interruption has 700 ms of voice within 1.5 s, enough to interrupt the bot."""
    assert 0.7 <= voiced_after_s(find_recording(INTERRUPTION).path, 0.7) < 1.5
    assert find_recording(QUESTION).text == QUESTION
    with pytest.raises(LookupError):
        voiced_after_s(find_recording(INTERRUPTION).path, 60)


def test_the_voice_ends_before_the_silence_behind_it() -> None:
    """The end of the voice is found by loudness alone, exact to a frame."""
    tone = (8_000 * np.sin(np.arange(48_000) / 20)).astype(np.int16)
    sound = np.concatenate([np.zeros(4_800, np.int16), tone, np.zeros(48_000, np.int16)])
    assert voice_end_s(sound) == pytest.approx(1.1, abs=0.021)
    assert voice_end_s(np.zeros(48_000, np.int16)) == 0.0
