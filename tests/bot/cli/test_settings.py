"""`roomtone settings` shows what the operator has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bot.cli.app import run_command_line

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_differs_from_the_defaults_is_shown_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each changed setting is a line as the file would have it. A key is not shown."""
    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["settings"]) == 0
    assert capsys.readouterr().out == "Every setting has its default.\n"
    (tmp_path / "roomtone.toml").write_text("[llm]\napi_key = 'sk-12345'\n[brain]\nnames = ['Nova']\n")
    assert run_command_line(["settings"]) == 0
    assert capsys.readouterr().out.splitlines() == ["llm.api_key = (not shown)", 'brain.names = ["Nova"]']
