"""The message that shows how a session goes: what it has, and when it is edited."""

from __future__ import annotations

import asyncio

from bot.events import TurnRecorded
from bot.participation.costs import CostLedger, ceiling_of
from bot.participation.settings import ParticipationSettings
from bot.room.posted_messages import EDIT_EVERY_S, LISTENING, MOST_FAILURES, MOST_PEOPLE, OVER, LiveMessage
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace


def turn(speaker_id: str, kind: TurnKind = TurnKind.SPEECH) -> TurnRecorded:
    """Return a recorded turn of one speaker."""
    return TurnRecorded(Turn(Seq(0), kind, 60.0, 61.0, (TurnPart(speaker_id, "Ada", "Secret words."),)), 0.0)


class Session:
    """A message, its clock and its place."""

    def __init__(self) -> None:
        self.clock, self.place, self.hidden = FakeClock(), FakePlace(), set[int]()
        self.message = LiveMessage(
            self.place,
            doing=lambda: LISTENING,
            costs=CostLedger(ceiling_of(ParticipationSettings())),
            hidden=self.hidden.__contains__,
            clock=self.clock,
        )

    def field(self, name: str) -> str:
        """Return one field of the card that was shown last."""
        return next(str(text) for title, text in self.place.cards[-1][1].fields if str(title) == name)

    async def pass_time(self, seconds: float) -> None:
        """Advance the clock and let the message see to itself."""
        self.clock.advance(seconds)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_it_shows_numbers_and_edits_only_what_has_changed() -> None:
    """Who spoke how often, for how long, and how many answers: in one message, which is edited if that has changed."""
    session = Session()
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    assert session.field("who spoke, and how often") == "nobody yet"
    await session.pass_time(EDIT_EVERY_S)
    assert len(session.place.cards) == 1
    for event in (turn("1"), turn("1"), turn("2"), turn("assistant", TurnKind.ASSISTANT)):
        session.message.on_event(event)
    await session.pass_time(EDIT_EVERY_S)
    assert session.place.cards[-1][0] == 1
    assert session.field("who spoke, and how often") == "<@1> 2, <@2> 1"
    assert session.field("my answers") == "1"
    assert "Secret" not in repr(session.place.cards)
    await session.pass_time(60.0)
    assert session.field("how long") == "2 minutes"
    running.cancel()
    await session.message.finish()
    assert session.place.cards[-1][1].text == OVER


async def test_who_is_hidden_is_not_shown_and_many_people_are_counted() -> None:
    """People beyond the first ten are a number; who has opted out is neither named nor counted."""
    session = Session()
    session.hidden.add(1)
    for person in range(1, MOST_PEOPLE + 4):
        session.message.on_event(turn(str(person)))
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    shown = session.field("who spoke, and how often")
    assert "<@1> " not in shown
    assert shown.endswith("and 2 more")
    running.cancel()


async def test_an_edit_that_fails_is_made_up_for_by_the_next_one() -> None:
    """Discord did not answer for a while: the same message shows what is new afterwards, and the end at last."""
    session = Session()
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    for failures in (1, MOST_FAILURES - 1):
        session.message.on_event(turn("1"))
        session.place.writable = False
        for _ in range(failures):
            await session.pass_time(EDIT_EVERY_S)
        session.place.writable = True
        await session.pass_time(EDIT_EVERY_S)
    assert [edited for edited, _ in session.place.cards] == [None, 1, 1]
    assert session.field("who spoke, and how often") == "<@1> 2"
    session.message.on_event(turn("1"))
    session.place.writable = False
    await session.pass_time(EDIT_EVERY_S)
    session.place.writable = True
    running.cancel()
    await session.message.finish()
    assert session.place.cards[-1][0] == 1
    assert session.place.cards[-1][1].text == OVER
