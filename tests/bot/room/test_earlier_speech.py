"""What a room had heard when it crashed, and not recorded yet, is recorded by the session's next room."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest

from bot import events
from bot.store.database import open_database
from bot.store.forgettings import record_forgetting
from compaction.model import TurnKind, TurnPart
from tests.bot.room.room_scene import TICK_S, House, a_house, living, settle
from tests.fakes.hearing import LOUD, speech
from tests.fakes.place import ADA, BO
from voice.audio import LISTEN_RATE_HZ
from voice.transport.audio_events import SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bot.room.room import Room
    from bot.store.forgettings import Forgetting

WORDS = "We meet at the harbour at nine."


async def crash_in_mid_sentence(house: House, meanwhile: Callable[[Room], Awaitable[None]] | None = None) -> str:
    """Let Bo's words wait because Ada is in mid-sentence; then the room crashes. Return the session's id."""
    async with living(house) as (room, _):
        house.recogniser.texts.append(WORDS)
        for number in range(80):
            now = house.clock.monotonic()
            pcm = np.full(int(TICK_S * LISTEN_RATE_HZ), LOUD, np.int16)
            house.place.links[-1].hear([SpeechFrames(ADA.id, ADA.id, now, pcm)])
            if number == 20:
                house.place.links[-1].hear(speech(BO.id, at=now - 1.0, seconds=1.0))
            await house.pass_time(TICK_S)
        await settle(lambda: bool(house.of(events.UtteranceTranscribed)))
        assert not house.turns, "it waits for Ada's words"
        if meanwhile is not None:
            await meanwhile(room)
    opened = house.of(events.RoomOpened)[-1]
    assert isinstance(opened, events.RoomOpened)
    return opened.session_id


@pytest.mark.asyncio
async def test_words_that_waited_are_recorded_once_by_the_next_room(tmp_path: Path) -> None:
    """With the time at which they were said. They are not answered: the conversation has gone on."""
    async with a_house(tmp_path) as house:
        began_at = house.clock.now()
        session_id = await crash_in_mid_sentence(house)
        await house.pass_time(3.0)
        async with living(house):
            assert house.said == [f"Bo: {WORDS}"]
            await house.pass_time(3.0)
        assert not house.of(events.ReplySpoken)
        async with living(house):
            pass
        stored = await house.store.load(session_id)  # type: ignore[arg-type]
        [turn] = stored.window
        assert [part.text for part in turn.parts] == [WORDS]
        assert 0 <= turn.started_at - began_at <= 1.0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "seconds_ago", "turns"),
    [
        (f"Well. {WORDS}", 3.0, 1),
        # The same words of another time, and a word that only begins like one of them.
        (WORDS, 60.0, 2),
        ("We meet at the harbour at nineteen.", 3.0, 2),
    ],
)
async def test_words_that_became_a_turn_are_not_recorded_again(
    tmp_path: Path, text: str, seconds_ago: float, turns: int
) -> None:
    """The room may be lost between storing a turn and telling so."""
    async with a_house(tmp_path) as house:

        async def stored_and_not_told(room: Room) -> None:
            assert room._memory is not None
            ended_at = house.clock.now() - seconds_ago + 1.0
            part = TurnPart(str(BO.id), "Bo", text)
            await room._memory.append(TurnKind.SPEECH, (part,), started_at=ended_at - 1.0, ended_at=ended_at)

        session_id = await crash_in_mid_sentence(house, stored_and_not_told)
        async with living(house):
            pass
        stored = await house.store.load(session_id)  # type: ignore[arg-type]
        assert len(stored.window) == turns


@pytest.mark.asyncio
async def test_somebody_who_has_left_meanwhile_keeps_their_name(tmp_path: Path) -> None:
    """Under another name, /forget-me would take for theirs what is somebody else's."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        house.place.people.remove(BO)
        async with living(house):
            assert house.said == [f"Bo: {WORDS}"]


@pytest.mark.asyncio
async def test_nothing_is_recorded_while_it_is_not_known_who_has_opted_out(tmp_path: Path) -> None:
    """Somebody may have opted out while the room was being opened."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        house.place.current = False
        async with living(house):
            assert house.turns == []


@pytest.mark.asyncio
async def test_the_time_that_the_database_takes_is_not_theirs(tmp_path: Path) -> None:
    """The turn has the time at which they were said."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        said_at = house.clock.now()
        asked = house.sessions.forgettings_after

        async def slowly(number: int) -> tuple[Forgetting, ...]:
            house.clock.advance(7.0)
            return await asked(number)

        with patch.object(house.sessions, "forgettings_after", slowly):
            async with living(house):
                [turn] = house.turns
        assert turn.ended_at <= said_at


@pytest.mark.asyncio
async def test_words_of_somebody_who_opted_out_meanwhile_are_dropped(tmp_path: Path) -> None:
    """Between the two rooms there is none to be told."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        await house.participation.set_opt_out(house.place.guild_id, BO.id, out=True)
        async with living(house):
            assert house.turns == []


@pytest.mark.asyncio
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_words_of_somebody_who_was_forgotten_meanwhile_are_dropped(tmp_path: Path, *, elsewhere: bool) -> None:
    """Also by a command in another process, of which only the store tells."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        if elsewhere:
            path = tmp_path / "room.db"
            async with open_database(path, synchronous="normal") as database, database.writing() as connection:
                await record_forgetting(connection, str(BO.id), session_id=None, seq=None)
        else:
            await house.participation.on_forgetting(BO.id)
        async with living(house):
            assert house.turns == []


@pytest.mark.asyncio
async def test_another_session_does_not_begin_with_them(tmp_path: Path) -> None:
    """The next session may be heard by other people."""
    async with a_house(tmp_path) as house:
        await crash_in_mid_sentence(house)
        house.clock.advance(3600.0)
        async with living(house):
            assert house.turns == []
        assert (
            len({event.session_id for event in house.of(events.RoomOpened) if isinstance(event, events.RoomOpened)})
            == 2
        )
