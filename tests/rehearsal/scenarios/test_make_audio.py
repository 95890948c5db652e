"""`make_audio` works as described. The speech model itself is not tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rehearsal.errors import RehearsalError
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ
from rehearsal.people.voiced import frame_rms
from rehearsal.scenarios.make_audio import LEVEL_RMS, main, normalise_level, read_lines
from tests.rehearsal.people.sounds import silence, tone

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
[people.mira]
voice = "af_heart"
[people.otto]
[[steps]]
who = "mira"
command = "join"
[[steps]]
who = "mira"
say = "Hello."
audio = "1.ogg"
"""


def test_only_what_is_said_is_made(tmp_path: Path) -> None:
    """Only spoken lines are made into audio, with the voice and the language of the person."""
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    (line,) = read_lines(tmp_path / "scenario.toml")
    assert (line.text, line.voice, line.language) == ("Hello.", "af_heart", "en-us")
    assert line.audio == tmp_path / "1.ogg"


def test_a_speaker_needs_a_voice(tmp_path: Path) -> None:
    """The error names a speaker without a voice."""
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace('"mira"\nsay', '"otto"\nsay'), encoding="utf-8")
    with pytest.raises(RehearsalError, match="otto has no voice"):
        read_lines(tmp_path / "scenario.toml")


@pytest.mark.parametrize("level", [500.0, 9000.0])
def test_every_clip_has_the_same_level_and_no_dead_air(level: float) -> None:
    """Soft and loud voices get the same level and are cut to a short silence before and after."""
    pcm = normalise_level(np.concatenate([silence(1.0), tone(1.0, level=level), silence(2.0)]))
    assert len(pcm) / RATE_HZ == pytest.approx(1.22, abs=0.02)
    rms = frame_rms(pcm, FRAME_SAMPLES)
    assert float(rms[10:50].mean()) == pytest.approx(LEVEL_RMS, rel=0.02)


def test_silence_is_refused() -> None:
    """Silence from the speech engine raises an error and does not become a clip."""
    with pytest.raises(RehearsalError, match="Nothing was said"):
        normalise_level(silence(1.0))


def test_without_npm_it_is_a_plain_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without npm, the program names the missing program and exits with status 1."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["hello"]) == 1
    assert capsys.readouterr().err == "npm is not installed, and making the audio needs it.\n"


def test_an_unknown_scenario_is_a_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """For an unknown scenario, the program prints the name and exits with status 1."""
    assert main(["nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
