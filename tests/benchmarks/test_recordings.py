"""The recordings that are played: by default those of the bundled scenarios, and where their voices end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recordings import (
    load_recordings,
)
from rehearsal.people.clip import RATE_HZ, encode_ogg


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


def test_a_manifest_tells_what_would_be_answered(tmp_path: Path) -> None:
    """Without the key nobody would answer a recording. The folder names the set."""
    sound = encode_ogg(iter([np.zeros(RATE_HZ, np.int16)]))
    entries: list[dict[str, object]] = [{"addressed": True}, {"addressed": False}, {}]
    for number, entry in enumerate(entries):
        (tmp_path / f"{number}.ogg").write_bytes(sound)
        entry |= {"file": f"{number}.ogg", "speaker": "anna", "text": "We leave at nine."}
    (tmp_path / "manifest.json").write_text(json.dumps(entries))
    said = load_recordings(tmp_path)
    assert (said.name, [one.addressed for one in said.recordings]) == (tmp_path.name, [True, False, False])
