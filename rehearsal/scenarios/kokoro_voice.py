"""Turns lines of text into WAV files with Kokoro, in the temporary environment that `make_audio` builds.

This file is run by its path with that environment's Python and is never imported: kokoro-onnx is not a dependency of
this project. It reads JSON from standard input:
`{"model", "voices", "lines": [{"text", "voice", "language", "speed", "wav"}]}`
Here `voices` is a folder of raw float32 files of shape (510, 1, 256).
"""

from __future__ import annotations

import json
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
from kokoro_onnx import Kokoro  # type: ignore[import-not-found]

_STYLE_SHAPE = (510, 1, 256)


def main() -> None:
    """Synthesize every line of the request."""
    request = json.load(sys.stdin)
    names = {line["voice"] for line in request["lines"]}
    styles: dict[str, Any] = {
        name: np.fromfile(Path(request["voices"]) / f"{name}.bin", np.float32).reshape(_STYLE_SHAPE) for name in names
    }
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "voices.npz"
        np.savez(bundle, **styles)
        kokoro = Kokoro(request["model"], str(bundle))
        for line in request["lines"]:
            speed, language = line["speed"], line["language"]
            sound, rate_hz = kokoro.create(line["text"], voice=line["voice"], speed=speed, lang=language)
            _write(Path(line["wav"]), sound, rate_hz)


def _write(path: Path, sound: np.ndarray, rate_hz: int) -> None:
    """Write float audio as 16-bit mono WAV."""
    pcm = (np.clip(sound, -1.0, 1.0) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(pcm.tobytes())


if __name__ == "__main__":
    main()
