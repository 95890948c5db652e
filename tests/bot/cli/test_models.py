"""`roomtone models` claims no more than it has checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli.models import UNKNOWN_HASH, app


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize("names", [[], ["whisper-tiny", "whisper-small"]])
def test_a_folder_is_copied_as_the_one_model_that_is_named(tmp_path: Path, names: list[str]) -> None:
    """Without a name the folder would replace the recogniser that is here, and with two it would be both."""
    (tmp_path / "model.bin").write_bytes(b"quantised")
    told = CliRunner().invoke(app, ["pull", *names, "--from", str(tmp_path)])
    assert told.exit_code == 2
    assert "--from copies one model" in told.output
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("in_tmp_path")
def test_a_model_copied_by_hand_is_not_called_whole(tmp_path: Path) -> None:
    """The hash of a model that the operator copied is unknown, and `pull` and `check` say so."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "model.bin").write_bytes(b"quantised")
    runner = CliRunner()
    assert runner.invoke(app, ["pull", "whisper-tiny", "--from", str(mine)]).exit_code == 0
    for command in ("pull", "check"):
        told = runner.invoke(app, [command, "whisper-tiny"])
        assert told.exit_code == 0
        assert UNKNOWN_HASH in told.output
        assert "whole" not in told.output
