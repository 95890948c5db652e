"""A room with real session memory, the web server, the real screen reader, and a browser tab with a game to share."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from bot import events
from bot.clock import SystemClock
from bot.llm.model_calls import OPERATOR
from bot.screen.readers import ScreenReaders
from bot.screen.screens import Screens
from bot.settings import WebSettings
from bot.texts.text import verbatim
from bot.web.server import WebServer
from bot.words import Words
from compaction.model import Mode, Note, SessionId, Turn
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from tests.browser.chromium import browser
from tests.browser.game import GAME, show
from tests.fakes.room_channel import ADA, FakeRoomChannel
from tests.fakes.turn_store import InMemoryTurnStore
from tests.patience import PATIENCE_S, settle
from tests.voice.screen.screens import PATIENT_READER
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.ocr import OcrReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from playwright.async_api import Browser, BrowserContext, Page

    from bot.screen.screen_room import RoomScreens

    # Opens a room, its web server and a window of the browser. `script`: runs first in each page.
    OpenEvening = Callable[..., AbstractAsyncContextManager["BrowserEvening"]]

GUILD = 10
LAPTOP, PHONE = (1280, 800), (390, 844)
EVENING = SessionId("evening")
# Names that lead to this machine: a page of somebody else's, and an address that the browser does not take for secure.
HOSTS = "MAP evil.example 127.0.0.1, MAP watch.example 127.0.0.1"


class BrowserEvening:
    """The room, its web server and the browser. `complaints`: errors from the browser's console."""

    def __init__(self, web: WebServer, screens: Screens, context: BrowserContext) -> None:
        self.web = web
        self.screens = screens
        self.context = context
        self.channel = FakeRoomChannel()
        self.store = InMemoryTurnStore()
        self.seen: list[events.Event] = []
        self.complaints: list[str] = []
        self.timeline: SessionTimeline
        self.room: RoomScreens
        self.game: Page
        self.page: Page

    @property
    def notes(self) -> list[Note]:
        return [event.note for event in self.seen if isinstance(event, events.ScreenNoted)]

    @property
    def turns(self) -> list[Turn]:
        return [event.turn for event in self.seen if isinstance(event, events.TurnRecorded)]

    def link(self) -> str:
        """Return a new link for Ada."""
        return self.web.share_link(self.screens.invite(GUILD, ADA.id))

    async def open(self, link: str | None = None) -> Page:
        """Open the share page in a new tab."""
        self.page = await self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.page.on("console", lambda message: self._complain(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await self.page.goto(link or self.link())
        return self.page

    def _complain(self, kind: str, text: str) -> None:
        # A broken connection is an error to the console, but an ordinary event to the page.
        if kind == "error" and "WebSocket" not in text:
            self.complaints.append(text)

    async def state(self, state: str) -> str:
        """Wait until the page is in a state and return its text."""
        await self.page.wait_for_selector(f"body[data-state={state}]")
        return await self.page.inner_text("main")

    async def share(self) -> None:
        """Open the share page, share the game, and wait for the first note."""
        await self.open()
        await self.state("ready")
        await self.page.click("#choose")
        await self.state("sharing")
        await settle(lambda: self.notes)

    async def show(self, where: str, text: str) -> None:
        """Show a text in one element of the game."""
        await show(self.game, where, text)

    def saw(self, text: str) -> bool:
        """Return whether a note contains the text, ignoring spaces."""
        bare = text.replace(" ", "")
        return any(bare in note.what.replace(" ", "") for note in self.notes)


async def noted(page: Page, text: str) -> None:
    """Wait until the page shows a note with this text, ignoring spaces. It hears of a note later than the room."""
    bare = "".join(text.split())
    async with asyncio.timeout(PATIENCE_S):
        # The page's Content Security Policy forbids evaluating code, which Playwright's `wait_for_function` needs.
        while bare not in "".join((await page.inner_text("#notes")).split()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


class KeptReaders(ScreenReaders):
    """The real readers, which stay loaded between two tests."""

    async def unload(self) -> None:
        """Do nothing: the next test reads with what is loaded."""


@asynccontextmanager
async def evenings() -> AsyncIterator[OpenEvening]:
    """Start one browser and one reader for all rooms that are opened. To start them takes longer than most tests."""
    async with (
        OcrReader(
            clock=SystemClock(),
            command=PATIENT_READER,
            busy_share=1.0,
            timeout_s=PATIENCE_S,
            start_timeout_s=PATIENCE_S,
        ) as ocr,
        FrameDecoder(timeout_s=PATIENCE_S, start_timeout_s=PATIENCE_S) as decoder,
        browser(f"--host-resolver-rules={HOSTS}") as chromium,
    ):
        yield partial(_evening, KeptReaders(ocr, decoder, clock=SystemClock()), chromium)


@asynccontextmanager
async def _evening(readers: ScreenReaders, chromium: Browser, *, script: str = "") -> AsyncIterator[BrowserEvening]:
    clock = SystemClock()
    screens = Screens(readers, clock=clock, bot_name="Roomtone", reading=verbatim("By the bot alone."))
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(WebServer(WebSettings(port=0), screens))
        await web.start()
        async with await chromium.new_context(viewport={"width": LAPTOP[0], "height": LAPTOP[1]}) as context:
            if script:
                await context.add_init_script(script)
            here = BrowserEvening(web, screens, context)
            async with SessionTimeline.open(
                EVENING,
                store=here.store,
                summariser=ExtractiveSummariser(),
                mode=Mode.SUMMARY,
                clock=clock,
            ) as here.timeline:
                with screens.room_for(
                    EVENING,
                    here.channel,
                    timeline=here.timeline,
                    observe=here.seen.append,
                    words=Words(),
                    payer=OPERATOR,
                ) as here.room:
                    running = asyncio.create_task(here.room.run())
                    try:
                        here.game = await context.new_page()
                        await here.game.set_content(GAME)
                        yield here
                    finally:
                        running.cancel()
                        await asyncio.wait({running})
