"""When a share must end without its sharer's doing, what waits for their page, and what a recap may tell."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bot import events
from bot.channel.port import Person
from bot.llm.model_calls import OPERATOR
from bot.screen.messages import ShareEnd
from bot.screen.share import Share
from bot.screen.sharer import ABSENT_S, PAGE_MESSAGES, RECONNECT_WITHIN_S, Sharer, ShareRecorder
from bot.words import Words
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, Evening, forget
from tests.bot.screen.watching import FakeReaders
from tests.fakes.room_channel import ADA
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.screen.port import VisionSource

NOW = 100.0


@pytest.mark.parametrize(
    ("absent_s", "disconnected_s", "ending"),
    [
        (None, None, None),
        (ABSENT_S - 0.1, None, None),
        (ABSENT_S, None, ShareEnd.LEFT),
        (None, RECONNECT_WITHIN_S - 0.1, None),
        (None, RECONNECT_WITHIN_S, ShareEnd.LOST),
        (ABSENT_S, RECONNECT_WITHIN_S, ShareEnd.LEFT),
    ],
)
def test_end_of_a_share(absent_s: float | None, disconnected_s: float | None, ending: ShareEnd | None) -> None:
    """Leaving the channel comes before a broken connection."""
    sharer = Sharer(ADA, "n1")
    if absent_s is not None:
        assert sharer.due_end(NOW, present=False) is None
    if disconnected_s is not None:
        sharer.disconnected_since = NOW + (absent_s or 0.0) - disconnected_s
    assert sharer.due_end(NOW + (absent_s or 0.0), present=absent_s is None) is ending


def test_a_short_absence_is_forgotten() -> None:
    """Who is back in the channel may be away as long again."""
    sharer = Sharer(ADA, "n1")
    assert sharer.due_end(NOW, present=False) is None
    assert sharer.due_end(NOW + ABSENT_S - 1, present=True) is None
    assert sharer.due_end(NOW + ABSENT_S, present=False) is None
    assert sharer.due_end(NOW + 2 * ABSENT_S, present=False) is ShareEnd.LEFT


def test_oldest_messages_for_an_absent_page_are_dropped() -> None:
    sharer = Sharer(ADA, "n1")
    for number in range(PAGE_MESSAGES + 3):
        sharer.send(t="note", what=number)
    assert [message["what"] for message in sharer.for_page] == list(range(3, PAGE_MESSAGES + 3))
    assert sharer.dropped == 3
    assert sharer.changed.is_set()


async def test_a_recap_tells_nothing_that_was_forgotten(place: Place) -> None:
    """The recap at the end of a share tells of no note that another program has deleted. It tells of those since."""
    async with Evening(place) as evening:
        seen: list[events.Event] = []
        recorder = ShareRecorder(
            evening.timeline,
            guild_id=GUILD,
            clock=evening.clock,
            observe=seen.append,
            words=Words(),
        )
        sharer = Sharer(Person(2003, "Cy", is_bot=False), "n1")

        async def see(what: str) -> None:
            noted = ScreenNote(evening.clock.now(), what, ScreenNoteReason.CUT, VisionSource.OCR, "hash")
            await recorder.take_note(sharer, noted)

        share = Share(
            "Cy",
            "a window",
            readers=cast("Any", FakeReaders()),
            payer=OPERATOR,
            clock=evening.clock,
            on_note=cast("Any", None),
            on_trouble=lambda _: None,
        )
        await see("now: Tokyo 2099")
        await forget(evening.database, evening.clock, "2003")
        await evening.timeline.refresh()
        evening.clock.advance(1)
        await see("now: The train leaves at nine")
        await recorder.record_end(sharer, share)
        (recap,) = (event.turn for event in seen if isinstance(event, events.TurnRecorded))
        assert recap.parts[0].text.endswith("Last seen on it: now: The train leaves at nine.")
