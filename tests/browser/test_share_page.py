"""The share page in a real browser: a tab with a game is shared, its changes are noted, and failures are handled."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from bot.clock import SystemClock
from bot.screen.messages import ShareEnd
from bot.screen.screens import LINK_VALID_S
from bot.screen.share import CHANGE_SPACING_S
from compaction.model import NoteTrigger
from tests.browser.evening import EVENING, evenings, noted
from tests.browser.game import GAME
from tests.browser.tabs import tabs
from tests.fakes.room_channel import ADA
from tests.patience import PATIENCE_S, patiently, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.browser.evening import BrowserEvening, OpenEvening


pytestmark = pytest.mark.asyncio(loop_scope="module")

# Scripts for the page: with NO_SOCKETS the bot cannot be reached, and with REFUSE the person chooses nothing to share.
NO_SOCKETS = (
    "window.WebSocket = class extends EventTarget { static OPEN = 1; send() {} close() {}"
    " constructor() { super(); setTimeout(() => this.dispatchEvent(new Event('close')), 20) } };"
)
REFUSE = "MediaDevices.prototype.getDisplayMedia = async () => { throw new DOMException('', 'NotAllowedError') };"

# The browser does not repeat the picture of a still screen any more.
NO_REPEATS = "() => shared.getVideoTracks()[0].applyConstraints({ frameRate: { max: 5 } })"

# The connection takes no picture while `full`; the page's `data-refused` tells that one was not taken.
FULL_SOCKET = (
    "Object.defineProperty(WebSocket.prototype, 'bufferedAmount',"
    " { get() { if (window.full) document.body.dataset.refused = true; return window.full ? Infinity : 0 } });"
)

# Pauses of the page are short, so that a test need not wait for them.
HURRY = "const slow = setTimeout; window.setTimeout = (run, ms, ...rest) => slow(run, ms / 20, ...rest);"

# Keeps the shared stream in `window.shared`, so that a test can use it.
KEEPING = (
    "const real = MediaDevices.prototype.getDisplayMedia; MediaDevices.prototype.getDisplayMedia ="
    " async function (wanted) { return window.shared = await real.call(this, wanted) };"
)


# Keeps in `stops` how many frames the page waited for whenever it stopped a track. It has patience with the last one.
COUNTING = (
    "const slow = setTimeout; window.setTimeout = (run, ms, ...rest) => (ms === 5_000 ? 0 : slow(run, ms, ...rest));"
    " const read = ReadableStreamDefaultReader.prototype.read; window.asked = 0; window.stops = [];"
    " ReadableStreamDefaultReader.prototype.read = function () {"
    " asked += 1; return read.call(this).finally(() => { asked -= 1 }) };"
    " const stop = MediaStreamTrack.prototype.stop;"
    " MediaStreamTrack.prototype.stop = function () { stops.push(asked); return stop.call(this) };"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evening() -> AsyncIterator[OpenEvening]:
    """Opens a room for one test, with the browser and the reader of all of them."""
    async with evenings() as opening:
        yield opening


@pytest_asyncio.fixture(loop_scope="module")
async def here(evening: OpenEvening) -> AsyncIterator[BrowserEvening]:
    """A room with a link to share in."""
    async with evening() as opened:
        yield opened


async def test_a_game_in_a_tab_is_watched(here: BrowserEvening) -> None:
    """The game's text is noted as soon as it is shared, then each change. The page shows the notes and can stop."""
    await here.open()
    told = await here.state("ready")
    assert "You are Ada, in Lounge on The Lantern Society." in told
    assert "The bot never keeps pictures." in told
    assert "#" not in here.page.url
    await here.page.click("#choose")
    await settle(lambda: here.notes)
    first = here.notes[0]
    assert (first.who, first.trigger) == ("Ada", NoteTrigger.SHARE_START)
    # The first test of the file may share before the reader is loaded; then the text is the second note.
    for text in ("Tokyo 2099", "Round 2 of 3", "HP 87"):
        await settle(lambda text=text: here.saw(text))  # type: ignore[misc]
    await here.show("health", "HP 12")
    await settle(lambda: here.saw("HP 12"))
    await here.show("chat", "[Ben] push the payload now")
    await settle(lambda: here.saw("[Ben] push the payload now"))
    await noted(here.page, "HP 12")
    assert "You are sharing a browser tab" in await here.state("sharing")
    assert await here.page.evaluate("document.activeElement.id") == "stop"
    await here.page.keyboard.press("Enter")
    told = await here.state("ended")
    assert "You stopped sharing." in told
    await settle(lambda: len(here.turns) == 2)
    begun, over = (turn.parts[0].text for turn in here.turns)
    assert begun == "Ada shares a browser tab with the bot from now on."
    assert over.startswith("Ada stopped sharing a browser tab")
    # The live notes are retired after that turn.
    await here.room.finish()
    stored = await here.store.load(EVENING)
    assert [note.id for note in stored.state.pending_notes] == [note.id for note in here.notes]
    assert stored.live_notes == ()
    assert here.complaints == []


async def test_the_last_of_two_quick_changes_is_noted(here: BrowserEvening) -> None:
    """Of two changes within 30 ms both are noted, although the screen stands still afterwards and Chromium drops the
    frame of a change that follows another too soon.
    """
    await here.share()
    await here.game.evaluate(
        "() => { document.getElementById('health').textContent = 'HP 12'; setTimeout(() => {"
        " document.getElementById('chat').textContent = '[Ben] push the payload now' }, 30) }"
    )
    await settle(lambda: here.saw("HP 12") and here.saw("[Ben] push the payload now"))


async def test_a_picture_that_could_not_be_sent_is_offered_again(evening: OpenEvening) -> None:
    """A picture that the connection did not take is sent later, although nothing on the screen changes afterwards."""
    async with evening(script=KEEPING + FULL_SOCKET) as here:
        await here.share()
        await here.page.evaluate(NO_REPEATS)
        await here.page.evaluate("() => { window.full = true }")
        await here.show("health", "HP 12")
        # The browser may drop the picture, because it comes too soon after the one before.
        async with asyncio.timeout(PATIENCE_S):
            for number in itertools.count():
                await here.show("chat", f"[Ben] {number}")
                await asyncio.sleep(0.3)
                if await here.page.evaluate("document.body.dataset.refused"):
                    break
        assert not here.saw("HP 12")
        await here.page.evaluate("() => { window.full = false }")
        await settle(lambda: here.saw("HP 12"))


async def test_a_picture_that_the_bot_did_not_take_is_sent_again(
    evening: OpenEvening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nothing on the screen changes afterwards. Until it is taken, the page says that it was not."""
    told = "The bot could not take the last picture. This page sends it again."
    async with evening(script=HURRY) as here:
        await here.share()
        sharer = here.room.find(ADA.id)
        assert sharer is not None
        assert sharer.share is not None
        refused: list[bytes] = []

        async def refuse(data: bytes) -> str:
            refused.append(data)
            return "dropped"

        with monkeypatch.context() as refusing:
            refusing.setattr(sharer.share, "offer", refuse)
            await here.show("health", "HP 12")
            await here.page.locator("#trouble", has_text=told).wait_for()
            await settle(lambda: len(refused) >= 3)
            assert told in await here.page.inner_text("#announcer")
        await settle(lambda: here.saw("HP 12"))
        await here.page.wait_for_selector("#trouble[hidden]", state="attached")


async def test_a_page_behind_the_game_goes_on(here: BrowserEvening) -> None:
    """Changes are noted while the browser hides the share page because the person is in the game."""
    async with tabs() as chromium:
        game = await chromium.open("data:text/html;base64," + base64.b64encode(GAME.encode()).decode())
        page = await chromium.open(here.link())
        await page.until("document.body && document.body.dataset.state === 'ready'")
        await page.to_front()
        await page.evaluate("document.getElementById('choose').click()")
        await settle(lambda: here.notes)
        await game.to_front()
        await page.until("document.visibilityState === 'hidden'")
        await game.evaluate("document.getElementById('chat').textContent = '[Ada] the healer is down'")
        await settle(lambda: here.saw("the healer is down"))
        assert await page.evaluate("document.visibilityState") == "hidden"


async def test_links_that_are_no_good_are_refused_with_a_reason(
    here: BrowserEvening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says why a used, changed, expired or missing link is refused."""
    used = here.link()
    await here.open(used)
    await here.state("ready")
    await here.open(used)
    told = await here.state("denied")
    assert "has already used this link" in told
    assert "This page shares nothing." in told
    link = here.link()
    await here.open(link[:-4] + "abcd")
    assert "not from me" in await here.state("denied")
    await here.open(link.partition("#")[0])
    # The secret that another tab got with its link is not used in this tab.
    assert "no link in this address" in await here.state("denied")
    link, now = here.link(), SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + LINK_VALID_S)
    await here.open(link)
    assert "too old" in await here.state("denied")


async def test_a_reload_or_a_closed_tab_ends_the_share(here: BrowserEvening) -> None:
    """A page that is reloaded says that its share is over. When the shared tab is closed, the share ends as with the
    browser's own stop button.
    """
    await here.share()
    await here.page.reload()
    # What was seen stays in the memory, so the page does not say that its link does not work.
    assert "You have stopped sharing with this link." in await here.state("ended")
    await settle(lambda: len(here.turns) == 2)
    assert here.room.sharing() == []
    await here.share()
    await here.game.close()
    assert "You stopped sharing." in await here.state("ended")
    await settle(lambda: len(here.turns) == 4)


async def test_a_broken_connection_is_mended(here: BrowserEvening) -> None:
    """After the connection breaks, the share continues. A page that was only open can be reloaded and used again."""
    await here.open()
    await here.state("ready")
    await here.page.reload()
    await here.state("ready")
    await here.page.click("#choose")
    await settle(lambda: here.notes)
    await broken(here)
    told = await here.state("sharing")
    assert "Not connected. This page sends nothing" in told
    assert "The connection broke. Trying again…" in told
    assert await here.page.title() == "○ Not connected · Roomtone"
    await here.page.evaluate("() => { window.WebSocket = window.RealSocket }")
    await here.page.wait_for_selector("body[data-link=open]")
    told = await here.state("sharing")
    assert "You are sharing a browser tab" in told
    assert "The connection broke" not in told
    await settle(lambda: sees(here))
    await here.show("chat", "[Ben] we are back")
    await settle(lambda: here.saw("we are back"))
    assert here.room.sharing() == ["Ada"]


async def test_who_stops_while_the_connection_is_broken_shares_no_more(here: BrowserEvening) -> None:
    """If the person presses stop or reloads while the connection is broken, the bot learns it after reconnecting."""
    for reloads in (False, True):
        await here.share()
        sharer = here.room.find(ADA.id)
        assert sharer is not None
        await broken(here)
        if reloads:
            await here.page.reload()
        else:
            await here.page.click("#stop")
            await here.page.evaluate("() => { window.WebSocket = window.RealSocket }")
        await settle(lambda sharer=sharer: sharer.ended)  # type: ignore[misc]
        assert sharer.ended is ShareEnd.STOPPED
        assert "You stopped sharing." in await here.state("ended")
    assert here.complaints == []


async def broken(here: BrowserEvening) -> None:
    """Break the connection. The page can reconnect when it has `RealSocket` back or is reloaded."""
    await here.page.evaluate(f"() => {{ window.RealSocket = WebSocket; {NO_SOCKETS} }}")
    for socket in list(here.web.sockets):
        await socket.close(code=1012)
    await here.page.wait_for_selector("body[data-link=broken]")


def sees(here: BrowserEvening) -> bool:
    """Return whether the bot has a current picture of Ada's screen."""
    sharer = here.room.find(ADA.id)
    if sharer is None or sharer.share is None:
        return False
    return sharer.share.has_picture


async def test_a_bot_that_cannot_be_reached_is_tried_again(evening: OpenEvening) -> None:
    """The page tries again while the bot is unreachable, and shows a hint for the operator.

    A proxy that does not pass websockets on looks the same.
    """
    async with evening(script=NO_SOCKETS) as here:
        await here.open()
        assert "This page cannot reach the bot yet. Trying again…" in await here.state("opening")
        await here.page.get_by_text("PUBLIC_URL is not the address").wait_for()
        await here.state("opening")


async def test_something_else_may_be_shared(evening: OpenEvening, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person can share something else over the same connection, and the new share gets its own first note.

    If nothing is chosen, the old share continues. Chromium complains if a track is stopped while it makes a frame.
    """
    async with evening(script=COUNTING) as here:
        await here.share()
        monkeypatch.setattr(SystemClock, "monotonic", lambda _: time.monotonic() + CHANGE_SPACING_S)
        await here.page.click("#change")
        await settle(lambda: len([note for note in here.notes if note.trigger is NoteTrigger.SHARE_START]) == 2)
        assert await here.page.evaluate("stops") == [0]
        assert "You are sharing a browser tab" in await here.state("sharing")
        assert "You are sharing a browser tab." in await here.page.inner_text("#announcer")
        await here.show("health", "HP 12")
        await settle(lambda: here.saw("HP 12"))
        await here.page.evaluate(f"() => {{ {REFUSE} }}")
        await here.page.click("#change")
        await here.page.wait_for_selector("#trouble:not([hidden])")
        assert "You chose nothing" in (told := await here.state("sharing"))
        assert "You still share the same as before." in told
        await here.show("chat", "[Ben] still here")
        await settle(lambda: here.saw("still here"))
        assert len(here.turns) == 1
        assert here.complaints == []


async def test_browsers_without_frames_use_a_video(evening: OpenEvening) -> None:
    """In browsers without `MediaStreamTrackProcessor` (Firefox, Safari), pictures are taken from a video by a timer."""
    async with evening(script="delete window.MediaStreamTrackProcessor") as here:
        await here.share()
        await settle(lambda: here.saw("Tokyo 2099"))
        await here.page.bring_to_front()
        await here.show("health", "HP 12")
        await settle(lambda: here.saw("HP 12"))


async def test_phones_and_insecure_addresses_are_told_what_to_do(evening: OpenEvening) -> None:
    """A phone and an insecure address get advice, and their link is not used up."""
    async with evening(script="delete MediaDevices.prototype.getDisplayMedia") as here:
        link = here.link()
        await here.open(link)
        assert "Open this on a computer" in await here.state("phone")
        assert (await here.screens.admit(link.partition("#")[2])).welcome["who"] == "Ada"
    async with evening() as here:
        link = here.link()
        await here.open(link.replace("localhost", "watch.example"))
        assert "PUBLIC_URL" in await here.state("insecure")
        assert (await here.screens.admit(link.partition("#")[2])).welcome["who"] == "Ada"


async def test_it_can_be_used_by_keyboard_and_is_told_to_screen_readers(here: BrowserEvening) -> None:
    """The page works with the keyboard.

    Focus moves to each state's heading or its only button, and each state is announced to screen readers.
    """
    await here.open()
    await here.state("ready")
    assert await here.page.evaluate("document.activeElement.id") == "ready-title"
    assert "You can share your screen" in await here.page.inner_text("[role=status]#announcer")
    await here.page.keyboard.press("Tab")
    assert await here.page.evaluate("document.activeElement.id") == "choose"
    await here.page.keyboard.press("Enter")
    await here.state("sharing")
    assert "You are sharing a browser tab." in await here.page.inner_text("#announcer")
    assert await here.page.title() == "● Sharing · Roomtone"
    await here.page.keyboard.press("Shift+Tab")
    assert await here.page.evaluate("document.activeElement.id") == "change"
    await here.page.keyboard.press("Tab")
    await here.page.keyboard.press("Space")
    await here.state("ended")
    assert await here.page.evaluate("document.activeElement.id") == "ended-title"
    await patiently(here.room.finish())
