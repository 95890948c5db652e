"""Events of a room become turns, and each call returns its own turn even if the store fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast
from unittest.mock import Mock

import pytest

from bot import events
from bot.background_task import owned_task
from bot.brain.reply import Reply
from bot.channel.markdown import in_message
from bot.channel.participants import Participants
from bot.conversation.reminding import Reminding
from bot.conversation.turn_recorder import UNSPOKEN, FailureMessages, ReplyRecorder, TurnRecorder
from bot.texts.text import Text, verbatim
from bot.words import SESSION, Words
from compaction.errors import StoreError
from compaction.model import Seq, SessionId, Turn, TurnKind
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from tests.bot.channel.discord_rendering import shown
from tests.bot.channel.hostile import HOSTILE
from tests.bot.conversation.talk_scene import a_scene
from tests.bot.conversation.utterances import spoken
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.clock import FakeClock
from tests.fakes.questions import asked
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault


class _Slow(InMemoryTurnStore):
    """A store that waits for a second and then fails."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        await asyncio.sleep(1.0)
        raise StoreError("It is locked.")


def a_recorder(
    room: Room, observe: events.Observer = events.ignore_event, channel: FakeRoomChannel | None = None
) -> TurnRecorder:
    """Return a recorder in a channel with Ada and Bo."""
    channel = channel or FakeRoomChannel(people=[ADA, BO])
    return TurnRecorder(
        room.timeline,
        Participants(channel, Words()),
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
        store = InMemoryTurnStore(fault=lambda name: StoreFault.HANGS if name == "append_turn" else None)
        async with Room(store=store) as room:
            recorder = a_recorder(room)
            await recorder.record_speech([spoken("one", ADA.id, "One.")])
            begun = asyncio.get_running_loop().time()
            for number in range(5):
                await recorder.record_speech([spoken(str(number), BO.id, f"Number {number}.")])
            assert asyncio.get_running_loop().time() == begun
            store.fault = None
            await room.timeline.store_queue.flush()
            assert (await store.load(room.session_id)).total_turns == 6

    run_virtually(main())


def test_a_turn_whose_storing_is_broken_off_is_told_of_all_the_same() -> None:
    """A room that ends breaks off what it does. The turn is in memory and stored when that is closed, so the transcript
    and the dashboard have it too.
    """

    async def main() -> None:
        store = InMemoryTurnStore(fault=lambda name: StoreFault.HANGS if name == "append_turn" else None)
        seen: list[events.Event] = []
        async with Room(store=store) as room:
            recorder = a_recorder(room, seen.append)
            one = recorder.record_speech([spoken("one", ADA.id, "One.")])
            async with owned_task(one, name="recording") as recording:
                await asyncio.sleep(1.0)
            assert recording.cancelled()
            (told,) = seen
            assert isinstance(told, events.TurnRecorded)
            assert told.turn.parts[0].text == "One."
            store.fault = None
        assert [operation for operation in store.operations if operation == "append_turn"] == ["append_turn"] * 2
        assert (await store.load(room.session_id)).window == (told.turn,)

    run_virtually(main())


def test_each_utterance_begins_when_its_speaker_does() -> None:
    """Whether somebody was forgotten before they said it does not depend on what else is said in the turn."""

    async def main() -> None:
        async with Room() as room:
            group = [spoken("one", ADA.id, "One.", at=97.0), spoken("two", BO.id, "Two.", at=99.0)]
            turn = a_recorder(room).preview_speech([*group, spoken("three", BO.id, "Three.", at=99.4)])
            begun = [[said.began_at - turn.started_at for said in part.utterances] for part in turn.parts]
            assert begun == [[0.0], [pytest.approx(2.0), pytest.approx(2.4)]]
            assert [part.text for part in turn.parts] == ["One.", "Two. Three."]
            assert [part.spoken_s for part in turn.parts] == [pytest.approx(2.5), pytest.approx(0.6)]

    run_virtually(main())


class _SlowRoomChannel(FakeRoomChannel):
    """Discord takes no message."""

    async def write(self, sentence: Text) -> None:
        await asyncio.Event().wait()


def test_a_turn_that_is_not_stored_is_told_of_although_discord_stalls() -> None:
    """The channel is told that the store fails. Whoever listens to turns does not wait for that."""

    async def main() -> None:
        seen: list[events.Event] = []
        async with Room(store=_Slow()) as room:
            recorder = a_recorder(room, seen.append, _SlowRoomChannel(people=[ADA, BO]))
            async with owned_task(recorder.record_speech([spoken("one", ADA.id, "One.")]), name="recording"):
                await asyncio.sleep(2.0)
        assert [type(event) for event in seen] == [events.TurnRecorded, events.Problem]

    run_virtually(main())


AWAY = "The voice is away. Start it."
REFUSED = "The voice refused the key. Set another."


def reply(text: str = "", *, failure: str | None = None, unsaid: str = "") -> Reply:
    """Return a finished reply."""
    return Reply(
        question=asked(Turn(Seq(0), TurnKind.SPEECH, 0.0, 1.0, ())),
        text=text,
        interrupted=False,
        first_audio_at=1.0 if text else None,
        begun_at=0.5,
        lease=Words().lease({SESSION}, since=None),
        ended_at=2.0,
        model_first_token_ms=None,
        synthesis_first_audio_ms=None,
        failure=None if failure is None else verbatim(failure),
        unsaid=unsaid,
    )


def unspoken(words: str) -> str:
    return UNSPOKEN.fill(words=words)


def test_why_nothing_is_heard_is_told_once_and_the_words_each_time() -> None:
    """The voice's failure is reported once until a reply is heard in full or the reason changes. The unspoken words are
    written each time.
    """
    messages = FailureMessages()
    assert messages.format(reply(failure=AWAY, unsaid="It is red.")) == f"{AWAY}\n{unspoken('It is red.')}"
    assert messages.format(reply(failure=AWAY, unsaid="It is blue.")) == unspoken("It is blue.")
    assert messages.format(reply()) == ""
    assert messages.format(reply(failure=REFUSED, unsaid="It is new.")) == f"{REFUSED}\n{unspoken('It is new.')}"
    assert messages.format(reply("It is", failure=AWAY, unsaid="old.")) == unspoken("old.")
    assert messages.format(reply("It is green.")) == ""
    assert messages.format(reply(failure=AWAY, unsaid="It is red.")) == f"{AWAY}\n{unspoken('It is red.')}"


def test_why_nothing_was_heard_is_told_each_time_and_why_an_apology_was_heard_once() -> None:
    """Who hears nothing reads why each time. Of a model that is away for an evening people hear each time that it did
    not answer, and the channel has the reason once until a reply is spoken again.
    """
    messages, gone = FailureMessages(), "The model is away. Start it."
    for _ in range(2):
        assert messages.format(reply(failure=gone)) == gone
    assert messages.format(reply("Sorry, it did not answer.", failure=gone)) == ""
    assert messages.format(reply("Sorry, it did not answer.", failure=REFUSED)) == REFUSED
    assert messages.format(reply("It is green.")) == ""
    for written in (gone, "", ""):
        assert messages.format(reply("Sorry, it did not answer.", failure=gone)) == written


@pytest.mark.parametrize("words", HOSTILE)
def test_words_that_were_not_spoken_have_no_effect_in_the_message(words: str) -> None:
    """They are the model's, and may quote what somebody said or posted."""
    for text in ("", "It is"):
        message = FailureMessages().format(reply(text, failure=AWAY, unsaid=words))
        assert shown(in_message(message, "en")).rules == ()


async def test_a_failure_is_written_and_told_and_what_was_not_spoken_is_a_turn() -> None:
    """Words in the message are dropped with what somebody said who opts out while it waits; a bare reason tells of
    nobody.
    """
    async with a_scene() as scene:
        recorder = ReplyRecorder(
            scene.participation,
            scene.turn_recorder,
            cast("Reminding", Mock()),
            clock=scene.clock,
            observe=scene.seen.append,
        )
        lease = scene.participation.words.lease({SESSION}, since=None)
        for told in (reply(failure=AWAY, unsaid="Ada has a walrus."), reply(failure="The model is away.")):
            await recorder.record(replace(told, lease=lease))
        assert [turn.text for turn in scene.timeline.turns] == ["Ada has a walrus."]
        problems = [event.sentence for event in scene.seen if isinstance(event, events.Problem)]
        assert problems == [AWAY, "The model is away."]
        await scene.opt_out(ADA)
        async with owned_task(scene.participation.notices.run(), name="notices"):
            await scene.participation.notices.until_written()
        assert scene.channel.written == ["The model is away."]
