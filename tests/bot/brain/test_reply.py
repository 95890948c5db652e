"""How a reply is carried out: order, failures, newer questions, SKIP, speech-to-speech, and what counts as heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bot.brain import replier
from bot.brain.context import ModelContext
from bot.brain.decider import Reason
from bot.brain.question import Question, Remark
from bot.brain.replier import ONE_MOMENT, TOO_SLOW
from bot.brain.reply_life import Stop
from bot.brain.responder import CutOffError
from bot.brain.speech_output import BLOCKED, BROKEN_OFF, MODEL_BROKE_OFF, MODEL_FAILED
from bot.llm.port import NO_WORDS, ChatModelError
from bot.texts.text import Text, in_language
from compaction.errors import ContextOverflowError, StoreError
from tests.bot.brain.replying import FIRST, SECOND, THIRD, TIMEOUT_S, ReplyBench, Speaker
from tests.fakes.brain import FRAMES_A_WORD, ScriptedResponder, until
from tests.fakes.loop_time import loop_turns, pass_loop_time
from tests.fakes.questions import perhaps
from tests.patience import PATIENCE_S
from voice.errors import RealtimeError
from voice.speaking.playback import QUEUE_PIECES


async def test_an_answer_is_spoken_sentence_by_sentence() -> None:
    """Each sentence is spoken as soon as the stream completes it, and a reply played to its end counts as heard in
    full.
    """
    bench = ReplyBench(ScriptedResponder("Bo brings ", "the lantern. He ", "said so. Twi", "ce"))
    reply = await bench.answered()
    assert bench.voice.spoken == ["Bo brings the lantern.", "He said so.", "Twice"]
    assert (reply.text, reply.interrupted) == ("Bo brings the lantern. He said so. Twice", False)
    assert (reply.question, reply.first_audio_at, reply.failure) == (FIRST, 5.0, None)


async def test_the_first_sentence_sounds_while_the_model_still_thinks() -> None:
    """The first sentence is heard before the model's stream has ended."""
    thinking = asyncio.Event()
    bench = ReplyBench(ScriptedResponder("A first sentence. ", thinking, "A second."))
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bool(bench.listener.frames))
        assert bench.voice.spoken == ["A first sentence."]
        thinking.set()
        reply = await bench.next_reply()
    assert reply.text == "A first sentence. A second."


async def test_the_model_is_read_while_a_sentence_is_spoken() -> None:
    """What the model does after its first words, such as calling a tool, does not wait for the sound of these words."""
    read, heard = asyncio.Event(), asyncio.Event()

    class Calling(ScriptedResponder):
        async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
            yield "One moment. "
            read.set()
            yield "It is Monday."

    bench = ReplyBench(Calling())
    bench.voice.waits["One moment.", 0] = heard
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        await read.wait()
        heard.set()
        reply = await bench.next_reply()
    assert reply.text == "One moment. It is Monday."


async def test_a_newer_question_takes_the_place_of_the_waiting_one() -> None:
    """While one question is answered, only the newest of the later questions stays waiting."""
    thinking = asyncio.Event()
    responder = ScriptedResponder("Yes. ", thinking)
    bench = ReplyBench(responder)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bool(responder.contexts))
        bench.replier.ask(SECOND)
        assert bench.replier.waiting == SECOND
        bench.replier.ask(THIRD)
        assert bench.replier.waiting == THIRD
        assert bench.replier.queue.dropped == {"superseded": 1}
        thinking.set()
        await bench.next_reply()
        await bench.next_reply()
    assert [reply.question for reply in bench.replies] == [FIRST, THIRD]


AWAY = ChatModelError("No model answers. Start it.", retryable=True)


@pytest.mark.parametrize(
    ("pieces", "heard", "failure"),
    [
        ((AWAY,), MODEL_FAILED, str(AWAY)),
        (("Bo brings it. And Cy br", AWAY), f"Bo brings it. {MODEL_BROKE_OFF}", str(AWAY)),
        ((asyncio.CancelledError(),), MODEL_FAILED, BROKEN_OFF),
        (("Bo brings it. ", "And C", asyncio.CancelledError()), f"Bo brings it. {MODEL_BROKE_OFF}", BROKEN_OFF),
        (("Bo brings it. And Cy br", CutOffError("length")), "Bo brings it.", None),
        (("Bo br", CutOffError("length")), "Bo br", None),
        (("<think>Who brings it? Per", CutOffError("length")), MODEL_FAILED, NO_WORDS),
        (("<think>Bo brings it.</think>",), MODEL_FAILED, NO_WORDS),
        (("```python\nprint(1)\n```\n",), MODEL_FAILED, NO_WORDS),
        (('<tool_call>{"name": "look", "arguments": {}}</tool_call>',), MODEL_FAILED, NO_WORDS),
        ((), MODEL_FAILED, NO_WORDS),
    ],
)
async def test_what_people_hear_and_read_of_an_answer_that_is_not_whole(
    pieces: tuple[str | BaseException, ...], heard: str, failure: str | None
) -> None:
    """Whole sentences are spoken, and an incomplete one only if there is no other. People hear that the answer or its
    rest is lost, and the reason is for the channel. An answer that the model cut off needs no apology.
    """
    bench = ReplyBench(ScriptedResponder(*pieces))
    reply = await bench.answered()
    assert (reply.text, reply.failure) == (heard, failure)


async def test_the_apology_is_spoken_in_the_servers_language() -> None:
    """On a German server the bot says in German that its model has failed; the reason keeps its sentence."""
    bench = ReplyBench(ScriptedResponder(ChatModelError(Text("This screen is no longer shared."), retryable=True)))
    bench.channel.language = "de"
    reply = await bench.answered()
    assert reply.text == in_language(MODEL_FAILED, "de") != MODEL_FAILED
    assert reply.failure is not None
    assert in_language(reply.failure, "de") == "Dieser Bildschirm wird nicht mehr geteilt."


async def test_what_the_voice_could_not_say_is_written() -> None:
    """Sentences that could not be synthesised are returned, so that the room can write them in the channel."""
    bench = ReplyBench(ScriptedResponder("Bo brings it. Cy sings."))
    bench.voice.mute = {"Bo brings it.", "Cy sings."}
    reply = await bench.answered()
    assert reply.text == ""
    assert reply.failure == "The voice is hoarse. Give it tea."
    assert reply.unsaid == "Bo brings it. Cy sings."


async def test_an_answer_that_does_not_begin_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If an answer does not begin in time, it is given up and the next question is answered."""
    never = asyncio.Event()
    responder = ScriptedResponder(never)
    bench = ReplyBench(responder)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bool(responder.contexts))
        pass_loop_time(monkeypatch, TIMEOUT_S)
        assert (await bench.next_reply()).failure == TOO_SLOW
        responder.pieces = ("Here I am.",)
        bench.replier.ask(SECOND)
        assert (await bench.next_reply()).text == "Here I am."


@pytest.mark.parametrize(
    ("then", "heard"), [("Yes.", "Yes."), (AWAY, MODEL_FAILED), ("<think>Who brings it?</think>", MODEL_FAILED)]
)
async def test_who_has_to_wait_for_a_model_hears_that(
    monkeypatch: pytest.MonkeyPatch, then: str | Exception, heard: str
) -> None:
    """In the language of the server, before the answer or its failure, which is told as without it. Nobody hears it who
    has not asked.
    """
    moment = in_language(ONE_MOMENT, "de")
    for question, before in ((FIRST, f"{moment} "), (perhaps(SECOND), "")):
        thinking = asyncio.Event()
        responder = ScriptedResponder(thinking, then)
        bench = ReplyBench(responder)
        bench.channel.language = "de"
        with monkeypatch.context() as patched:
            patched.setattr(replier, "ONE_MOMENT_AFTER_S", 3.0)
            async with bench.listener.listening(), bench.running():
                bench.replier.ask(question)
                await until(lambda responder=responder: bool(responder.contexts))  # type: ignore[misc]
                pass_loop_time(patched, replier.ONE_MOMENT_AFTER_S)
                if before:
                    await until(lambda bench=bench: bool(bench.voice.spoken))  # type: ignore[misc]
                thinking.set()
                reply = await bench.next_reply()
        assert reply.text.startswith(before)
        assert before or moment not in reply.text
        if before:
            assert reply.text == before + in_language(heard, "de")


async def test_a_context_that_cannot_be_made_is_told() -> None:
    """If it is too large, the bot says aloud what to do and reports the figures in writing, whether the context or the
    model's budget found it. If the memory cannot be read, that is only reported.
    """
    overflow = ContextOverflowError(current=900, maximum=800)
    before = ReplyBench(ScriptedResponder("Hello."))
    before.error = overflow
    for bench in (before, ReplyBench(ScriptedResponder(overflow))):
        reply = await bench.answered()
        assert reply.text == ContextOverflowError.people
        assert reply.failure == str(overflow)
        assert "900" in reply.failure
    before.error = StoreError("The disk is full. Make room.")
    async with before.running():
        before.replier.ask(FIRST)
        reply = await before.next_reply()
    assert (reply.text, reply.failure) == ("", "The disk is full. Make room.")


async def test_what_is_cancelled_inside_costs_one_answer() -> None:
    """If a task that the reply awaits is cancelled, the replier goes on with the next question."""
    bench = ReplyBench(ScriptedResponder("Yes."))
    bench.error = asyncio.CancelledError()
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        assert (await bench.next_reply()).failure == BROKEN_OFF
        bench.error = None
        bench.replier.ask(SECOND)
        assert (await bench.next_reply()).text == "Yes."


async def test_a_replier_that_is_cancelled_in_the_middle_of_a_reply_ends() -> None:
    """If it took that for the failure of a part, its room would never close."""
    bench = ReplyBench(ScriptedResponder("One. ", asyncio.Event()))
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bool(bench.voice.spoken))


async def test_shut_down_in_the_middle_records_only_what_was_heard() -> None:
    """At shutdown the reply is recorded as interrupted with the whole words that were heard, and the waiting question
    is dropped.
    """
    bench = ReplyBench(ScriptedResponder("One two three four five six seven eight."))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bool(bench.playback.speaking))
        bench.listener.pull(4 * FRAMES_A_WORD)
        bench.replier.ask(SECOND)
        await bench.replier.shut_down(within_s=PATIENCE_S)
    assert len(bench.replies) == 1
    reply = bench.replies[0]
    assert (reply.text, reply.interrupted, reply.failure) == ("One two three four", True, None)


async def test_what_cannot_be_spoken_is_left_out() -> None:
    """Markup, code and directives are neither spoken nor remembered. Pronunciations affect only what the voice gets."""
    bench = ReplyBench(
        ScriptedResponder("**GG** 😀. \n```\nrun()\n```\nSee https://a.example/x. [SKIP]"), GG="good game"
    )
    reply = await bench.answered()
    assert bench.voice.spoken == ["good game.", "See the link."]
    assert (reply.text, reply.failure) == ("GG. See the link.", None)


async def test_an_interrupted_answer_is_over_and_what_waits_is_answered() -> None:
    """An interrupted reply is recorded with the heard words and no failure, and then the waiting question
    is answered.
    """
    thinking = asyncio.Event()
    responder = ScriptedResponder("One two three four. ", thinking, "Five.")
    bench = ReplyBench(responder)
    async with bench.running():
        bench.replier.ask(FIRST)
        assert not bench.replier.speaking
        await until(lambda: bench.replier.speaking)
        bench.listener.pull(4)
        bench.replier.ask(SECOND)
        responder.pieces = ("Yes.",)
        bench.replier.stop_current(Stop.INTERRUPTED)
        await bench.replier.wait_until_recorded(within_s=PATIENCE_S)
        (reply,) = bench.replies
        assert (reply.text, reply.interrupted, reply.failure) == ("One two", True, None)
        async with bench.listener.listening():
            await until(lambda: len(bench.replies) == 2)
    assert (bench.replies[1].question, bench.replies[1].text, bench.replies[1].interrupted) == (SECOND, "Yes.", False)
    assert bench.voice.spoken == ["One two three four.", "Yes."]


async def test_an_answer_whose_words_are_all_queued_can_be_interrupted() -> None:
    """A reply can be interrupted while its sound plays, after the model has finished."""
    bench = ReplyBench(ScriptedResponder("One two three four."))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.replier.speaking)
        bench.listener.pull(6)
        bench.replier.stop_current(Stop.INTERRUPTED)
        bench.replier.stop_current(Stop.INTERRUPTED)
        reply = await bench.next_reply()
        assert (reply.text, reply.interrupted, reply.failure) == ("One two three", True, None)
        await until(lambda: not bench.replier.busy)
        bench.replier.stop_current(Stop.INTERRUPTED)
        await bench.replier.wait_until_recorded(within_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("A violent thing.", BLOCKED),
        ("Some Rudeness here.", BLOCKED),
        ("These two words.", BLOCKED),
        ("An unclear thing.", "Nobody could check it. Look at the endpoint."),
    ],
)
async def test_what_must_not_be_said_is_left_out_and_told(sentence: str, told: str) -> None:
    """A blocked sentence is neither spoken, remembered nor written. The rest is spoken and the reason is reported."""
    bench = ReplyBench(ScriptedResponder(f"Bo brings it. {sentence} Cy sings."))
    reply = await bench.answered()
    assert bench.voice.spoken == ["Bo brings it.", "Cy sings."]
    assert (reply.text, reply.failure, reply.unsaid) == ("Bo brings it. Cy sings.", told, "")


DOUBTFUL = perhaps(FIRST)


@pytest.mark.parametrize("pieces", [("SKIP",), ("SK", "IP", "."), (" skip",), ("S", CutOffError("length")), ()])
async def test_what_is_nothing_is_not_spoken(pieces: tuple[str | Exception, ...]) -> None:
    """An answer of SKIP, or a part of it, is not spoken. The reply counts as skipped and not as failed."""
    bench = ReplyBench(ScriptedResponder(*pieces))
    reply = await bench.answered(DOUBTFUL)
    assert (reply.text, reply.failure, reply.first_audio_at, bench.voice.spoken) == ("", None, None, [])
    assert reply.skipped or isinstance(pieces[-1], CutOffError)


@pytest.mark.parametrize(
    "trouble",
    [
        AWAY,
        ContextOverflowError(current=900, maximum=512),
        StoreError("The disk is full. Make room."),
        asyncio.CancelledError(),
        TimeoutError(),
    ],
)
async def test_a_failure_that_nobody_waits_for_is_not_told(trouble: BaseException) -> None:
    """A reply that may be skipped and fails before its first word is silently skipped."""
    late = isinstance(trouble, TimeoutError)
    bench = ReplyBench(ScriptedResponder(asyncio.Event() if late else AWAY), timeout_s=0.05 if late else TIMEOUT_S)
    bench.error = None if isinstance(trouble, ChatModelError | TimeoutError) else trouble
    reply = await bench.answered(DOUBTFUL)
    assert (reply.failure, reply.skipped, bench.voice.spoken) == (None, True, [])


async def test_a_failure_in_the_middle_is_told_whoever_waits() -> None:
    """People have heard its beginning."""
    bench = ReplyBench(ScriptedResponder("It is green. And ", AWAY))
    reply = await bench.answered(DOUBTFUL)
    assert (reply.failure, reply.skipped) == (str(AWAY), False)
    assert reply.text == f"It is green. {MODEL_BROKE_OFF}"


async def test_silenced_it_breaks_off_and_forgets_what_waits() -> None:
    """A silence request stops the reply and drops the waiting question. A later question is answered again."""
    thinking = asyncio.Event()
    responder = ScriptedResponder("Yes. ", thinking)
    bench = ReplyBench(responder)
    async with bench.listener.listening(), bench.running():
        bench.replier.cancel_all("silenced")
        bench.replier.ask(FIRST)
        await until(lambda: bool(bench.listener.frames))
        bench.replier.ask(SECOND)
        bench.replier.cancel_all("silenced")
        assert bench.replier.waiting is None
        await bench.next_reply()
        await until(lambda: not bench.replier.busy)
        assert [reply.question for reply in bench.replies] == [FIRST]
        thinking.set()
        bench.replier.ask(SECOND)
        assert (await bench.next_reply()).question == SECOND


def _bench(speaker: Speaker) -> ReplyBench:
    return ReplyBench(ScriptedResponder("Otherwise."), speaker=speaker)


GONE = RealtimeError("It is away.")
REMARK = Remark(FIRST.turn, Reason.QUIET_ROOM)
UNHEARD = [(0.0, False)]


@pytest.mark.parametrize(
    ("question", "words", "text", "failure", "told", "spoken"),
    [
        pytest.param(FIRST, ("One", "two"), "One two", None, [(2.0, True)], [], id="it is played as it comes"),
        pytest.param(FIRST, (GONE,), "Otherwise.", None, UNHEARD, ["Otherwise."], id="it fails before any sound"),
        pytest.param(
            FIRST,
            ("One", GONE),
            f"One {MODEL_BROKE_OFF}",
            str(GONE),
            [(1.0, False)],
            [MODEL_BROKE_OFF],
            id="breaks off",
        ),
        pytest.param(FIRST, (), "Otherwise.", None, UNHEARD, ["Otherwise."], id="it says nothing to who asked"),
        pytest.param(DOUBTFUL, (), "", None, [(0.0, True)], [], id="it may say nothing"),
        pytest.param(REMARK, (GONE,), "", None, UNHEARD, [], id="nobody asked, and it fails"),
        pytest.param(DOUBTFUL, (GONE,), "Otherwise.", None, UNHEARD, ["Otherwise."], id="somebody asked"),
        pytest.param(REMARK, (asyncio.CancelledError(),), "", None, UNHEARD, [], id="a remark is cancelled inside"),
    ],
)
async def test_what_is_heard_of_it_and_what_the_model_is_told(
    question: Question,
    words: tuple[str | BaseException, ...],
    text: str,
    failure: str | None,
    told: list[tuple[float, bool]],
    spoken: list[str],
) -> None:
    """The responder answers if the model cannot, and somebody asked. Our own voice tells that a reply has broken off.
    The model is told how much was heard of its own sound.
    """
    speaker = Speaker(*words)
    bench = _bench(speaker)
    reply = await bench.answered(question)
    assert (reply.text, reply.failure, reply.skipped) == (text, failure, not text)
    assert (speaker.told, bench.voice.spoken) == (told, spoken)


async def test_who_talks_over_it_is_told_how_far_it_came() -> None:
    """After an interruption the model is sent the 1.5 s that were heard, and only the whole word is recorded."""
    speaker = Speaker("One", "two", "three")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.replier.speaking)
        await until(lambda: bench.playback.pieces.waiting > 1)
        bench.listener.pull(75)
        bench.replier.stop_current(Stop.INTERRUPTED)
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted) == ("One", True)
    assert speaker.told == [(1.5, False)]


async def test_an_answer_without_spaces_is_recorded_without_them() -> None:
    """What was heard until the interruption is one text, as it was said."""
    bench = _bench(Speaker("今天", "天气", "很好。", glued=True))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.playback.pieces.waiting == QUEUE_PIECES)
        bench.listener.pull(125)
        bench.replier.stop_current(Stop.INTERRUPTED)
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted) == ("今天天气", True)


@pytest.mark.parametrize("rest", [(), (RealtimeError("It is away."),)])
async def test_what_waited_for_room_is_not_heard_after_an_interruption(rest: tuple[RealtimeError, ...]) -> None:
    """Speech that waits until playback has room for it is not played when an interruption makes room. A reply that
    somebody has stopped excuses itself for nothing, whatever becomes of the model then.
    """
    bench = _bench(Speaker("One", "two", "three", "four", "five", "six", *rest))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.playback.pieces.waiting == QUEUE_PIECES)
        await loop_turns()
        bench.listener.pull(75)
        bench.replier.stop_current(Stop.INTERRUPTED)
        for _ in range(10):
            bench.listener.pull(10)
            await asyncio.sleep(0)
        reply = await bench.next_reply()
    assert (reply.text, bench.listener.frames, bench.voice.spoken) == ("One", 75, [])


async def test_one_that_is_given_up_in_the_middle_is_told_of_elsewhere() -> None:
    """If speech-to-speech is given up in mid-reply, the reply reports no failure of its own in writing, because the end
    of speech-to-speech is already reported elsewhere. Who listens is told aloud.
    """
    speaker = Speaker("One", RealtimeError("It is away."), gone_after=True)
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
        assert (reply.text, reply.failure) == (f"One {MODEL_BROKE_OFF}", None)
        bench.replier.ask(FIRST)
        assert (await bench.next_reply()).text == "Otherwise."


async def test_words_that_the_server_forbids_are_not_heard() -> None:
    """A reply ends before a blocked word, with what is queued of it; the model is told, and so is the channel."""
    speaker = Speaker("One", "two", "rudely", "four")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
        bench.listener.pull(200)
    assert (reply.text, reply.failure) == ("", BLOCKED)
    assert speaker.told == [(0.0, False)]
    assert bench.listener.frames == 0
    assert bench.voice.spoken == []
