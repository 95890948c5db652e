"""The mark that the bot listens: its name on the server, else the channel's status, and nothing left behind."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import discord
import pytest

from bot.discord.listening_mark import MOST_CHARS, ListeningMark, marked, prefix_in, remove_leftover, unmarked

if TYPE_CHECKING:
    from collections.abc import Coroutine

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
        """Return the name that people see."""
        return self.nick or self.name

    async def edit(self, *, nick: str | None) -> None:
        """Change the nickname, or refuse as Discord does, after a moment."""
        await asyncio.sleep(0)
        if not self.may_rename:
            raise OSError("Missing Permissions")
        self.nick = nick


class Lounge(discord.VoiceChannel):
    """A voice channel that stores its status."""

    __slots__ = ("may_edit", "statuses")

    def __init__(self, me: Me, *, may_edit: bool = True) -> None:
        self.id = 600
        self.guild = cast("Any", SimpleNamespace(id=500, me=me))
        self.may_edit = may_edit
        self.statuses: list[str | None] = []

    async def edit(self, *, status: str | None = None, **_: Any) -> None:  # type: ignore[override]
        """Store the status, or refuse as Discord does, after a moment."""
        await asyncio.sleep(0)
        if not self.may_edit:
            raise OSError("Missing Permissions")
        self.statuses.append(status)


@pytest.mark.parametrize("nick", [None, "Robo", "A name of thirty-two characters."])
def test_the_name_shows_it_and_is_given_back(nick: str | None) -> None:
    """While the bot listens its name begins with the mark, within Discord's limit; afterwards it is as before."""

    async def listen() -> None:
        me = Me(nick)
        mark, channel = ListeningMark(), Lounge(me)
        assert await mark.show(channel, ENGLISH)
        assert await mark.show(channel, ENGLISH)
        assert me.display_name.startswith(PREFIX)
        assert len(me.display_name) <= MOST_CHARS
        await mark.remove(channel)
        assert me.nick == nick
        assert channel.statuses == []

    asyncio.run(listen())


def test_the_status_stands_in_for_the_name() -> None:
    """A bot that may not change its name sets the channel's status, and clears it at the end."""

    async def listen() -> None:
        mark, channel = ListeningMark(), Lounge(Me(may_rename=False))
        assert await mark.show(channel, ENGLISH)
        await mark.remove(channel)
        assert channel.statuses == ["Roomtone is listening", None]

    asyncio.run(listen())


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("may_rename", [True, False])
def test_a_room_that_is_cut_off_leaves_no_mark(may_rename: bool, turns: int) -> None:
    """It is cut off while the mark is set or removed, or just afterwards. `turns`: of the event loop."""

    async def cut_off(work: Coroutine[Any, Any, object]) -> None:
        working = asyncio.create_task(work, name="cut-off")
        for _ in range(turns + 1):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait([working])

    async def listen() -> None:
        me = Me(may_rename=may_rename)
        mark, channel = ListeningMark(), Lounge(me)
        await cut_off(mark.show(channel, ENGLISH))
        assert me.nick == PREFIX + "Roomtone" if may_rename else channel.statuses == ["Roomtone is listening"]
        await cut_off(mark.remove(channel))
        assert me.nick is None
        assert channel.statuses == ([] if may_rename else ["Roomtone is listening", None])

    asyncio.run(listen())


def test_without_both_rights_nothing_shows_it() -> None:
    """If neither is allowed, the answer is no, and nothing is raised."""

    async def listen() -> bool:
        mark, channel = ListeningMark(), Lounge(Me(may_rename=False), may_edit=False)
        shown = await mark.show(channel, ENGLISH)
        await mark.remove(channel)
        return shown

    assert asyncio.run(listen()) is False


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
def test_a_start_removes_the_mark_of_a_crash(left: str, after: str | None) -> None:
    """The prefix that a killed process left is removed, in whichever language; any other nickname stays."""
    me = Me(left)
    asyncio.run(remove_leftover(cast("Any", me)))
    assert me.nick == after


@pytest.mark.parametrize("language", [ENGLISH, GERMAN])
def test_marks_are_put_on_once(language: str) -> None:
    """Marking twice changes nothing, and unmarking returns what was there before."""
    once = marked("Robo", language)
    assert marked(once, language) == once == f"{prefix_in(language)}Robo"
    assert unmarked(once) == "Robo"
    assert unmarked(None) is None
