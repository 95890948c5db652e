"""Reading sessions for one person: only those of their channels, and never withheld or forgotten words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bot.memory import session_views
from bot.memory.session_views import SessionViews
from bot.store.attendance import AttendanceStore, Presence
from bot.store.sessions import Sessions
from bot.viewers import Viewer
from compaction.model import Seq, SessionId, Turn, TurnKind
from tests.bot.conftest import Place
from tests.bot.evening import CHANNEL, GUILD, Evening
from tests.fakes.clock import FakeClock


def views(evening: Evening, *withheld: str) -> SessionViews:
    async def who(guild_id: int) -> frozenset[str]:
        assert guild_id == GUILD
        return frozenset(withheld)

    return SessionViews(Sessions(evening.database, evening.clock), evening.store, withheld=who)


def ada(*, allowed: int = CHANNEL, guild_id: int = GUILD, opened: int = 0, present_in: int | None = None) -> Viewer:
    """Return Ada, who may be told of one channel. `opened`: whose history is open to her."""
    return Viewer("id-Ada", guild_id, frozenset({allowed}), frozenset({opened} & {allowed}), present_in)


# Somebody to whom all is open.
MANAGER = ada(opened=CHANNEL)


async def there(evening: Evening, person_id: str = "id-Ada", *, joined: bool = True) -> None:
    """Let somebody come, or leave."""
    at = evening.clock.now()
    await AttendanceStore(evening.database).add(evening.session_id, [Presence(person_id, at, joined=joined)])


async def test_only_sessions_that_somebody_attended_are_found(place: Place) -> None:
    """A session is found by its id or as the newest, but only on its server and in a channel that may be told there."""
    async with Evening(place) as evening:
        sessions = views(evening)
        await there(evening)
        assert await sessions.readable(ada()) == ()
        await evening.say("The gate code is 4411.")
        (found,) = await sessions.readable(ada())
        assert found.id == evening.session_id
        cy = replace(ada(), person_id="id-Cy")
        for person, may in (
            (ada(), True),
            (ada(allowed=5), False),
            (ada(guild_id=GUILD + 1), False),
            (cy, False),
            (replace(cy, present_in=CHANNEL), False),
            (replace(cy, opened=frozenset({CHANNEL})), True),
        ):
            assert len(await sessions.readable(person)) == may
            for wanted in (None, evening.session_id):
                one = await sessions.find(person, session_id=wanted, nearest=[CHANNEL, 5])
                assert (one is not None) is may
        assert await sessions.find(ada(), session_id=SessionId("other")) is None


async def test_who_came_late_catches_up_with_the_session_that_goes_on(place: Place) -> None:
    """For that alone, while they are in the channel, and not once it has ended."""
    async with Evening(place) as evening:
        await evening.say("The gate code is 4411.", "Bob")
        evening.clock.advance(10.0)
        await there(evening)
        sessions = views(evening)
        late = ada(present_in=CHANNEL)
        found = await sessions.find(late, catches_up=True)
        assert found is not None
        assert [turn.seq for turn in (await sessions.read(found, late, catches_up=True)).turns] == [0]
        assert (await sessions.read(found, late)).turns == ()
        assert (await sessions.read(found, ada(), catches_up=True)).turns == ()
        await evening.timeline.end()
        assert (await sessions.read(found, late, catches_up=True)).turns == ()


async def test_who_opted_out_is_left_out_and_so_is_what_the_bot_said_after_them(evening: Evening) -> None:
    """Their words are not read, nor the bot's answers from then on, which may repeat them; earlier ones are."""
    await evening.say("Hello, everybody here.", "Ada")
    await evening.say("Good evening.", "Roomtone", kind=TurnKind.ASSISTANT)
    await evening.say("My aunt lives in Zanzibarq.", "Bob")
    await evening.say("Zanzibarq is far.", "Roomtone", kind=TurnKind.ASSISTANT)
    await evening.say("Quite.", "Ada")
    sessions = views(evening, "id-Bob")
    found = await sessions.find(MANAGER)
    assert found is not None
    read = await sessions.read(found)
    assert [turn.seq for turn in read.turns] == [0, 1, 4]
    assert len(read.recorded) == 5
    assert [turn.seq for turn in (await views(evening).read(found)).turns] == [0, 1, 2, 3, 4]


async def test_a_session_of_days_is_read_from_its_newest_turns(
    evening: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest turns are cut, and not read from the store either. What the bot said may repeat what somebody said
    there who has opted out since.
    """
    monkeypatch.setattr(session_views, "MOST_TURNS", 2)
    await evening.say("My aunt lives in Zanzibarq.", "Bob")
    await evening.say("Quite.", "Ada")
    await evening.say("Zanzibarq is far.", "Roomtone", kind=TurnKind.ASSISTANT)
    sessions = views(evening, "id-Bob")
    found = await sessions.find(MANAGER)
    assert found is not None
    starts: list[int] = []
    stored_turns = evening.store.turns

    async def noted(session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        starts.append(start)
        return await stored_turns(session_id, start, end)

    monkeypatch.setattr(evening.store, "turns", noted)
    read = await sessions.read(found)
    assert ([turn.seq for turn in read.turns], read.cut, starts) == ([1], 1, [1])
    # Something was said since the session was found.
    await evening.say("Good night.", "Ada")
    read = await sessions.read(found)
    assert ([turn.seq for turn in read.turns], read.cut) == ([3], 2)


async def test_answers_that_quote_somebody_of_another_session_are_left_out(file: Path) -> None:
    """The bot finds what was said in earlier sessions. Once its speaker has opted out, neither people nor the model are
    told what it said with their words, though they never spoke in the session.
    """
    clock = FakeClock()
    async with Evening(file, name="first", clock=clock) as first:
        await first.say("My aunt lives in Zanzibarq.", "Bob")
        await first.timeline.end()
    async with Evening(file, name="second", clock=clock) as second:
        out: set[str] = set()
        second.timeline.withhold(lambda: frozenset(out))
        await second.say("Where does Bob's aunt live?", "Ada")
        await second.say("Bob said, in Zanzibarq.", "Roomtone", kind=TurnKind.ASSISTANT)
        assert "Zanzibarq" in str(second.timeline.window)
        out.add("id-Bob")
        await second.say("Thanks.", "Ada")
        await second.say("You are welcome.", "Roomtone", kind=TurnKind.ASSISTANT)
        assert "Zanzibarq" not in str(second.timeline.window)
        sessions = views(second, *out)
        found = await sessions.find(MANAGER)
        assert found is not None
        assert [turn.seq for turn in (await sessions.read(found)).turns] == [0, 2]
        assert [turn.seq for turn in (await views(second, "id-Dora").read(found)).turns] == [0, 1, 2, 3]
