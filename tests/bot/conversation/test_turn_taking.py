"""What people say becomes turns, and each turn is answered or not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot import events
from bot.brain.decider import Decision, Reason
from bot.brain.question import Spoken
from bot.brain.unanswered import UnansweredQuestions
from bot.channel.participants import Participants
from bot.conversation.turn_recorder import TurnRecorder
from bot.conversation.turn_taking import TurnTaking
from bot.dropped_sounds import OPTED_OUT
from bot.words import Words
from tests.bot.conversation.utterances import spoken
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from voice.listening.pause import PauseVerdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from bot.brain.question import Question
    from bot.events import SpokenText
    from compaction.session import SessionTimeline

ANSWER, SILENCE = Decision(answer=True, reason=Reason.WAKE_NAME), Decision(answer=False, reason=Reason.NOT_ADDRESSED)


class Scene:
    """A room's turn-taking between its real memory and what the test decides. `decision`: about everything that is
    said; `out`: who may not be heard. It stands for the replier too.
    """

    def __init__(self, timeline: SessionTimeline) -> None:
        self.decision = ANSWER
        self.out: set[int] = set()
        self.words = Words(lambda user_id: user_id in self.out)
        self.speaking = False
        self.answers_in_speech = False
        self.silence_wanted = False
        # Whether a reply can be held, and what its release gives.
        self.holds = True
        self.sounds = PauseVerdict.SOUNDING
        self.unanswered = UnansweredQuestions(self.words)
        # Questions to which a reply is held.
        self.held: list[Spoken] = []
        self.asked: list[Question] = []
        self.seen: list[events.Event] = []
        # The utterances whose replies were withdrawn.
        self.withdrawn: list[str | None] = []
        self.decided: tuple[str, Decision] | None = None
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
                Participants(channel, self.words),
                own_name="Roomtone",
                clock=self.clock,
                observe=self.seen.append,
            ),
            replier=itself,
            ask=self.asked.append,
            reply_language=lambda spoken: {ADA.id: "en", BO.id: "de"}[spoken.user_id],
            clock=self.clock,
            observe=self.seen.append,
        )

    def begun_by(self, user_id: int, *, ended_at: float) -> Spoken | None:
        return self.unanswered.continued_by(user_id, ended_at=ended_at)

    async def wait_until_recorded(self, *, within_s: float) -> None:
        assert within_s > 0
        self.meanwhile()

    def choose_utterance(
        self,
        group: Sequence[SpokenText],
        *,
        decided: tuple[str, Decision] | None,
        begun: Mapping[str, Decision],
    ) -> tuple[SpokenText, Decision]:
        self.decided = decided
        for_bot = all("Roomtone" in each.text for each in group)
        return group[-1], replace(
            self.preview_decision(group[-1], begun=begun.get(group[-1].utterance.id)), for_bot=for_bot
        )

    def withdraw(self, reason: str, *, utterance_id: str | None) -> None:
        assert reason
        self.withdrawn.append(utterance_id)

    def preview_decision(self, _spoken: SpokenText, *, begun: Decision | None) -> Decision:
        """Decide as about what is over. Who goes on is answered."""
        return self.decision if begun is None else replace(begun, goes_on=True)

    def confirm(self, decision: Decision, _user_id: int, *, started_at: float) -> Decision:
        del started_at
        return decision

    def asks_for_silence(self, _user_id: int, _text: str) -> bool:
        return self.silence_wanted

    def hold(self, question: Spoken) -> bool:
        if self.holds:
            self.held.append(question)
        return self.holds

    def release(self) -> PauseVerdict:
        if self.sounds is not PauseVerdict.HELD:
            # From then on the bot is busy, and answers nothing that does not call it.
            self.decision = SILENCE
        return self.sounds

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    """Open a room's memory."""
    async with Room() as room:
        yield Scene(room.timeline)


async def test_a_group_becomes_one_turn_and_the_chosen_speaker_is_answered() -> None:
    """The question names who asked, and in which language."""
    async with a_scene() as scene:
        await scene.taking().on_group((spoken("one", ADA.id, "Wait."), spoken("two", BO.id, "Roomtone, when is it?")))
        kinds = [type(event) for event in scene.seen]
        assert kinds == [events.TurnRecorded, events.TurnDecided]
        (turn,) = scene.timeline.turns
        assert [(part.speaker, part.text) for part in turn.parts] == [("Ada", "Wait."), ("Bo", "Roomtone, when is it?")]
        (question,) = scene.asked
        assert question == Spoken(turn, "two", 99.5, BO.id, ANSWER, "de")


@pytest.mark.parametrize(
    ("said", "called"),
    [
        (["Roomtone, stop recording."], True),
        (["Roomtone, when is it?", "Roomtone?"], True),
        (["At nine.", "Roomtone, when is it?"], False),
        (["At nine."], False),
    ],
)
async def test_a_turn_that_is_all_for_the_bot_is_marked(said: list[str], called: bool) -> None:
    """What people say beside that to each other is kept as talk."""
    async with a_scene() as scene:
        group = tuple(spoken(str(at), (ADA.id, BO.id)[at % 2], text) for at, text in enumerate(said))
        await scene.taking().on_group(group)
        assert [turn.called for turn in scene.timeline.turns] == [called]


async def test_a_turn_that_is_not_answered_ends_what_was_prepared() -> None:
    """It is recorded all the same."""
    async with a_scene() as scene:
        scene.decision = SILENCE
        await scene.taking().on_group((spoken("one", ADA.id, "See you at nine."),))
        assert (len(scene.timeline.turns), scene.asked, scene.withdrawn) == (1, [], ["one"])
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
        assert scene.withdrawn == ["one"]
        await scene.taking().on_group((spoken("three", ADA.id, "And another thing."),))
        assert len(scene.timeline.turns) == len(scene.of(events.TurnDecided)) == 1


async def test_a_sound_that_repeats_the_last_turn_is_neither_recorded_nor_decided() -> None:
    """People laugh on."""
    async with a_scene() as scene:
        for utterance_id in ("one", "two"):
            await scene.taking().on_group((spoken(utterance_id, ADA.id, "[laughter]"),))
        assert len(scene.timeline.turns) == len(scene.of(events.TurnDecided)) == 1


HELD, DUE, UNANSWERED = PauseVerdict.HELD, PauseVerdict.DUE, PauseVerdict.UNANSWERED


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, HELD),
        ({"decision": SILENCE}, UNANSWERED),
        # The bot answers another question, or somebody else's comes first.
        ({"holds": False}, DUE),
        # Whoever speaks over the bot is not kept waiting, whatever they say.
        ({"speaking": True}, DUE),
        ({"speaking": True, "decision": SILENCE}, DUE),
        # Nothing of an answer may sound.
        ({"silence_wanted": True}, DUE),
        # Speech-to-speech takes what is over.
        ({"answers_in_speech": True}, DUE),
        ({"answers_in_speech": True, "decision": SILENCE}, UNANSWERED),
    ],
)
async def test_what_would_become_of_the_words_of_a_pause(change: dict[str, object], verdict: PauseVerdict) -> None:
    """A reply begins for whoever would be answered, and nothing is recorded."""
    async with a_scene() as scene:
        for name, value in change.items():
            setattr(scene, name, value)
        assert scene.taking().preview(spoken("one", ADA.id, "Roomtone, when is it?"), ()) is verdict
        assert scene.timeline.turns == ()
        assert [question.utterance_id for question in scene.held] == ["one"] * (verdict is HELD)


async def test_a_reply_knows_what_others_said_in_the_same_turn() -> None:
    """It has begun before the turn is recorded. Who opted out meanwhile is not in it."""
    async with a_scene() as scene:
        scene.out = {ADA.id}
        beside = (spoken("two", BO.id, "I bring the ladder."), spoken("three", ADA.id, "I bring the saw."))
        assert scene.taking().preview(spoken("one", BO.id, "Roomtone, who brings it?"), beside) is HELD
        (question,) = scene.held
        assert [part.text for part in question.turn.parts] == ["I bring the ladder. Roomtone, who brings it?"]


async def test_words_that_nobody_can_read_are_not_acted_on() -> None:
    """They end after the long silence, unless the bot is spoken over."""
    async with a_scene() as scene:
        assert scene.taking().preview(None, ()) is UNANSWERED
        scene.speaking = True
        assert scene.taking().preview(None, ()) is DUE


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, PauseVerdict.SOUNDING),
        # The reply waits for the end, or is not ready; or nobody wants it any more.
        ({"sounds": PauseVerdict.DUE}, DUE),
        ({"sounds": PauseVerdict.HELD}, HELD),
        ({"decision": SILENCE}, UNANSWERED),
        ({"speaking": True}, DUE),
    ],
)
async def test_a_release_looks_again(change: dict[str, object], verdict: PauseVerdict) -> None:
    """What sounds is recorded with the decision that let it sound, whatever is decided about the group."""
    async with a_scene() as scene:
        taking, words = scene.taking(), spoken("one", ADA.id, "Roomtone, when is it?")
        for name, value in change.items():
            setattr(scene, name, value)
        assert taking.release(words, ()) is verdict
        await taking.on_group((words,))
        is_begun = verdict is PauseVerdict.SOUNDING or scene.sounds is PauseVerdict.DUE
        assert scene.decided == (("one", ANSWER) if is_begun else None)
