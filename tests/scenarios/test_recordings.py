"""The complete bot hears real recordings, if a folder with recordings is available."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal


def test_strangers_are_understood(speech_dir: Path, tmp_path: Path) -> None:
    """Read speech of a dozen people, up to three at a time, is heard once and with less than 12 % wrong words."""
    played = Program.rehearse(tmp_path, "--speech", str(speech_dir), "--limit", "30").wait()
    assert played.status == 0, played.printed
    assert played.report["wer"] < 0.12
    assert len(played.report["utterances"]) == 30
    assert played.report["packets"]["dave_failures"] == 0
