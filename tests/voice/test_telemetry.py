"""Nothing that Roomtone runs reports to the makers of a library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.scenarios.program import REPOSITORY

# What starts ONNX Runtime.
LIBRARIES = ("onnxruntime", "rapidocr", "faster_whisper", "hibari", "piper")


def starts_it(line: str) -> bool:
    return line.strip().startswith(tuple(f"{word} {library}" for word in ("import", "from") for library in LIBRARIES))


def test_only_what_imports_voice_starts_onnx_runtime() -> None:
    """Whoever imports a part of that package has switched the telemetry off before."""
    found = [
        path
        for folder in ("bot", "voice")
        for path in (REPOSITORY / folder).rglob("*.py")
        if any(map(starts_it, path.read_text("utf-8").splitlines()))
    ]
    assert found
    assert all(path.is_relative_to(REPOSITORY / "voice") for path in found)


def test_a_model_leaves_no_identifier(stacking_vad_model: Path, tmp_path: Path) -> None:
    """ONNX Runtime is told to send nothing, and writes nothing into the home folder when it loads a model."""
    program = (
        "import voice, onnxruntime, os\n"
        "assert os.environ['ORT_DISABLE_TELEMETRY'] == '1'\n"
        f"onnxruntime.InferenceSession({str(stacking_vad_model)!r}, providers=['CPUExecutionProvider'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=REPOSITORY, env={**environment, "HOME": str(tmp_path)}
    )
    assert list(tmp_path.iterdir()) == []
