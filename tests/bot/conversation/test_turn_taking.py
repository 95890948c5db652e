"""What people say becomes turns, and each turn is answered or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot import events
from bot.brain.decider import Reason
from bot.brain.reply_life import ReplyStage, Stop
from bot.dropped_sounds import OPTED_OUT
from tests.bot.brain.replying import FIRST, Speaker
from tests.bot.conversation.talk_scene import TalkScene, a_scene
from tests.bot.conversation.utterances import spoken
from tests.fakes.brain import until
from tests.fakes.room_channel import ADA, BO
from voice.listening.pause import PauseVerdict


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[TalkScene]:
    """A room whose model has one answer."""
    async with a_scene() as opened:
        yield opened


async def test_a_group_becomes_one_turn_and_the_chosen_speaker_is_answered(scene: TalkScene) -> None:
    """The question names who asked, and in which language."""
    await scene.taking.on_group((spoken("one", ADA.id, "Wait."), spoken("two", BO.id, "Roomtone, when is it?")))
    assert [type(event) for event in scene.seen] == [events.TurnRecorded, events.TurnDecided]
    (turn,) = scene.timeline.turns
    assert [(part.speaker, part.text) for part in turn.parts] == [("Ada", "Wait."), ("Bo", "Roomtone, when is it?")]
    (question,) = scene.asked
    assert (question.turn, question.utterance_id, question.asker_id) == (turn, "two", BO.id)  # type: ignore[union-attr]
    assert (question.decision.reason, question.language) == (Reason.WAKE_NAME, "de")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("said", "called"),
    [
        (["Roomtone, stop recording."], True),
        (["Roomtone, when is it?", "Roomtone?"], True),
        (["At nine.", "Roomtone, when is it?"], False),
        (["At nine."], False),
    ],
)
async def test_a_turn_that_is_all_for_the_bot_is_marked(scene: TalkScene, said: list[str], called: bool) -> None:
    """What people say beside that to each other is kept as talk."""
    group = tuple(spoken(str(at), (ADA.id, BO.id)[at % 2], text) for at, text in enumerate(said))
    await scene.taking.on_group(group)
    assert [turn.called for turn in scene.timeline.turns] == [called]


async def test_a_turn_that_is_not_answered_ends_what_was_prepared(scene: TalkScene) -> None:
    """It is recorded all the same."""
    assert scene.taking.preview(spoken("one", ADA.id, "Roomtone, see you"), ()) is PauseVerdict.HELD
    await scene.taking.on_group((spoken("one", ADA.id, "See you at nine."),))
    assert (len(scene.timeline.turns), scene.asked, scene.replier.stage_of("one")) == (1, [], None)
    (decided,) = scene.decided
    assert (decided.answers, decided.reason) == (False, Reason.NOT_ADDRESSED.value)


async def test_who_opts_out_while_their_words_wait_is_not_recorded(scene: TalkScene) -> None:
    """A turn waits until the reply that it interrupted is recorded. What is dropped then is told, without its words."""
    await scene.until_speaking()
    scene.replier.stop_current(Stop.INTERRUPTED)
    group = (spoken("one", ADA.id, "Never mind."), spoken("two", BO.id, "Yes."))
    taken = asyncio.create_task(scene.taking.on_group(group), name="group")
    await asyncio.sleep(0)
    await scene.opt_out(ADA)
    await taken
    (turn,) = scene.timeline.turns
    assert [part.speaker for part in turn.parts] == ["Bo"]
    (dropped,) = (event for event in scene.seen if isinstance(event, events.SpeechDropped))
    assert (dropped.utterance_id, dropped.reason, dropped.text) == ("one", OPTED_OUT, "")
    await scene.taking.on_group((spoken("three", ADA.id, "And another thing."),))
    assert len(scene.timeline.turns) == len(scene.decided) == 1


async def test_a_sound_that_repeats_the_last_turn_is_neither_recorded_nor_decided(scene: TalkScene) -> None:
    """People laugh on."""
    for utterance_id in ("one", "two"):
        await scene.taking.on_group((spoken(utterance_id, ADA.id, "[laughter]"),))
    assert len(scene.timeline.turns) == len(scene.decided) == 1


HELD, DUE, UNANSWERED = PauseVerdict.HELD, PauseVerdict.DUE, PauseVerdict.UNANSWERED
CALLS, TALKS = "Roomtone, when is it?", "See you at nine."


@pytest.mark.parametrize(
    ("text", "meanwhile", "verdict"),
    [
        (CALLS, "", HELD),
        (TALKS, "", UNANSWERED),
        (None, "", UNANSWERED),
        # The answer to another question comes first.
        (CALLS, "busy", DUE),
        # Whoever speaks over the bot is not kept waiting, whatever they say.
        (CALLS, "speaking", DUE),
        (TALKS, "speaking", DUE),
        (None, "speaking", DUE),
        # Nothing of an answer may sound.
        ("Roomtone, be quiet.", "", DUE),
        # Speech-to-speech takes what is over.
        (CALLS, "speech-to-speech", DUE),
        (TALKS, "speech-to-speech", UNANSWERED),
        # Who was forgotten meanwhile.
        (CALLS, "forgotten", UNANSWERED),
    ],
)
async def test_what_would_become_of_the_words_of_a_pause(
    text: str | None, meanwhile: str, verdict: PauseVerdict
) -> None:
    """A reply begins for whoever would be answered, and nothing is recorded."""
    async with a_scene(speaker=Speaker() if meanwhile == "speech-to-speech" else None) as scene:
        if meanwhile == "busy":
            scene.replier.ask(FIRST)
        elif meanwhile == "speaking":
            await scene.until_speaking()
        elif meanwhile == "forgotten":
            scene.participation.words.take_back({str(ADA.id)}, turns=False)
        assert scene.taking.preview(None if text is None else spoken("one", ADA.id, text, at=-1.0), ()) is verdict
        assert scene.timeline.turns == ()
        assert (scene.replier.stage_of("one") is not None) is (verdict is HELD)


async def test_a_reply_knows_what_others_said_in_the_same_turn(scene: TalkScene) -> None:
    """It has begun before the turn is recorded. Who opted out meanwhile is not in it."""
    await scene.opt_out(ADA)
    beside = (spoken("two", BO.id, "I bring the ladder."), spoken("three", ADA.id, "I bring the saw."))
    words = spoken("one", BO.id, "Roomtone, who brings it?")
    assert scene.taking.preview(words, beside) is HELD
    await until(lambda: scene.replier.stage_of("one") is ReplyStage.READY)
    scene.taking.release(words, beside)
    question = scene.replier.released
    assert question is not None
    assert [part.text for part in question.turn.parts] == ["I bring the ladder. Roomtone, who brings it?"]


@pytest.mark.parametrize(
    ("pieces", "meanwhile", "verdict"),
    [
        (["At nine."], "", PauseVerdict.SOUNDING),
        # The reply is not ready; it is and has no sound; or nobody wants it any more.
        ([asyncio.Event()], "", HELD),
        (["At nine."], "hoarse", DUE),
        (["At nine."], "silenced", UNANSWERED),
    ],
)
async def test_a_release_looks_again(pieces: list[str | asyncio.Event], meanwhile: str, verdict: PauseVerdict) -> None:
    """What sounds is recorded with the decision that let it sound: a later one would find the bot busy."""
    async with a_scene(*pieces) as scene:
        # A question to the room: a busy bot leaves it to people.
        words, is_ready = spoken("one", ADA.id, "When does the concert in the park start?"), verdict is not HELD
        scene.bench.voice.mute = {"At nine."} if meanwhile == "hoarse" else set()
        assert scene.taking.preview(words, ()) is HELD
        await until(lambda: scene.replier.stage_of("one") is (ReplyStage.READY if is_ready else ReplyStage.BEGUN))
        if meanwhile == "silenced":
            scene.participation.be_quiet(5, BO.id)
        assert scene.taking.release(words, ()) is verdict
        assert (scene.replier.released is not None) is (verdict in {PauseVerdict.SOUNDING, DUE})
        await scene.taking.on_group((words,))
        assert [decided.answers for decided in scene.decided] == [verdict is not UNANSWERED]
