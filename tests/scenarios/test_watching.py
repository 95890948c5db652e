"""A screen is shared with the running bot over its real web socket, as `roomtone rehearse watched` plays it.

With a real browser: tests/browser/test_watched_evening.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal


def test_a_shared_screen_is_noted_remarked_upon_and_remembered(tmp_path: Path) -> None:
    """Command, link, pictures, notes, a remark that another participant heard, a look on demand, and the recap."""
    outcome = Program.rehearse(tmp_path, "watched").wait()
    assert outcome.status == 0, outcome.printed
    assert outcome.expectation("thought danger")["passed"]
    assert outcome.expectation("tool_called look_at_screen")["passed"]
