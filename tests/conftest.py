"""Where tests find what is too large to be committed: a Whisper model, and recordings with reference texts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# An example's time says how busy the machine is, not whether the code is right.
settings.register_profile("roomtone", deadline=None, print_blob=True)
settings.load_profile("roomtone")

REPO_ROOT = Path(__file__).resolve().parent.parent
SHARED = REPO_ROOT.parent / "shared"


def _first_with(places: tuple[Path, ...], *, needed: str) -> Path | None:
    return next((place for place in places if (place / needed).is_file()), None)


@pytest.fixture(scope="session")
def whisper_model_dir() -> Path:
    """A Whisper base model in CTranslate2 form."""
    places = (
        *(Path(place) for place in [os.environ.get("ROOMTONE_WHISPER_MODEL")] if place),
        REPO_ROOT / "data" / "models" / "whisper-base",
        SHARED / "models" / "faster-whisper-base",
    )
    found = _first_with(places, needed="model.bin")
    if found is None:
        pytest.fail(
            "No Whisper model for the tests: run `make setup` or `roomtone models pull whisper`, "
            "or set ROOMTONE_WHISPER_MODEL to a CTranslate2 Whisper directory.",
            pytrace=False,
        )
    return found


@pytest.fixture(scope="session")
def turn_model() -> Path:
    """The end-of-turn model."""
    return _small_model("turn", REPO_ROOT / "data" / "models" / "turn-smart" / "smart-turn.onnx")


@pytest.fixture(scope="session")
def stacking_vad_model() -> Path:
    """The voice-activity model that scores many people in one call."""
    return _small_model("vad", REPO_ROOT / "data" / "models" / "vad-silero" / "silero-vad.onnx")


def _small_model(alias: str, place: Path) -> Path:
    if not place.is_file():
        pytest.fail(f"{place} is not here: run `make setup` or `roomtone models pull {alias}`.", pytrace=False)
    return place


@pytest.fixture(scope="session")
def speech_dir() -> Path:
    """A directory of recordings with a manifest.json of their reference texts."""
    places = (
        *(Path(place) for place in [os.environ.get("ROOMTONE_SPEECH_DIR")] if place),
        SHARED / "speech",
    )
    found = _first_with(places, needed="manifest.json")
    if found is None:
        # They are nobody's to redistribute with the code, so a clone may be without; the bundled scenarios are not.
        pytest.skip("no recordings at hand: set ROOMTONE_SPEECH_DIR to a directory with a manifest.json")
    return found
