"""Nothing that Roomtone runs reports to the makers of a library."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

# Each module that starts ONNX Runtime.
USERS = (
    "voice.asr.whisper",
    "voice.listening.turn_detection",
    "voice.listening.vad",
    "voice.screen.picture_worker",
    "voice.speaking.embedded",
    "voice.speaking.piper",
)


@pytest.mark.parametrize("module", USERS)
def test_onnx_runtime_is_told_to_send_nothing(module: str) -> None:
    """Whoever imports the module has switched the telemetry off before ONNX Runtime starts."""
    shown = f"import {module}, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    ended = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=False, cwd=REPOSITORY, env=environment
    )
    assert ended.stdout == "1\n", ended.stderr


def test_the_list_of_users_is_whole() -> None:
    """A module that imports ONNX Runtime, or a library that does, is in the list."""
    libraries = ("onnxruntime", "rapidocr", "faster_whisper", "piper")
    found = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for folder in ("bot", "voice")
        for path in (REPOSITORY / folder).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if line.strip().startswith(tuple(f"{word} {library}" for word in ("import", "from") for library in libraries))
    }
    assert found == set(USERS)


def test_a_model_leaves_no_identifier(stacking_vad_model: Path, tmp_path: Path) -> None:
    """ONNX Runtime writes nothing into the home folder when it loads a model."""
    program = (
        "import voice, onnxruntime\n"
        f"onnxruntime.InferenceSession({str(stacking_vad_model)!r}, providers=['CPUExecutionProvider'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=REPOSITORY, env={**environment, "HOME": str(tmp_path)}
    )
    assert list(tmp_path.iterdir()) == []
