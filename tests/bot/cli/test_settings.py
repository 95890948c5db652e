"""`roomtone settings` shows what the operator has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.cli.app import run_command_line


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, in an environment that sets nothing."""
    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_differs_from_the_defaults_is_shown_without_secrets(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each changed setting is a line as the file would have it. A key is not shown."""
    assert run_command_line(["settings"]) == 0
    assert "default" in capsys.readouterr().out
    (empty / "roomtone.toml").write_text(
        "[llm]\nbase_url = 'https://me:sk-12345@models.example/v1?key=sk-12345'\napi_key = 'sk-12345'\n"
        "[brain]\nnames = ['Nova']\n"
    )
    assert run_command_line(["settings"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'llm.base_url = "https://models.example/v1"',
        "llm.api_key = (not shown)",
        'brain.names = ["Nova"]',
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[brain]\nnames = ['Nova']", ["brain.names"]),
        ("[storage]\ndata_dir = 'data'", []),
        ("[storage]\ndata_dir = 'kept'", ["storage.data_dir"]),
    ],
    ids=["unset", "the default", "another"],
)
def test_a_folder_is_shown_if_somebody_set_another(
    empty: Path, capsys: pytest.CaptureFixture[str], written: str, shown: list[str]
) -> None:
    """The default begins at the operator's file, wherever the command is typed."""
    (empty / "bot").mkdir()
    (empty / "bot" / "roomtone.toml").write_text(written)
    assert run_command_line(["--config", "bot", "settings"]) == 0
    assert [line.split(" = ")[0] for line in capsys.readouterr().out.splitlines() if " = " in line] == shown
