"""A shared screen from the link to the summary, with Chromium, the complete bot, and a person who listens."""

from __future__ import annotations

import time

import pytest

from compaction.notes import LIVE_NOTES
from rehearsal.runner.observations import ObservedCompaction, ObservedPrompt, ObservedReply
from tests.browser.evening import until
from tests.browser.game import DISTRICTS, scene, show
from tests.browser.living_room import SKIP, living_room

pytestmark = pytest.mark.rehearsal

REMARK = "Careful, Ada, you have very little health left."
# With Ben's joins and leaves and the bot's remark, the session then has more turns than the window holds.
HISTORY = tuple(f"I told you about the {number} green bottles on the wall." for number in range(52))


@pytest.mark.asyncio
async def test_a_game_is_watched_remarked_upon_and_remembered() -> None:
    """Changes on the screen are noted with their text, and another participant hears the bot's remark.

    Notes that no longer fit are in the summary, and the model is sent the summary and the live notes. When the person
    leaves the channel, the share ends.
    """
    async with living_room(*HISTORY, screen__commentary_every_s=5.0, screen__busy_share=0.9) as here:
        link = await here.open_link()
        assert "You are Ada, in Evening on The local guild." in await here.state("ready")
        await here.page.click("#choose")
        await here.state("sharing")
        for text in ("Tokyo 2099", "Round 2 of 3", "HP 87"):
            await here.noted(text)

        began_at, here.says = time.monotonic(), REMARK
        await show(here.game, "health", "HP 12")
        await here.noted("HP 12")
        await until(lambda: here.of(ObservedReply))
        here.says = SKIP
        assert here.of(ObservedReply)[0].text == REMARK
        assert await here.heard_saying("very little health left", since=began_at)
        assert "HP12" in here.sent().replace(" ", "")

        # There are more scenes than fit into the live notes, so the first leave them.
        for number, district in enumerate(DISTRICTS):
            await scene(here.game, number)
            await here.noted(district)
        assert len(DISTRICTS) > LIVE_NOTES
        assert here.of(ObservedCompaction) == []
        await here.come_and_go(4)
        await show(here.game, "round", "Round 3 of 3")
        await until(lambda: here.of(ObservedCompaction))
        assert DISTRICTS[0] in here.of(ObservedCompaction)[-1].summary

        # With the next change, the model is sent the first scene in the summary and the last scene in the live notes.
        calls, built = len(here.model.calls), len(here.of(ObservedPrompt))
        await show(here.game, "chat", "[Ben] push the payload now")
        await until(lambda: len(here.model.calls) > calls and len(here.of(ObservedPrompt)) > built)
        parts = here.of(ObservedPrompt)[-1].parts
        assert any(DISTRICTS[0] in part.content for part in parts if part.kind == "summary")
        assert any(DISTRICTS[-1] in part.content for part in parts if part.kind == "note")
        assert not any(DISTRICTS[0] in part.content for part in parts if part.kind == "note")
        assert DISTRICTS[0] in here.sent()
        assert DISTRICTS[-1] in here.sent()

        await here.stay.aclose()
        assert "You left the voice channel" in await here.state("ended")
        await here.page.goto(link)
        assert "has been used already" in await here.state("denied")
