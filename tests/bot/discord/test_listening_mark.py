"""The mark that the bot listens: its name on the server, and nothing left behind."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bot.discord.listening_mark import MOST_CHARS, ListeningMark, marked, prefix_in, unmarked
from tests.fakes.loop_time import loop_turns

ENGLISH, GERMAN = "en-US", "de"
PREFIX = "[LISTENING] "


class Me:
    """The bot's own member. `may_rename`: whether Discord lets it change its nickname."""

    def __init__(self, nick: str | None = None, *, may_rename: bool = True) -> None:
        self.name = self.global_name = "Roomtone"
        self.nick = nick
        self.may_rename = may_rename
        self.guild = SimpleNamespace(id=500)

    @property
    def display_name(self) -> str:
        return self.nick or self.name

    async def edit(self, *, nick: str | None) -> None:
        """Change the nickname, or refuse as Discord does, after a moment."""
        await asyncio.sleep(0)
        if not self.may_rename:
            raise OSError("Missing Permissions")
        self.nick = nick


def server_of(me: Me) -> Any:
    """Return the bot's server."""
    return SimpleNamespace(id=500, me=me)


@pytest.mark.parametrize("nick", [None, "Robo", "A name of thirty-two characters."])
async def test_the_name_shows_it_and_is_given_back(nick: str | None) -> None:
    """While the bot listens its name begins with the mark, within Discord's limit; afterwards it is as before."""
    me = Me(nick)
    mark, guild = ListeningMark(), server_of(me)
    assert await mark.show(guild, ENGLISH)
    assert await mark.show(guild, ENGLISH)
    assert me.display_name.startswith(PREFIX)
    assert len(me.display_name) <= MOST_CHARS
    await mark.remove(guild)
    assert me.nick == nick


@pytest.mark.parametrize("turns", range(8))
async def test_a_room_that_is_cut_off_leaves_no_mark(turns: int) -> None:
    """It is cut off while the mark is set or removed, or just afterwards. `turns`: of the event loop."""
    me = Me()
    mark, guild = ListeningMark(), server_of(me)
    for work, shown in ((mark.show(guild, ENGLISH), PREFIX + "Roomtone"), (mark.remove(guild), None)):
        working = asyncio.create_task(work, name="cut-off")
        await loop_turns(turns + 1)
        working.cancel()
        await asyncio.wait([working])
        assert me.nick == shown


async def test_without_the_right_nothing_shows_it() -> None:
    """The answer is no, and nothing is raised."""
    mark, guild = ListeningMark(), server_of(Me(may_rename=False))
    assert not await mark.show(guild, ENGLISH)
    await mark.remove(guild)


@pytest.mark.parametrize(
    ("left", "after"),
    [
        ("[LISTENING] Roomtone", None),
        ("[HÖRT ZU] Roomtone", None),
        ("[LISTENING] Robo", "Robo"),
        ("[HÖRT ZU] Robo", "Robo"),
        ("Robo", "Robo"),
        (PREFIX, None),
    ],
)
async def test_a_start_removes_the_mark_of_a_crash(left: str, after: str | None) -> None:
    """The prefix that a killed process left is removed, in whichever language; any other nickname stays."""
    me = Me(left)
    await ListeningMark().remove(server_of(me))
    assert me.nick == after


@pytest.mark.parametrize("language", [ENGLISH, GERMAN])
def test_marks_are_put_on_once(language: str) -> None:
    """Marking twice changes nothing, and unmarking returns what was there before."""
    once = marked("Robo", language)
    assert marked(once, language) == once == f"{prefix_in(language)}Robo"
    assert unmarked(once) == "Robo"
    assert unmarked(None) is None
