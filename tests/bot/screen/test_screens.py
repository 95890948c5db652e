"""Links and share pages: who is admitted, who may reconnect, and the last message of each page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.brain.tools.tool import ToolError
from bot.screen.messages import NotAdmittedError, PageClosedError, ScreenError, ShareEnd
from bot.screen.screen_room import RoomScreens
from bot.screen.screens import LINK_VALID_S, ScreenPageConnection
from tests.bot.screen.watching import PICTURES, Watching
from tests.fakes.room_channel import ADA, BO, OTHER_BOT
from tests.patience import PATIENCE_S, settle

GUILD = 10


async def refusal(watching: Watching, token: str = "", resume: str = "") -> str:
    with pytest.raises(NotAdmittedError) as caught:
        await (watching.screens.readmit(resume) if resume else watching.screens.admit(token))
    assert str(caught.value).endswith(".")
    return caught.value.reason


async def last(line: ScreenPageConnection) -> str:
    """Return the reason in the last message of a connection."""
    async with asyncio.timeout(PATIENCE_S):
        messages = [message async for message in line.messages()]
    assert messages[-1]["t"] == "ended"
    return str(messages[-1]["reason"])


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Watching, RoomScreens, ScreenPageConnection]]:
    """Open a room, and a page with a link to it."""
    watching = Watching()
    async with watching.room() as room:
        yield watching, room, await watching.screens.admit(watching.screens.invite(GUILD, ADA.id))


async def test_a_link_lets_its_person_in_once() -> None:
    """A link admits its person once, with the details that the page shows. A used, changed or expired link
    is refused.
    """
    watching = Watching()
    async with watching.room():
        token = watching.screens.invite(GUILD, ADA.id)
        line = await watching.screens.admit(token)
        welcome = line.welcome
        assert (welcome["who"], welcome["room"], welcome["server"], welcome["sharing"]) == (
            "Ada",
            "Lounge",
            "The Lantern Society",
            False,
        )
        assert await refusal(watching, token) == "used"
        assert await refusal(watching, token[:-3] + "xyz") == "unknown"
        late = watching.screens.invite(GUILD, ADA.id)
        watching.clock.advance(LINK_VALID_S)
        assert await refusal(watching, late) == "expired"


async def test_who_may_not_share_gets_no_link() -> None:
    """There is no link without a room, for people outside the channel, when sharing is off, when the room is full, or
    for people who may not be heard, as where they are asked and have not agreed.
    """
    watching = Watching(most_shares=1)
    with pytest.raises(ScreenError, match="/join"):
        watching.screens.invite(GUILD, ADA.id)
    async with watching.room():
        watching.channel.people.append(OTHER_BOT)
        for stranger in (999, OTHER_BOT.id):
            with pytest.raises(ScreenError, match="Lounge"):
                watching.screens.invite(GUILD, stranger)
        await watching.screens.admit(watching.screens.invite(GUILD, ADA.id))
        watching.screens.invite(GUILD, ADA.id)
        with pytest.raises(ScreenError, match="as many screens"):
            watching.screens.invite(GUILD, BO.id)
        watching.opted_out = {ADA.id}
        with pytest.raises(ScreenError, match="Hear me"):
            watching.screens.invite(GUILD, ADA.id)
    off = Watching(enabled=False)
    async with off.room():
        with pytest.raises(ScreenError, match="switched off"):
            off.screens.invite(GUILD, ADA.id)


async def test_a_link_is_for_its_session_and_for_who_is_there() -> None:
    """A link is refused if its person left, if the room filled up, or if the room closed."""
    watching = Watching(most_shares=1)
    async with watching.room():
        absent, late, full = (watching.screens.invite(GUILD, person.id) for person in (ADA, ADA, BO))
        watching.channel.people = [BO]
        assert await refusal(watching, absent) == "absent"
        watching.channel.people = [ADA, BO]
        await watching.screens.admit(watching.screens.invite(GUILD, ADA.id))
        assert await refusal(watching, full) == "full"
    assert await refusal(watching, late) == "closed"


@pytest.mark.parametrize("ending", [ShareEnd.COMMAND, ShareEnd.SUPERSEDED])
async def test_a_page_that_is_being_told_something_learns_of_its_end(ending: ShareEnd) -> None:
    """Its connection may be slow. What waits for the page goes to the one that has superseded it, if any."""
    async with opened() as (watching, room, line):
        line.sharer.send(t="note", what="one")
        messages = line.messages()
        assert (await anext(messages))["what"] == "one"
        line.sharer.send(t="note", what="two")
        if ending is ShareEnd.SUPERSEDED:
            await watching.screens.readmit(line.welcome["resume"])
        else:
            await room.end(line.sharer, ending)
        async with asyncio.timeout(PATIENCE_S):
            told = [message async for message in messages]
        notes = [] if ending is ShareEnd.SUPERSEDED else ["two"]
        assert [message["what"] for message in told[:-1]] == notes
        assert told[-1]["reason"] == ending.value


async def test_a_page_shares_and_stops() -> None:
    """Pictures are accepted from the start of the share until its end, and the page learns that the share has ended."""
    async with opened() as (watching, _, line):
        await line.picture(PICTURES["dark"])
        assert list(line.sharer.for_page) == [{"t": "refused", "reason": "dropped"}]
        line.start("window")
        line.start("monitor")
        watching.readers.texts = ["Tokyo 2099"]
        await line.picture(PICTURES["dark"])
        await settle(lambda: watching.notes)
        assert [message["t"] for message in line.sharer.for_page] == ["refused", "note"]
        await line.stop()
        await line.stop()
        assert await last(line) == "stopped"
        with pytest.raises(PageClosedError):
            await line.picture(PICTURES["bright"])
        with pytest.raises(PageClosedError):
            line.start("window")
        line.disconnected()
        assert await refusal(watching, resume=line.welcome["resume"]) == "ended"


async def test_a_page_is_told_of_each_picture_that_is_not_taken() -> None:
    """And why: the page sends it again, because a screen that stands still yields no other."""
    async with opened() as (watching, _, line):
        line.start("window")
        await line.picture(b"no picture")
        watching.readers.undecodable = "No process could be started."
        await line.picture(PICTURES["dark"])
        watching.readers.undecodable = ""
        watching.channel.people = [BO]
        await line.picture(PICTURES["dark"])
        watching.channel.people = [ADA, BO]
        for _ in range(8):
            await line.picture(PICTURES["dark"])
        told = [message["reason"] for message in line.sharer.for_page if message["t"] == "refused"]
        # Six pictures may come at once, of which the first two were these.
        assert told == ["refused", "undecoded", *["dropped"] * 5]


async def test_a_flood_of_pictures_that_nobody_wants_is_ended() -> None:
    """Too many pictures in vain end the share, or its page if none has begun, also if the page connects anew."""
    async with opened() as (watching, room, line):
        page = line
        while room.find(ADA.id) is not None:
            page = await watching.screens.readmit(line.welcome["resume"])
            await page.picture(PICTURES["dark"])
        assert await last(page) == "misbehaved"


async def test_a_page_comes_back_to_its_share() -> None:
    """A page can reconnect to its share; a second page with the same secret replaces the first."""
    async with opened() as (watching, room, line):
        line.start("window")
        line.disconnected()
        sharer = room.find(ADA.id)
        assert sharer is not None
        assert not line.welcome["sharing"]
        again = await watching.screens.readmit(line.welcome["resume"])
        assert again.welcome["sharing"]
        assert await refusal(watching, resume=line.welcome["resume"][:-1]) == "ended"
        third = await watching.screens.readmit(line.welcome["resume"])
        assert await last(again) == "superseded"
        again.disconnected()
        assert sharer.disconnected_since is None
        await third.picture(PICTURES["dark"])
        assert sharer.share is not None
        assert sharer.share.counts["taken"] == 1


async def test_a_screen_that_nobody_sends_is_not_looked_at() -> None:
    """A look fails while the page is disconnected, and after that until the page has sent a picture."""
    async with opened() as (watching, room, line):
        watching.readers.texts = ["Tokyo 2099"]
        line.start("window")
        await line.picture(PICTURES["dark"])
        assert "Tokyo 2099" in await room.look("what?", who=None)
        line.disconnected()
        with pytest.raises(ToolError, match="connected"):
            await room.look("what?", who=None)
        again = await watching.screens.readmit(line.welcome["resume"])
        with pytest.raises(ToolError, match="yet"):
            await room.look("what?", who=None)
        await again.picture(PICTURES["dark"])
        assert "Tokyo 2099" in await room.look("what?", who=None)


async def test_the_reader_rests_when_nobody_shares_anywhere() -> None:
    """The reader is unloaded when the last share of all rooms ends."""
    watching = Watching()
    other = Watching()
    other.screens = watching.screens
    other.channel.guild_id = GUILD + 1
    async with watching.room() as room, other.room() as elsewhere:
        here, there = await room.welcome(ADA, "n1"), await elsewhere.welcome(BO, "n2")
        room.start(here, "window")
        elsewhere.start(there, "window")
        await room.end(here, ShareEnd.STOPPED)
        assert watching.readers.unloads == 0
        await elsewhere.end(there, ShareEnd.STOPPED)
        assert watching.readers.unloads == 1
