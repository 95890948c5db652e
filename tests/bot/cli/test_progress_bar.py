"""Progress is told on stderr: each step once where there is no terminal, and nothing on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.output import ProgressBar

if TYPE_CHECKING:
    import pytest

    from benchmarks.progress import Progress


def test_each_step_is_a_line_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        progress: Progress = bar
        progress.step("reading [screens]", total=2)
        progress.advance()
        progress.advance()
        progress.say("The machine is busy.")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split("\n")[:2] == ["reading [screens]", "The machine is busy."]
