"""The page in a real browser: a tab with a game is shared, what changes on it is noted; and everything that goes wrong.

With ROOMTONE_SCREENSHOTS=DIR a picture of each state of the page is left there, in light and in dark.
"""

from __future__ import annotations

import asyncio
import base64

import pytest

from compaction.context import build_payload
from compaction.model import NoteReason
from compaction.notes import LIVE_NOTES
from tests.browser.chromium import GAME
from tests.browser.evening import EVENING, GUILD, evening, until
from tests.browser.tabs import tabs
from tests.fakes.place import ADA, BO

COLOURS = ("#f4f0e0", "#101418")
DISTRICTS = (
    "Abbey",
    "Bridge",
    "Castle",
    "Dungeon",
    "Embassy",
    "Forest",
    "Garden",
    "Harbour",
    "Island",
    "Jungle",
    "Kitchen",
    "Library",
    "Museum",
    "Nursery",
    "Observatory",
)


@pytest.mark.asyncio
async def test_a_game_in_a_tab_is_watched() -> None:
    """Its text is noted from the first picture on, then what changes; the page tells what was noted and stops."""
    async with evening() as here:
        await here.open()
        told = await here.state("ready", "ready")
        assert "You are Ada, in Lounge on The Lantern Society." in told
        assert "Pictures are never kept." in told
        assert "#" not in here.page.url
        await here.page.click("#choose")
        await until(lambda: here.notes)
        first = here.notes[0]
        assert (first.who, first.why) == ("Ada", NoteReason.SHARE_START)
        for text in ("Tokyo 2099", "Round 2 of 3", "HP 87"):
            assert here.saw(text), first.what
        await here.show("health", "HP 12")
        await until(lambda: here.saw("HP 12"))
        await here.show("chat", "[Ben] push the payload now")
        await until(lambda: here.saw("[Ben] push the payload now"))
        told = await here.state("sharing", "sharing")
        assert "You are sharing a browser tab" in told
        assert "HP 12" in told
        assert await here.page.evaluate("document.activeElement.id") == "stop"
        await here.page.keyboard.press("Enter")
        told = await here.state("ended", "ended")
        assert "You stopped sharing." in told
        await until(lambda: here.turns)
        assert "Ada stopped sharing a browser tab" in here.turns[0].parts[0].text
        stored = await here.store.load(EVENING)
        assert [note.id for note in stored.state.pending_notes] == [note.id for note in here.notes]
        assert stored.live_notes == ()
        assert here.complaints == []


@pytest.mark.asyncio
async def test_a_page_behind_the_game_goes_on() -> None:
    """The person is in the game, so the browser hides the page; what changes is noted all the same."""
    async with evening() as here, tabs() as chromium:
        game = await chromium.open("data:text/html;base64," + base64.b64encode(GAME.encode()).decode())
        page = await chromium.open(here.link())
        await page.until("document.body && document.body.dataset.state === 'ready'")
        await page.to_front()
        await page.evaluate("document.getElementById('choose').click()")
        await until(lambda: here.notes)
        await game.to_front()
        assert await page.evaluate("document.visibilityState") == "hidden"
        await game.evaluate("document.getElementById('chat').textContent = '[Ada] the healer is down'")
        await until(lambda: here.saw("the healer is down"))
        assert await page.evaluate("document.visibilityState") == "hidden"


@pytest.mark.asyncio
async def test_notes_that_leave_the_screen_stay_in_the_memory() -> None:
    """More scenes than fit into the live notes: all are in the store, the live ones before the model, and what left
    them in the closing segment."""
    async with evening() as here:
        await here.share()
        for number, district in enumerate(DISTRICTS):
            await here.scene(COLOURS[number % 2], f"{district} district")
            await until(lambda district=district: here.saw(district))  # type: ignore[misc]
        stored = await here.store.load(EVENING)
        assert len(stored.live_notes) == LIVE_NOTES
        assert len(stored.state.pending_notes) == len(here.notes) - LIVE_NOTES > 0
        context = here.memory.context(max_input_tokens=8_000)
        payload = "\n".join(part.content for part in build_payload(context, system=["You take part."]))
        assert DISTRICTS[-1] in payload
        assert "On Ada's screen:" in payload
        await here.room.finish()
        await here.memory.end()
        (segment,) = (await here.store.load(EVENING)).segments
        assert set(segment.note_ids) == {note.id for note in here.notes}
        assert any("Ada's screen" in fact.text for fact in segment.facts)


@pytest.mark.asyncio
async def test_links_that_are_no_good_are_refused_with_a_reason() -> None:
    """Used, changed, expired, missing; and the page says what to do."""
    async with evening() as here:
        used = here.link()
        await here.open(used)
        await here.state("ready")
        await here.open(used)
        assert "has been used already" in await here.state("denied", "denied")
        link = here.link()
        await here.open(link[:-4] + "abcd")
        assert "not one of mine" in await here.state("denied")
        await here.open(link.partition("#")[0])
        # Another tab's secret is none of this one's.
        assert "no link in it" in await here.state("denied")
        expired = here.screens._links.give(guild_id=GUILD, user_id=ADA.id, session_id=EVENING, now=0.0)
        await here.open(here.web.share_link(expired))
        assert "has expired" in await here.state("denied")


@pytest.mark.asyncio
async def test_a_page_that_is_not_ours_gets_nothing() -> None:
    """Another origin, with a link of ours in its hands: refused before it is read, and the link is still good."""
    async with evening("--host-resolver-rules=MAP evil.example 127.0.0.1") as here:
        link = here.link()
        await here.open(link.replace("localhost", "evil.example"))
        await here.state("insecure")
        outcome = await here.page.evaluate(
            "() => new Promise((done) => { const socket = new WebSocket(`ws://${location.host}/share/socket`);"
            " socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })"
        )
        assert outcome == "refused"
        await here.page.close()
        # This machine by its number is no other page.
        await here.open(link.replace("localhost", "127.0.0.1"))
        await here.state("ready")


@pytest.mark.asyncio
async def test_who_leaves_the_channel_shares_no_more() -> None:
    """The page says so within seconds, and nothing is sent any more."""
    async with evening() as here:
        await here.share()
        here.place.people = [BO]
        assert "You left the voice channel" in await here.state("ended")
        assert here.room.sharing() == []


@pytest.mark.asyncio
async def test_a_tab_that_is_closed_ends_its_share() -> None:
    """As the browser's own stop button does."""
    async with evening() as here:
        await here.share()
        await here.game.close()
        assert "You stopped sharing." in await here.state("ended")
        await until(lambda: here.turns)


@pytest.mark.asyncio
async def test_a_broken_connection_is_mended() -> None:
    """The share goes on where it was; a page that was only open is there again after a reload."""
    async with evening() as here:
        await here.open()
        await here.state("ready")
        await here.page.reload()
        await here.state("ready")
        await here.page.click("#choose")
        await until(lambda: here.notes)
        for socket in list(here.web._sockets):
            await socket.close(code=1012)
        await here.page.wait_for_selector("body[data-link=broken]")
        await here.state("sharing", "broken")
        await here.page.wait_for_selector("body[data-link=open]")
        await here.show("chat", "[Ben] we are back")
        await until(lambda: here.saw("we are back"))
        assert here.room.sharing() == ["Ada"]


@pytest.mark.asyncio
async def test_browsers_without_frames_use_a_video() -> None:
    """Firefox, Safari: looked at by the clock."""
    async with evening(script="delete window.MediaStreamTrackProcessor") as here:
        await here.share()
        assert here.saw("Tokyo 2099")
        await here.page.bring_to_front()
        await here.show("health", "HP 12")
        await until(lambda: here.saw("HP 12"))


@pytest.mark.asyncio
async def test_who_chooses_nothing_may_choose_again() -> None:
    """The page says so and stays as it is."""
    refuse = "MediaDevices.prototype.getDisplayMedia = async () => { throw new DOMException('', 'NotAllowedError') }"
    async with evening(script=refuse) as here:
        await here.open()
        await here.state("ready")
        await here.page.click("#choose")
        await here.page.wait_for_selector("#choose-problem:not([hidden])")
        assert "Nothing was chosen" in await here.state("ready", "nothing-chosen")


@pytest.mark.asyncio
async def test_phones_and_insecure_addresses_are_told_what_to_do() -> None:
    """And their link is not used up."""
    async with evening(script="delete MediaDevices.prototype.getDisplayMedia") as here:
        link = here.link()
        await here.open(link)
        assert "Open this on a computer" in await here.state("phone", "phone")
        assert (await here.screens.admit(link.partition("#")[2])).welcome.who == "Ada"
    async with evening("--host-resolver-rules=MAP watch.example 127.0.0.1") as here:
        link = here.link()
        await here.open(link.replace("localhost", "watch.example"))
        assert "PUBLIC_URL" in await here.state("insecure", "insecure")
        assert (await here.screens.admit(link.partition("#")[2])).welcome.who == "Ada"


@pytest.mark.asyncio
async def test_it_can_be_used_by_keyboard_and_is_told_to_screen_readers() -> None:
    """The focus goes to each state's heading or its one button, and each state is announced."""
    async with evening() as here:
        await here.open()
        await here.state("ready")
        assert await here.page.evaluate("document.activeElement.id") == "ready-title"
        assert "You can share your screen" in await here.page.inner_text("[role=status]#announcer")
        await here.page.keyboard.press("Tab")
        assert await here.page.evaluate("document.activeElement.id") == "choose"
        await here.page.keyboard.press("Enter")
        await here.state("sharing")
        assert "You are sharing a browser tab with Roomtone." in await here.page.inner_text("#announcer")
        assert await here.page.title() == "● Sharing · Roomtone"
        await here.page.keyboard.press("Space")
        await here.state("ended")
        assert await here.page.evaluate("document.activeElement.id") == "ended-title"
        await asyncio.wait_for(here.room.finish(), 60)
