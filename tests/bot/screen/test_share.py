"""One shared screen: its pictures are read and become notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from bot.llm.model_calls import OPERATOR
from bot.screen.share import CHANGE_SPACING_S, FAILURE_PAUSE_S, Share
from bot.texts.text import verbatim
from tests.bot.screen.watching import PICTURES, FakeReaders
from tests.fakes.clock import FakeClock
from tests.patience import settle
from voice.screen.frame import ScreenFrame
from voice.screen.frame_diff import WHOLE
from voice.screen.notes import CUT_SPACING_S, TEXT_SPACING_S, ScreenNote, ScreenNoteReason
from voice.screen.port import VisionError


class Sharing:
    """A share with its notes and its clock."""

    def __init__(self, readers: FakeReaders | None = None) -> None:
        self.readers = readers or FakeReaders()
        self.clock = FakeClock()
        self.notes: list[ScreenNote] = []
        self.troubles: list[str] = []
        self.share = Share(
            "Ada",
            "a window",
            readers=cast("Any", self.readers),
            payer=OPERATOR,
            clock=self.clock,
            on_note=self._note,
            on_trouble=self.troubles.append,
        )

    async def _note(self, note: ScreenNote) -> None:
        self.notes.append(note)

    async def see(self, name: str, *texts: str) -> str:
        """Send a picture that shows these lines."""
        self.readers.texts = list(texts)
        return await self.share.offer(PICTURES[name])

    async def noted(self, count: int) -> list[str]:
        """Wait until there are this many notes, and return their texts."""
        await settle(lambda: len(self.notes) >= count)
        return [note.what for note in self.notes]

    @asynccontextmanager
    async def running(self, *texts: str) -> AsyncIterator[Sharing]:
        """Run the share; with `texts` it shows them, and there is a note of it."""
        task = asyncio.create_task(self.share.run())
        try:
            if texts:
                await self.see("dark", *texts)
                await self.noted(1)
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_a_share_is_noted_from_its_first_picture_on() -> None:
    """The first picture is noted at once; later notes contain only what is new."""
    async with Sharing().running() as sharing:
        assert await sharing.see("dark", "Tokyo 2099") == "taken"
        assert await sharing.noted(1) == ["a window, just shared. It reads “Tokyo 2099”"]
        assert sharing.readers.urgent == [True]
        sharing.clock.advance(TEXT_SPACING_S)
        await sharing.see("bright", "Tokyo 2099", "Victory")
        assert (await sharing.noted(2))[1] == "now: “Victory”"
        assert sharing.notes[1].why is ScreenNoteReason.CUT
        assert sharing.notes[1].frame_hash


async def test_bad_pictures_and_floods_are_refused() -> None:
    """Bad pictures are refused. Of a flood only so many pictures a second are taken."""
    sharing = Sharing()
    assert await sharing.share.offer(b"no picture") == "refused"
    fates = [await sharing.see("dark") for _ in range(8)]
    assert fates == ["taken"] * 5 + ["dropped"] * 3
    sharing.clock.advance(1)
    assert [await sharing.see("dark") for _ in range(4)] == ["taken"] * 3 + ["dropped"]


async def test_a_page_is_not_blamed_for_a_decoder_that_does_not_start() -> None:
    """If no picture can be decoded, the page is told so and its share goes on until pictures are decoded again."""
    sharing = Sharing()
    sharing.readers.undecodable = "No process could be started."
    for _ in range(60):
        assert await sharing.see("dark") == "undecoded"
        sharing.clock.advance(1)
    sharing.readers.undecodable = ""
    assert await sharing.see("dark") == "taken"
    assert sharing.troubles == ["No process could be started.", ""]


async def test_a_screen_that_stands_still_costs_nothing() -> None:
    """A picture that equals the last one is not read."""
    async with Sharing().running("Tokyo 2099") as sharing:
        for _ in range(3):
            sharing.clock.advance(10)
            await sharing.see("dark", "something new")
        await asyncio.sleep(0)
        assert len(sharing.readers.looks) == 1
        assert sharing.share.counts["taken"] == 4


async def test_the_latest_picture_is_the_one_that_is_read() -> None:
    """If several pictures arrive while the reader is busy, only the latest is read."""
    async with Sharing().running() as sharing:
        sharing.readers.holding = asyncio.Event()
        await sharing.see("dark", "old")
        await sharing.readers.waiting.wait()
        await sharing.see("bright", "older")
        await sharing.see("grey", "new")
        sharing.readers.holding.set()
        assert await sharing.noted(1) == ["a window, just shared. It reads “new”"]
        (look,) = sharing.readers.looks
        assert look.jpeg == PICTURES["grey"]
        assert look.boxes == (WHOLE,)


async def test_text_that_waits_is_noted_before_a_new_scene() -> None:
    """A line that waits for its turn when the scene changes is noted first, because it was on the screen."""
    async with Sharing().running("Tokyo 2099") as sharing:
        await sharing.see("line", "Tokyo 2099", "Get ready")
        await sharing.noted(2)
        await sharing.see("other line", "Tokyo 2099", "First kill by Ada")
        await settle(lambda: sharing.share.counts["read"] == 3)
        assert len(sharing.notes) == 2
        await sharing.see("bright", "Victory")
        assert (await sharing.noted(4))[2:] == ["new text: “First kill by Ada”", "now: “Victory”"]


async def test_a_model_looks_now_and_then() -> None:
    """A model looks at a new scene, but not before `CUT_SPACING_S` has passed since its last look."""
    readers = FakeReaders(by_model=True)
    readers.words = "Marvel Rivals, the Tokyo map"
    async with Sharing(readers).running() as sharing:
        await sharing.see("dark")
        assert await sharing.noted(1) == ["a window, just shared: Marvel Rivals, the Tokyo map"]
        readers.words = "The victory screen"
        await sharing.see("bright")
        await sharing.clock.until_somebody_sleeps()
        assert len(readers.looks) == 1
        sharing.clock.advance(CUT_SPACING_S)
        assert (await sharing.noted(2))[1] == "The victory screen"
        assert readers.looks[1].before == "a window, just shared: Marvel Rivals, the Tokyo map"


async def test_a_reader_that_fails_is_told_once_and_asked_again() -> None:
    """If the reader fails, the share is noted without content, the failure is reported once, and reading is retried."""
    with capture_logs() as logged:
        async with Sharing().running() as sharing:
            sharing.readers.trouble = "The reader broke off."
            await sharing.see("dark", "Tokyo 2099")
            assert await sharing.noted(1) == ["a window, just shared."]
            await sharing.clock.until_somebody_sleeps()
            sharing.clock.advance(FAILURE_PAUSE_S)
            await settle(lambda: sharing.share.counts["unread"] == 2)
            assert sharing.troubles == [sharing.share.trouble] == ["The reader broke off."]
            sharing.readers.trouble = "It broke off again."
            await sharing.clock.until_somebody_sleeps()
            sharing.clock.advance(FAILURE_PAUSE_S)
            await settle(lambda: sharing.share.counts["unread"] == 3)
            sharing.readers.trouble = None
            await sharing.clock.until_somebody_sleeps()
            sharing.clock.advance(FAILURE_PAUSE_S)
            assert (await sharing.noted(2))[1] == "now: “Tokyo 2099”"
            assert sharing.troubles[1:] == ["It broke off again.", sharing.share.trouble] == ["It broke off again.", ""]
    assert [each["event"] for each in logged].count("screen_not_read") == 2


async def test_what_is_read_less_well_than_was_chosen_is_told() -> None:
    """A limitation of the reader is reported once, and so is its end."""
    async with Sharing().running() as sharing:
        sharing.readers.limited = verbatim("Only the text is read at present.")
        for name, text in [("dark", "first"), ("bright", "second")]:
            await sharing.see(name, text)
            await settle(lambda text=text: any(text in note.what for note in sharing.notes))  # type: ignore[misc]
        assert sharing.troubles == ["Only the text is read at present."]
        sharing.readers.limited = verbatim("")
        await sharing.see("grey", "third")
        await sharing.noted(3)
        assert sharing.troubles[1:] == [""]


async def test_something_else_may_be_shared() -> None:
    """If the person switches to another window or tab, the new picture is read at once. Text that still waited is noted
    first.
    """
    async with Sharing().running("Tokyo 2099") as sharing:
        sharing.clock.advance(CHANGE_SPACING_S)
        await sharing.see("grey", "Tokyo 2099", "Ben is down")
        await settle(lambda: sharing.share.counts["read"] == 2)
        sharing.share.change("a browser tab")
        with pytest.raises(VisionError, match="no picture"):
            await sharing.share.look("what is it?")
        await sharing.see("bright", "The train leaves at nine")
        told = await sharing.noted(3)
        assert "Ben is down" in told[1]
        assert told[2] == "a browser tab, just shared. It reads “The train leaves at nine”"
        assert sharing.notes[2].why is ScreenNoteReason.SHARE_START
        assert sharing.readers.urgent == [True, False, True]


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("has_picture", [False, True])
async def test_what_is_read_too_late_is_of_no_screen_of_now(*, has_picture: bool, forgets: bool) -> None:
    """When the person has switched to another window or tab, or has used /forget-me, a reading of before that waits for
    its reader gets no picture, and one that has it is discarded. The next picture is read at once.
    """
    async with Sharing().running() as sharing:
        holding = sharing.readers.holding = asyncio.Event()
        thinking = sharing.readers.thinking = asyncio.Event()
        await sharing.see("dark", "a secret")
        await sharing.readers.waiting.wait()
        if has_picture:
            holding.set()
            await settle(lambda: bool(sharing.readers.looks))
        sharing.clock.advance(CHANGE_SPACING_S)
        leave_behind(sharing, forgets=forgets)
        holding.set()
        thinking.set()
        if forgets and has_picture:
            await settle(lambda: sharing.share.counts["read"] == 1)
        await sharing.see("bright", "The train leaves at nine")
        now = "a window" if forgets else "a browser tab"
        assert await sharing.noted(1) == [f"{now}, just shared. It reads “The train leaves at nine”"]
        assert len(sharing.readers.looks) == 1 + has_picture


def leave_behind(sharing: Sharing, *, forgets: bool) -> None:
    """Let the person switch to another window, or be forgotten."""
    if forgets:
        sharing.share.forget()
    else:
        sharing.share.change("a browser tab")


@pytest.mark.parametrize("forgets", [False, True])
async def test_an_answer_about_an_earlier_screen_is_not_given(*, forgets: bool) -> None:
    """Whoever asked while the person switched to another window asks again, about what is shared now. After /forget-me
    there is no answer from a picture of before, and no note.
    """
    sharing = Sharing()
    await sharing.see("dark", "a secret")
    thinking = sharing.readers.thinking = asyncio.Event()
    asked = asyncio.create_task(sharing.share.look("what is it?"))
    await settle(lambda: bool(sharing.readers.looks))
    sharing.clock.advance(CHANGE_SPACING_S)
    leave_behind(sharing, forgets=forgets)
    thinking.set()
    with pytest.raises(VisionError, match="no picture"):
        await asked
    assert sharing.notes == []


async def test_who_leafs_through_screens_begins_no_share_each_time() -> None:
    """Switching between windows too quickly does not start anew, because each start costs an immediate look
    and a note.
    """
    async with Sharing().running("Tokyo 2099") as sharing:
        assert not any(sharing.share.change("the whole screen") for _ in range(10))
        await sharing.see("bright", "Tokyo 2099", "Victory")
        assert (await sharing.noted(2))[1] == "now: “Victory”"
        assert sharing.share.surface == "the whole screen"


async def test_who_asks_is_answered_from_the_latest_picture() -> None:
    """A question gets the text of the latest picture or the model's answer, and makes a note with the reason ASKED."""
    sharing = Sharing()
    with pytest.raises(VisionError):
        await sharing.share.look("what is it?")
    await sharing.see("dark", "Tokyo 2099", "HP 87")
    assert await sharing.share.look("which map?") == "Tokyo 2099\nHP 87"
    assert sharing.notes[-1].why is ScreenNoteReason.ASKED
    sharing.readers.texts = []
    assert "cannot read any text" in await sharing.share.look("and now?")
    model = Sharing(FakeReaders(by_model=True))
    model.readers.words = "It is the Tokyo map."
    await model.see("dark")
    assert await model.share.look("which map?") == "It is the Tokyo map."
    assert model.readers.looks[-1].question == "which map?"


@pytest.mark.parametrize("changes", [False, True])
async def test_text_that_waits_is_forgotten(*, changes: bool) -> None:
    """Neither the text that waits for its turn nor that of an earlier screen (`changes`) becomes a note after
    /forget-me. What is on the screen then is noted from the next picture on.
    """
    async with Sharing().running("Tokyo 2099") as sharing:
        sharing.clock.advance(CHANGE_SPACING_S)
        await sharing.see("grey", "Tokyo 2099", "a secret")
        await settle(lambda: sharing.share.counts["read"] == 2)
        del sharing.notes[:]
        assert not changes or sharing.share.change("a window")
        await sharing.see("bright", "a secret", "another one")
        sharing.share.forget()
        await sharing.share.finish()
        assert sharing.notes == []
        with pytest.raises(VisionError, match="no picture"):
            await sharing.share.look("what is it?")
        await sharing.see("dark", "The train leaves at nine")
        sharing.clock.advance(FAILURE_PAUSE_S)
        assert await sharing.noted(1) == ["a window, just shared. It reads “The train leaves at nine”"]


async def test_a_picture_that_is_being_checked_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came before /forget-me, so it is dropped."""
    sharing, checking = Sharing(), asyncio.Event()
    check = sharing.readers.check

    async def slowly(data: bytes) -> ScreenFrame:
        await checking.wait()
        return await check(data)

    monkeypatch.setattr(sharing.readers, "check", slowly)
    offered = asyncio.create_task(sharing.see("dark", "a secret"))
    await asyncio.sleep(0)
    sharing.share.forget()
    checking.set()
    assert await offered == "dropped"
    with pytest.raises(VisionError, match="no picture"):
        await sharing.share.look("what is it?")
