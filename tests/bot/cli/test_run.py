"""`roomtone run` without a token, and what it says to whoever has just started it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.app import run_command_line
from bot.cli.run import WITHOUT_DISCORD

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from bot.cli.rehearsal.options import RehearsalOptions


def test_without_a_token_it_plays_and_keeps_the_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trial is apart from what the bot will remember of real evenings, and a missing memory names it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCORD_TOKEN", "")
    played: list[RehearsalOptions] = []

    def play(options: RehearsalOptions) -> bool:
        played.append(options)
        assert options.keep is not None
        options.keep.mkdir(parents=True)
        return True

    monkeypatch.setattr("bot.cli.rehearsal.command.rehearse", play)
    assert run_command_line(["run"]) == 0
    assert WITHOUT_DISCORD in capsys.readouterr().out
    assert [str(each.keep) for each in played] == ["data/trial"]
    assert run_command_line(["memory", "list"]) == 1
    assert "The trial in data/trial has one: `roomtone --config data/trial`" in capsys.readouterr().err
