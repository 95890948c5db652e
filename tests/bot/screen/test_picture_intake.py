"""The pictures of a page are taken in, and a page that misbehaves is found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.screen.picture_intake import MisbehavedError, PictureIntake
from tests.bot.screen.watching import PICTURES, FakeReaders
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from bot.texts.text import Text


class Page:
    """A page whose pictures are taken in. `troubles`: what it is told."""

    def __init__(self) -> None:
        self.clock, self.readers = FakeClock(), FakeReaders()
        self.troubles: list[Text] = []
        self._intake = PictureIntake(cast("Any", self.readers), self.clock, on_trouble=self.troubles.append)

    async def send(self, data: bytes) -> str:
        """Send a picture; return what became of it. Raises `MisbehavedError`."""
        checked = await self._intake.check(data)
        outcome = checked if isinstance(checked, str) else "taken"
        self._intake.hold_against(outcome)
        return outcome


async def test_bad_pictures_and_floods_are_refused() -> None:
    """Bad pictures and floods are refused with the reason. If they continue, the share ends; a few are forgiven."""
    page = Page()
    assert await page.send(b"no picture") == "not_jpeg"
    fates = [await page.send(PICTURES["dark"]) for _ in range(8)]
    assert fates == ["taken"] * 5 + ["dropped"] * 3
    page.clock.advance(60)
    for _ in range(30):
        await page.send(b"no picture")
    with pytest.raises(MisbehavedError):
        await page.send(b"no picture")


async def test_a_page_is_not_blamed_for_a_decoder_that_does_not_start() -> None:
    """If no picture can be decoded, the page is told so and its share goes on until pictures are decoded again."""
    page = Page()
    page.readers.undecodable = "No process could be started."
    for _ in range(60):
        assert await page.send(PICTURES["dark"]) == "undecoded"
        page.clock.advance(1)
    assert set(page.troubles) == {"No process could be started."}
    page.readers.undecodable = ""
    assert await page.send(PICTURES["dark"]) == "taken"
    assert page.troubles[60:] == [""]
