"""Tells where the dashboard is, on the command line. Only a person at a terminal gets the login link itself.

The link is as good as a password until somebody uses it. What a service prints is kept in the journal or in the log of
its container, which more people may read than the data folder.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def dashboard_line(link: str, data_dir: Path) -> str:
    """Return what to print about the dashboard: its link if stdout is a terminal, else the file that has it."""
    if sys.stdout.isatty():
        return f"Dashboard: {link}"
    from bot.wiring.pages import LINK_FILE

    file = (data_dir / LINK_FILE).absolute()
    return (
        f"Dashboard: the login link is in {file}, which only the bot's user can read. To see it: "
        f"cat {shlex.quote(str(file))}"
    )
