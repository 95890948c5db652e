"""Where the dashboard's login link is printed, and where not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.cli.output import dashboard_line
from bot.wiring.pages import LINK_FILE, write_link

LINK = "http://127.0.0.1:8095/login#secret"


@pytest.mark.parametrize("terminal", [True, False])
def test_the_link_is_printed_on_a_terminal_alone(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service's output is kept where others may read it, so that has the file and the command that shows it."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    line = dashboard_line(LINK, Path("my data"))
    if terminal:
        assert line == f"Dashboard: {LINK}"
    else:
        assert "secret" not in line
        assert line.endswith(f"To see it: cat '{Path.cwd()}/my data/dashboard-link'")


def test_the_file_that_is_named_has_the_link(tmp_path: Path) -> None:
    """For the bot's user alone."""
    write_link(tmp_path, LINK)
    assert f"in {tmp_path / LINK_FILE}, which only" in dashboard_line(LINK, tmp_path)
    assert (tmp_path / LINK_FILE).read_text("utf-8") == f"{LINK}\n"
    assert (tmp_path / LINK_FILE).stat().st_mode & 0o077 == 0
