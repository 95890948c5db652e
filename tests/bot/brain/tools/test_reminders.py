"""The tools for reminders: what they keep, what they refuse with cause and remedy, and which of them ask first."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from bot.brain.tools.tool import Asker
from bot.brain.tools.toolbox import QuestionTools, Toolbox, ToolExchange, reach_in
from bot.channel.port import Person
from bot.conversation.reminding import NO_SUCH, OVER, TOO_FAR, TOO_MANY, reminder_tools
from bot.reminders import MOST_CHARS, MOST_DAYS, NO_TIME
from compaction.model import Seq
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import Book, told
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.patience import PATIENCE_S

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC).timestamp()


class Table:
    """A room of Ada and Bo with the tools."""

    def __init__(self) -> None:
        self.book, self.channel = Book(), FakeRoomChannel(people=[ADA, BO])
        self.toolbox = Toolbox(
            personal=lambda asker: reminder_tools(asker, self.book, clock=FakeClock(NOW), zone=UTC),
            ask_for_press=self.channel.ask_for_press,
            reach=partial(reach_in, self.channel),
        )

    def use(self, person: Person = ADA) -> QuestionTools:
        return self.toolbox.for_asker(Asker(person.id, person.name, present=True))

    async def call(self, name: str, person: Person = ADA, **arguments: Any) -> str:
        """Return what a model reads after a call."""
        return await told(self.use(person), MessageToolCall("c", name, json.dumps(arguments)))


@pytest.fixture
def table() -> Table:
    """A table without reminders."""
    return Table()


async def test_a_reminder_is_kept_listed_and_deleted_by_who_asked(table: Table) -> None:
    """Nobody is asked to press for what is said in the talk."""
    assert "in 10 minutes" in await table.call("remind", minutes=10, what="take the pizza out")
    assert "at 21:30" in await table.call("remind", BO, at="21:30", whom="Ada")
    assert [(each.person_id, each.due_at - NOW, each.what, each.whom) for each in table.book.kept] == [
        (ADA.id, 600, "take the pizza out", ""),
        (BO.id, 5_400, "", "Ada"),
    ]
    listed = await table.call("remind", action="list")
    assert "1. in 10 minutes" in listed
    assert "2. at 21:30" in listed
    for which in ({"number": 2}, {"number": 9}, {"what": "the dentist"}):
        assert NO_SUCH in await table.call("remind", action="delete", **which)
    assert "deleted it: take the pizza out" in await table.call("remind", action="delete", number=1)
    assert [each.person_id for each in table.book.kept] == [BO.id]
    assert table.channel.calls == []


async def test_a_list_is_for_who_asked(table: Table) -> None:
    """It has their reminders of earlier sessions, which others may not have heard. That one is set, all have heard."""
    for turn, arguments in ((1, '{"minutes": 10, "what": "the surprise"}'), (2, '{"action": "list"}')):
        asked = table.toolbox.for_asker(Asker(ADA.id, ADA.name, present=True), answering=Seq(turn))
        call = MessageToolCall("c", "remind", arguments)
        asked.record(Seq(turn), [ToolExchange((call,), await asked.run_all([call]))])
    assert [*table.use(BO).earlier(range(9))] == [1]
    table.channel.people = [ADA]
    assert sorted(table.use(ADA).earlier(range(9))) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, NO_TIME),
        ({"at": "soon"}, NO_TIME),
        ({"minutes": 0}, OVER),
        ({"minutes": -1440}, OVER),
        ({"at": "yesterday 20:00"}, OVER),
        ({"at": "2027-12-01T09:00"}, TOO_FAR),
        ({"minutes": MOST_DAYS * 1440 + 1}, TOO_FAR),
        ({"minutes": 1e300}, TOO_FAR),
    ],
)
@pytest.mark.parametrize("name", ["remind", "remind_in_chat"])
async def test_what_cannot_be_kept_is_told_with_its_remedy(
    table: Table, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    """Before anybody is asked to press, too."""
    assert sentence in await table.call(name, **arguments)
    assert (table.book.kept, table.channel.calls) == ([], [])


async def test_nobody_keeps_a_hundred(table: Table) -> None:
    """Who has too many reads how to delete one."""
    table.book.is_full = True
    assert TOO_MANY in await table.call("remind", minutes=1)


async def test_what_is_written_later_waits_for_a_press_with_its_time(table: Table) -> None:
    """The card has the moment, so that ten minutes are ten from the question."""
    await table.call("remind_in_chat", minutes=10, what="call Anna")
    (card,) = table.channel.calls
    assert card.request.arguments == {"at": "2026-11-29T20:10:00+00:00", "what": "call Anna"}
    assert card.press(BO) is not None
    assert table.book.kept == []
    assert card.press(ADA) is None
    await table.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert [(each.due_at - NOW, each.in_chat) for each in table.book.kept] == [(600, True)]


async def test_without_a_model_the_same_is_kept_and_told_in_a_text(table: Table) -> None:
    """What waits for a press does nothing there, and nobody who is not present is served."""
    promised = await table.use().do("remind", {"at": "zehn Minuten", "what": "so " * MOST_CHARS})
    assert promised is not None
    assert "when" in promised.values
    assert len(table.book.kept[0].what) <= MOST_CHARS + 2
    refused = await table.use().do("remind", {"at": "a bit"})
    assert refused == NO_TIME
    assert await table.use().do("remind_in_chat", {"at": "10 minutes"}) is None
    assert await table.toolbox.for_asker(Asker(9, "Cy")).do("remind", {"at": "10 minutes"}) is None
    assert await table.toolbox.for_asker().do("remind", {"at": "10 minutes"}) is None
    assert len(table.book.kept) == 1


async def test_one_of_several_is_deleted_by_what_it_is_of(table: Table) -> None:
    """Whoever has only one need not say which."""
    for what in ("take the pizza out", "call Anna", "call Ben"):
        await table.call("remind", minutes=10, what=what)
    assert "You have 2 reminders like that" in await table.call("remind", action="delete", what="the calls")
    for what in ("the pizza", "Anna", ""):
        assert "I have deleted it" in await table.call("remind", action="delete", what=what)
    assert table.book.kept == []
    assert "no such reminder" in await table.call("remind", action="delete")
