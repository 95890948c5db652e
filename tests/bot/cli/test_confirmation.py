"""Nothing is deleted or replaced without a yes, and whoever cannot give one learns how."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import typer

from bot.cli.output import confirm
from bot.errors import SetupError

if TYPE_CHECKING:
    from typing import TextIO


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("source", [Terminal("y\n"), io.StringIO("yes\n")])
def test_with_a_yes_it_goes_on(source: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed, or from a pipe."""
    monkeypatch.setattr("sys.stdin", source)
    confirm("Go on?")


def test_with_a_no_nothing_is_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so. An empty line is a no."""
    for answer in ("n\n", "\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        with pytest.raises(typer.Abort):
            confirm("Go on?")
        assert capsys.readouterr().out.endswith("Nothing was changed.\n")


@pytest.mark.parametrize("source", [io.StringIO(""), None])
def test_where_nobody_can_answer_the_option_is_named(
    source: TextIO | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A timer has no terminal, or no input at all."""
    monkeypatch.setattr("sys.stdin", source)
    with pytest.raises(SetupError, match=r"nothing was changed\. Add --yes"):
        confirm("Go on?")
    assert "Go on?" in capsys.readouterr().out
