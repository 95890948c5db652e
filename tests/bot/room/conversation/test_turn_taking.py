"""What people say becomes turns, and each turn is answered or not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from bot import events
from bot.brain.decider import Decision, Reason
from bot.channel.participants import Participants
from bot.dropped_sounds import OPTED_OUT
from bot.room.conversation.turn_recorder import TurnRecorder
from bot.room.conversation.turn_taking import TurnTaking
from tests.compaction.rooms import Room
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.brain.reply import Question
    from bot.events import SpokenText
    from compaction.session import SessionTimeline

ANSWER, SILENCE = Decision(answer=True, reason=Reason.WAKE_NAME), Decision(answer=False, reason=Reason.NOT_ADDRESSED)


def spoken(utterance_id: str, user_id: int, text: str) -> SpokenText:
    """Return what somebody has said in the last two seconds."""
    utterance = Utterance(utterance_id, user_id, 98.0, 99.5, 99.8, np.zeros(0, np.int16))
    return events.SpokenText(utterance, Recognition(text, "en", -0.2, 1.0, 0.0, 1.5, 0.1), 99.8, 100.0)


class Scene:
    """A room's turn-taking between its real memory and what the test decides. `decision`: about everything that is
    said; `out`: who may not be heard.
    """

    def __init__(self, timeline: SessionTimeline) -> None:
        self.decision = ANSWER
        self.out: set[int] = set()
        self.busy = False
        self.may_prepare = True
        # Questions for which a reply is prepared.
        self.prepared: list[Question] = []
        self.asked: list[Question] = []
        self.seen: list[events.Event] = []
        # Why prepared replies were discarded.
        self.discarded: list[str] = []
        # Called while the reply that is interrupted is recorded.
        self.meanwhile: Callable[[], None] = lambda: None
        self.timeline = timeline
        self.clock = FakeClock()

    def taking(self) -> TurnTaking:
        """Return the turn-taking. The scene stands for all that decides and answers."""
        channel, itself = FakeRoomChannel(people=[ADA, BO]), cast("Any", self)
        return TurnTaking(
            participation=itself,
            turn_recorder=TurnRecorder(
                self.timeline,
                channel,
                Participants(channel),
                own_name="Roomtone",
                clock=self.clock,
                observe=self.seen.append,
            ),
            replier=itself,
            replies=itself,
            ask=self.asked.append,
            reply_language={ADA.id: "en", BO.id: "de"}.__getitem__,
            may_prepare=lambda: self.may_prepare,
            clock=self.clock,
            observe=self.seen.append,
        )

    async def wait_until_recorded(self, *, within_s: float) -> None:
        assert within_s > 0
        self.meanwhile()

    def drops(self, user_id: int, *, started_at: float) -> bool:
        assert started_at == 98.0
        return user_id in self.out

    def choose_utterance(self, group: Sequence[SpokenText]) -> tuple[SpokenText, Decision]:
        return group[-1], self.decision

    def discard(self, reason: str) -> None:
        self.discarded.append(reason)

    def preview_decision(self, _spoken: SpokenText) -> Decision:
        """Decide as about what is over."""
        return self.decision

    def start(self, question: Question) -> None:
        self.prepared.append(question)

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    """Open a room's memory."""
    async with Room() as room:
        yield Scene(room.timeline)


async def test_a_group_becomes_one_turn_and_the_chosen_speaker_is_answered() -> None:
    """The turn is recorded before it is decided, and the question names who asked, and in which language."""
    async with a_scene() as scene:
        await scene.taking().on_group((spoken("one", ADA.id, "Wait."), spoken("two", BO.id, "Roomtone, when is it?")))
        kinds = [type(event) for event in scene.seen]
        assert kinds == [events.TurnRecorded, events.TurnDecided]
        (turn,) = scene.timeline.turns
        assert [(part.speaker, part.text) for part in turn.parts] == [("Ada", "Wait."), ("Bo", "Roomtone, when is it?")]
        (question,) = scene.asked
        assert (question.turn, question.utterance_id, question.asker_id) == (turn, "two", str(BO.id))
        assert (question.reason, question.ended_at, question.language) == (Reason.WAKE_NAME, 99.5, "de")


async def test_a_turn_that_is_not_answered_ends_what_was_prepared() -> None:
    """It is recorded all the same."""
    async with a_scene() as scene:
        scene.decision = SILENCE
        await scene.taking().on_group((spoken("one", ADA.id, "See you at nine."),))
        assert (len(scene.timeline.turns), scene.asked, scene.discarded) == (1, [], ["not_answered"])
        (decided,) = scene.of(events.TurnDecided)
        assert (decided.answers, decided.reason) == (False, Reason.NOT_ADDRESSED.value)


async def test_who_opts_out_while_their_words_wait_is_not_recorded() -> None:
    """A turn waits until the reply that it interrupted is recorded. What is dropped then is told, without its words."""
    async with a_scene() as scene:
        scene.meanwhile = lambda: scene.out.add(ADA.id)
        await scene.taking().on_group((spoken("one", ADA.id, "Never mind."), spoken("two", BO.id, "Yes.")))
        (turn,) = scene.timeline.turns
        assert [part.speaker for part in turn.parts] == ["Bo"]
        (dropped,) = scene.of(events.SpeechDropped)
        assert (dropped.utterance_id, dropped.reason, dropped.text) == ("one", OPTED_OUT, "")
        await scene.taking().on_group((spoken("three", ADA.id, "And another thing."),))
        assert len(scene.timeline.turns) == len(scene.of(events.TurnDecided)) == 1


async def test_a_sound_that_repeats_the_last_turn_is_neither_recorded_nor_decided() -> None:
    """People laugh on."""
    async with a_scene() as scene:
        for utterance_id in ("one", "two"):
            await scene.taking().on_group((spoken(utterance_id, ADA.id, "[laughter]"),))
        assert len(scene.timeline.turns) == len(scene.of(events.TurnDecided)) == 1


@pytest.mark.parametrize(
    ("text", "likely_finished", "change", "prepared"),
    [
        ("Roomtone, when is it?", True, {}, True),
        # Somebody who does not sound or read finished.
        ("Roomtone, when is it?", False, {}, False),
        ("Roomtone, when is the", True, {}, False),
        ("Roomtone, when is it...", True, {}, False),
        # The bot still answers another question, or the operator wants no reply begun early.
        ("Roomtone, when is it?", True, {"busy": True}, False),
        # Nothing will be answered.
        ("Roomtone, when is it?", True, {"decision": SILENCE}, False),
        ("Roomtone, when is it?", True, {"may_prepare": False}, False),
        ("Roomtone, when is it?", True, {"out": {ADA.id}}, False),
    ],
)
async def test_what_is_prepared_in_a_pause(
    text: str, likely_finished: bool, change: dict[str, object], prepared: bool
) -> None:
    """A reply begins for whoever will be answered and seems to have finished."""
    async with a_scene() as scene:
        for name, value in change.items():
            setattr(scene, name, value)
        scene.taking().on_tentative(spoken("one", ADA.id, text), likely_finished)
        assert bool(scene.prepared) == prepared
        assert scene.timeline.turns == ()
        for question in scene.prepared:
            assert (question.turn.parts[0].text, question.asker_id) == (text, str(ADA.id))
