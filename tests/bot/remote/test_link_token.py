"""The token of the bot's own processes is in a file that only its user reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.errors import SetupError
from bot.remote.link_token import read_link_token, write_link_token

if TYPE_CHECKING:
    from pathlib import Path


def test_a_token_is_new_private_and_read_again(tmp_path: Path) -> None:
    """A second one replaces the first."""
    file = tmp_path / "token"
    first, second = write_link_token(file), write_link_token(file)
    assert first != second
    assert len(second) >= 32
    assert read_link_token(file) == second
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_token_that_is_not_there_is_told(tmp_path: Path) -> None:
    """In a sentence with the remedy."""
    with pytest.raises(SetupError, match="Start the bot again"):
        read_link_token(tmp_path / "token")
