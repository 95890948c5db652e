"""Where the bot's own processes reach it is in a file that only its user reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.errors import SetupError
from bot.remote.link.link_file import LinkAddress, folder_mark, link_file, new_token, read_link, write_link

if TYPE_CHECKING:
    from pathlib import Path


def test_an_address_is_private_and_read_again(tmp_path: Path) -> None:
    """A second one replaces the first, which was read by who came earlier."""
    file = tmp_path / "link"
    first, second = (LinkAddress(f"ws://127.0.0.1:{port}/room", new_token()) for port in (1, 2))
    assert first.token != second.token
    assert len(second.token) >= 32
    for address in (first, second):
        write_link(file, address)
        assert read_link(file) == address
        assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize("content", [None, "", "ws://127.0.0.1:1/room\n", "one two three\n", "ws://é/room\ntoken\n"])
def test_an_address_that_is_not_there_is_told(tmp_path: Path, content: str | None) -> None:
    """In a sentence with the remedy."""
    file = tmp_path / "link"
    if content is not None:
        file.write_text(content, "utf-8")
    with pytest.raises(SetupError, match="Start the bot again"):
        read_link(file)


def test_two_processes_know_whether_they_use_the_same_folder(tmp_path: Path) -> None:
    """By a mark that says nothing of the token, and is another one when the bot is started again."""
    here, there = (link_file(tmp_path / name) for name in ("here", "there"))
    assert folder_mark(here) == ""
    marks = []
    for file in (here, there, here):
        file.parent.mkdir(exist_ok=True)
        address = LinkAddress("ws://127.0.0.1:1/room", new_token())
        write_link(file, address)
        marks.append(folder_mark(file))
        assert address.token not in marks[-1]
    assert len(set(marks)) == 3
    assert folder_mark(link_file(tmp_path / "here")) == marks[-1]
