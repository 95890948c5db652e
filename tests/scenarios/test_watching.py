"""The scenario `watched`: a screen is shared with the running bot over its real websocket.

tests/browser/test_share_page.py shares one with a real browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal


def test_a_shared_screen_is_noted_remarked_upon_and_remembered(tmp_path: Path) -> None:
    """A shared screen is noted, the bot comments on a change, looks at the screen when asked, and remembers it."""
    outcome = Program.rehearse(tmp_path, "watched").wait()
    assert outcome.status == 0, outcome.printed
    assert outcome.expectation("thought danger")["passed"]
    assert outcome.expectation("tool_called look_at_screen")["passed"]
