"""Shared screens of a room in another process, on both sides of real websockets: pages, pictures, commands, losses."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
from yarl import URL

from bot.remote.link.streams import STREAM_PATH, TICKET
from bot.remote.link.token_proof import AUTHORIZATION, new_number, room_proof
from bot.remote.messages.screen_messages import AdmitPage, AdmittedPage
from bot.remote.room_side import served_screens
from bot.screen.messages import NO_ROOM_TO_SHARE_IN, ScreenError, ShareEnd
from bot.texts.text import in_language
from bot.web.port import NotAdmittedError, PageClosedError
from tests.bot.remote.peers import TOKEN
from tests.bot.remote.screens_apart import GUILD, screens_apart
from tests.bot.screen.watching import PICTURES, Watching, until
from tests.fakes.cancellation import cancelled_elsewhere
from tests.fakes.place import ADA, BO
from tests.patience import PATIENCE_S
from voice.screen.frame import FrameRefusal
from voice.screen.settings import ScreenSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.gateway_side.remote_page import RemotePage
    from bot.remote.gateway_side.remote_screens import RemoteScreens
    from bot.screen.room import RoomScreens
    from tests.bot.remote.peers import Ends
    from voice.screen.frame import ScreenFrame


class Apart:
    """A room with shared screens in one process (`watching`, `room`), and the pages and commands of it in another."""

    def __init__(self, watching: Watching, room: RoomScreens, remote: RemoteScreens, ends: Ends) -> None:
        self.watching = watching
        self.room = room
        self.remote = remote
        self.ends = ends

    async def page(self) -> RemotePage:
        """Open a page for Ada."""
        return await self.remote.admit(await self.remote.invite(GUILD, ADA.id))


@asynccontextmanager
async def apart(watching: Watching | None = None) -> AsyncIterator[Apart]:
    """Open both processes."""
    watching = watching or Watching()
    async with watching.room() as room, screens_apart(watching.screens) as (remote, ends):
        yield Apart(watching, room, remote, ends)


async def last(page: RemotePage) -> dict[str, object]:
    """Return the last message of a page."""
    async with asyncio.timeout(PATIENCE_S):
        return dict([message async for message in page.messages()][-1])


async def first(page: RemotePage) -> dict[str, object]:
    """Return the next message of a page."""
    async with asyncio.timeout(PATIENCE_S):
        return dict(await anext(page.messages()))


@pytest.mark.asyncio
async def test_a_page_shares_and_stops() -> None:
    """As with a room in the same process: the welcome, the notes, the end, and nothing after it."""
    async with apart() as here:
        page = await here.page()
        welcome = page.welcome
        assert (welcome.who, welcome.room, welcome.server, welcome.bot) == (
            "Ada",
            "Lounge",
            "The Lantern Society",
            "Roomtone",
        )
        assert (welcome.reading, welcome.sharing, welcome.trouble) == ("Read here.", False, "")
        here.watching.readers.texts = ["Tokyo 2099"]
        page.start("window")
        await page.picture(PICTURES["dark"])
        assert await first(page) == {"t": "note", "what": here.watching.told()[0]}
        assert "Tokyo 2099" in here.watching.told()[0]
        assert (await here.remote.status(GUILD)).startswith("Ada has shared a window for")
        assert "Tokyo 2099" in await here.remote.look(GUILD, BO.id, "what?", whose=ADA.id)
        await page.stop()
        await page.stop()
        over = await last(page)
        assert (over["t"], over["reason"], over["sentence"]) == ("ended", "stopped", "You stopped sharing.")
        assert in_language(over["sentence"], "de") != over["sentence"]  # type: ignore[arg-type]
        with pytest.raises(PageClosedError):
            await page.picture(PICTURES["bright"])
        with pytest.raises(PageClosedError):
            page.start("window")
        page.disconnected()
        await until(lambda: len(here.watching.turns) == 2)
        with pytest.raises(NotAdmittedError) as refused:
            await here.remote.readmit(welcome.resume_secret)
        assert refused.value.reason == "ended"


@pytest.mark.asyncio
async def test_who_may_not_share_is_refused_as_in_one_process() -> None:
    """With the same reasons, in sentences that can be translated."""
    async with apart(Watching(settings=ScreenSettings(max_shares=1))) as here:
        with pytest.raises(ScreenError, match=r"/join"):
            await here.remote.invite(11, ADA.id)
        with pytest.raises(Exception, match="Join Lounge first"):
            await here.remote.invite(GUILD, 999)
        token, absent = [await here.remote.invite(GUILD, ADA.id) for _ in range(2)]
        full = await here.remote.invite(GUILD, BO.id)
        page = await here.remote.admit(token)
        for secret, reason in ((token, "used"), (token[:-3] + "xyz", "forged"), ("", "forged"), (full, "full")):
            with pytest.raises(NotAdmittedError) as refused:
                await here.remote.admit(secret)
            assert refused.value.reason == reason
            assert str(refused.value).endswith(".")
        here.watching.place.people = [BO]
        with pytest.raises(NotAdmittedError) as refused:
            await here.remote.admit(absent)
        assert refused.value.reason == "absent"
        page.disconnected()
    with pytest.raises(ScreenError) as gone:
        await here.remote.status(GUILD)
    assert str(gone.value) == NO_ROOM_TO_SHARE_IN


@pytest.mark.asyncio
async def test_the_newest_picture_wins_and_nothing_else_waits_for_it() -> None:
    """While one picture is on its way, only the newest waits; commands, and whatever else is on the link, pass."""
    watching = Watching()
    taken: list[bytes] = []
    free = asyncio.Event()
    check = watching.readers.check

    async def slow(data: bytes) -> ScreenFrame:
        taken.append(data)
        await free.wait()
        return await check(data)

    watching.readers.check = slow  # type: ignore[method-assign]
    async with apart(watching) as here:
        page = await here.page()
        page.start("monitor")
        await page.picture(PICTURES["dark"])
        await until(lambda: taken)
        for name in ("bright", "grey", "bright", "grey"):
            await page.picture(PICTURES[name])
        assert "Ada has shared the whole screen" in await here.remote.status(GUILD)
        free.set()
        await until(lambda: len(taken) == 2)
        assert taken == [PICTURES["dark"], PICTURES["grey"]]


@pytest.mark.asyncio
async def test_what_a_page_sends_wrongly_is_told_and_ends_its_share() -> None:
    """The room's process checks it, as it checks pictures of its own pages."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await page.picture(b"no picture")
        assert await first(page) == {"t": "refused", "reason": FrameRefusal.NOT_JPEG.value}
        over = asyncio.create_task(last(page))
        while not over.done():
            with suppress(PageClosedError):
                await page.picture(b"no picture")
            await asyncio.sleep(0)
        assert (await over)["reason"] == ShareEnd.MISBEHAVED.value
        assert here.watching.notes == []


@pytest.mark.asyncio
async def test_an_opt_out_ends_the_share_and_no_picture_is_seen_after_it() -> None:
    """The page is told, and the picture on its way is not read."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await page.picture(PICTURES["dark"])
        await until(lambda: here.watching.notes)
        seen = len(here.watching.readers.looks)
        here.watching.opted_out.add(ADA.id)
        await page.picture(PICTURES["bright"])
        here.room.end_excluded()
        assert (await last(page))["reason"] == "opted_out"
        await until(lambda: not here.room.sharing())
        assert len(here.watching.readers.looks) == seen


@pytest.mark.asyncio
async def test_commands_end_shares() -> None:
    """One's own, or everybody's."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await until(here.room.sharing)
        assert await here.remote.stop(GUILD, BO.id, everybody=False) == 0
        assert await here.remote.stop(GUILD, BO.id, everybody=True) == 1
        assert (await last(page))["reason"] == "command"


@pytest.mark.asyncio
async def test_a_page_that_comes_back_goes_on() -> None:
    """Its connection broke; the share waited, and the earlier page is told if it is still there."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await page.picture(PICTURES["dark"])
        await until(lambda: here.watching.notes)
        again = await here.remote.readmit(page.welcome.resume_secret)
        assert again.welcome.sharing
        assert (await last(page))["reason"] == "superseded"
        page.disconnected()
        await again.picture(PICTURES["bright"])
        await until(lambda: len(here.watching.readers.looks) == 2)


@pytest.mark.asyncio
async def test_a_lost_link_ends_its_pages_and_the_share_waits_for_them() -> None:
    """The page comes back by itself with its secret, once the room has its link again."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await until(here.room.sharing)
        await here.ends.drop()
        assert (await last(page))["reason"] == "broken"
        page.disconnected()
        sharer = here.room.find(ADA.id)
        assert sharer is not None
        await until(lambda: sharer.disconnected_since is not None)
        again = await here.remote.readmit(page.welcome.resume_secret)
        assert again.welcome.sharing


@pytest.mark.asyncio
async def test_a_lost_stream_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost but time, and the link does not notice."""
    monkeypatch.setattr(served_screens, "STREAM_PAUSE_S", 0.0)
    async with apart() as here:
        page = await here.page()
        page.start("window")
        await page.picture(PICTURES["dark"])
        await until(lambda: here.watching.notes)
        assert page._stream is not None
        await page._stream.close()
        await page.picture(PICTURES["bright"])
        await until(lambda: len(here.watching.readers.looks) == 2)
        assert len(here.ends.links) == 1


@pytest.mark.asyncio
async def test_a_stream_is_for_who_has_its_ticket() -> None:
    """And the token. A page that is gone has none any more."""
    async with apart() as here, aiohttp.ClientSession() as session:
        page = await here.page()
        url = URL(here.ends.listener.url).with_path(STREAM_PATH)
        for token, ticket, status in ((TOKEN, "guessed", 404), ("another", page.ticket, 401), (TOKEN, "", 404)):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(url, headers={AUTHORIZATION: room_proof(token, new_number()), TICKET: ticket})
            assert refused.value.status == status
        page.disconnected()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(url, headers={AUTHORIZATION: room_proof(TOKEN, new_number()), TICKET: page.ticket})
        assert refused.value.status == 404


@pytest.mark.asyncio
async def test_a_room_that_does_not_take_a_picture_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is sent once more over the next stream, and then left to the page, which is told."""
    monkeypatch.setattr(served_screens, "TAKE_WITHIN_S", 0.05)
    monkeypatch.setattr(served_screens, "STREAM_PAUSE_S", 0.0)
    watching = Watching()
    taken: list[bytes] = []

    async def never(data: bytes) -> ScreenFrame:
        taken.append(data)
        await asyncio.Event().wait()
        raise AssertionError

    check, watching.readers.check = watching.readers.check, never  # type: ignore[method-assign]
    async with apart(watching) as here:
        page = await here.page()
        page.start("window")
        await page.picture(PICTURES["dark"])
        assert await first(page) == {"t": "refused", "reason": "dropped"}
        watching.readers.check = check  # type: ignore[method-assign]
        # To read a picture takes a busy machine longer.
        monkeypatch.setattr(served_screens, "TAKE_WITHIN_S", PATIENCE_S)
        await page.picture(PICTURES["bright"])
        await until(lambda: watching.notes)
        assert taken == [PICTURES["dark"]] * 2


@pytest.mark.asyncio
async def test_a_page_that_is_gone_before_it_is_admitted_is_dropped() -> None:
    """Its share waits for it to come back, as for any other page, and nothing waits for its stream."""
    async with apart() as here:
        token = await here.remote.invite(GUILD, ADA.id)
        answer = await here.ends.gateway.ask(AdmitPage("nobody's", token, resumes=False), within_s=PATIENCE_S)
        assert isinstance(answer, AdmittedPage)
        sharer = here.room.find(ADA.id)
        assert sharer is not None
        await until(lambda: sharer.disconnected_since is not None)
        again = await here.remote.admit(await here.remote.invite(GUILD, ADA.id))
        assert again.welcome.who == "Ada"


@pytest.mark.asyncio
async def test_a_page_whose_stream_is_cancelled_by_mistake_is_told_that_it_shares_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a crash. Else it would wait for ever for somebody who takes its pictures."""
    async with apart() as here:
        page = await here.page()
        page.start("window")
        monkeypatch.setattr(here.watching.readers, "check", cancelled_elsewhere)
        await page.picture(PICTURES["dark"])
        assert (await last(page))["reason"] == "stopped"
