"""Events of a room become turns, and each call returns its own turn even if the store fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot import events
from bot.channel.participants import Participants
from bot.room.conversation.turn_recorder import TurnRecorder
from compaction.errors import StoreError
from tests.bot.room.conversation.test_turn_taking import spoken
from tests.compaction.rooms import Room
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, FakePlace
from tests.fakes.turn_store import Fault, InMemoryTurnStore
from tests.fakes.virtual_time import run_virtually

if TYPE_CHECKING:
    from bot.texts.text import Text
    from compaction.model import SessionId, Turn


class _Slow(InMemoryTurnStore):
    """A store that waits for a second and then fails."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        await asyncio.sleep(1.0)
        raise StoreError("It is locked.")


def a_recorder(
    room: Room, observe: events.Observer = events.ignore_event, place: FakePlace | None = None
) -> TurnRecorder:
    """Return a recorder in a channel with Ada and Bo."""
    place = place or FakePlace(people=[ADA, BO])
    return TurnRecorder(
        room.memory,
        place,
        Participants(place),
        own_name="Roomtone",
        clock=FakeClock(),
        observe=observe,
    )


def test_a_turn_that_is_not_stored_is_still_the_one_that_was_said() -> None:
    """Two turns that arrive while a slow store delays them each return their own turn, even though storing fails."""

    async def main() -> None:
        async with Room(store=_Slow()) as room:
            recorder = a_recorder(room)
            ada, bo = await asyncio.gather(
                *(recorder.record_membership(person, "joined the channel.") for person in (ADA, BO))
            )
            assert (ada.seq, ada.parts[0].speaker) == (0, "Ada")
            assert (bo.seq, bo.parts[0].speaker) == (1, "Bo")

    run_virtually(main())


def test_a_store_that_hangs_delays_one_turn_and_not_each() -> None:
    """People go on talking, and the bot answers, while the database gives no answer."""

    async def main() -> None:
        store = InMemoryTurnStore(fault=lambda name: Fault.HANGS if name == "append_turn" else None)
        async with Room(store=store) as room:
            recorder = a_recorder(room)
            await recorder.record_speech([spoken("one", ADA.id, "One.")])
            begun = asyncio.get_running_loop().time()
            for number in range(5):
                await recorder.record_speech([spoken(str(number), BO.id, f"Number {number}.")])
            assert asyncio.get_running_loop().time() == begun
            store.fault = None
            await room.memory.store_waiting()
            assert (await store.load(room.session_id)).total_turns == 6

    run_virtually(main())


def test_a_turn_whose_storing_is_broken_off_is_told_of_all_the_same() -> None:
    """A room that ends breaks off what it does. The turn is in memory and stored when that is closed, so the transcript
    and the dashboard have it too.
    """

    async def main() -> None:
        store = InMemoryTurnStore(fault=lambda name: Fault.HANGS if name == "append_turn" else None)
        seen: list[events.Event] = []
        async with Room(store=store) as room:
            recorder = a_recorder(room, seen.append)
            recording = asyncio.create_task(recorder.record_speech([spoken("one", ADA.id, "One.")]), name="recording")
            await asyncio.sleep(1.0)
            recording.cancel()
            await asyncio.wait({recording})
            assert recording.cancelled()
            (told,) = seen
            assert isinstance(told, events.TurnRecorded)
            assert told.turn.parts[0].text == "One."
            store.fault = None
        assert [operation for operation in store.operations if operation == "append_turn"] == ["append_turn"] * 2
        assert (await store.load(room.session_id)).window == (told.turn,)

    run_virtually(main())


class _SlowPlace(FakePlace):
    """Discord takes no message."""

    async def write(self, sentence: Text) -> None:
        del sentence
        await asyncio.Event().wait()


def test_a_turn_that_is_not_stored_is_told_of_although_discord_stalls() -> None:
    """The channel is told that the store fails. Whoever listens to turns does not wait for that."""

    async def main() -> None:
        seen: list[events.Event] = []
        async with Room(store=_Slow()) as room:
            recorder = a_recorder(room, seen.append, _SlowPlace(people=[ADA, BO]))
            recording = asyncio.create_task(recorder.record_speech([spoken("one", ADA.id, "One.")]), name="recording")
            await asyncio.sleep(2.0)
            recording.cancel()
            await asyncio.wait({recording})
        assert [type(event) for event in seen] == [events.TurnRecorded, events.Problem]

    run_virtually(main())
