"""The answers of the speech-to-speech model: spoken, talked over, forbidden, skipped, or gone on with after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import pytest

from compaction.errors import StoreError
from compaction.model import TurnKind
from compaction.payload import PartKind
from tests.bot.realtime.bridge_scene import BridgeDesk, remembered
from tests.fakes.questions import asked
from voice.realtime.port import ReplyPiece, ReplyResumed
from voice.speaking.moderation import ForbiddenWordsError, WordList


async def test_an_answer_is_spoken_and_stands_once(room: BridgeDesk) -> None:
    """An answer's words come with its sound, and the turn that records the answer is not sent to the model."""
    turn = await room.say(1, "who are you")
    room.session.answers.append("I am Roomtone and I listen")
    words = await room.answer(turn)
    assert " ".join(filter(None, words)) == "I am Roomtone and I listen"
    room.bridge.report_heard(3.0, complete=True, counts=True)
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "I am Roomtone and I listen")
    assert len(room.session.items) == 3
    assert room.session.interrupted == []


async def test_what_was_said_before_the_window_is_brought_along(room: BridgeDesk) -> None:
    """Quotes about the question are in the instructions for its answer, and removed before the next one."""
    room.prompt.quotes_about = remembered
    for question in ("when does it open", "where do we meet"):
        turn = await room.say(1, question)
        room.session.answers.append("At nine.")
        await room.answer(turn)
        quote = f"[21:04] From memory, Bo: {question}, at nine."
        assert f'Recalled from earlier:\n<data from="recall">\n{quote}\n</data>' in room.session.instructions
        assert f'From earlier conversations:\n<data from="continuity">\n3 May, {quote}' in room.session.instructions
        recalled = [each for each in room.payload if each.kind in {PartKind.CONTINUITY, PartKind.RECALL}]
        assert [question in each.content for each in recalled] == [True, True]
        # Access is counted by these.
        cited = {each.kind: [ref for ref in each.refs if ref.startswith("turn:")] for each in recalled}
        assert cited == {PartKind.RECALL: ["turn:s#3"], PartKind.CONTINUITY: ["turn:older#3"]}
    assert "when does it open" not in room.session.instructions


async def test_what_was_found_for_an_answer_can_be_taken_back(room: BridgeDesk) -> None:
    """What the last answer had been given is not in the instructions any more, and a new conversation, which may begin
    before the next answer, does not get it.
    """
    room.prompt.quotes_about = remembered
    turn = await room.say(1, "when does it open")
    room.session.answers.append("At nine.")
    await room.answer(turn, doubtful=True)
    assert "at nine" in room.session.instructions
    room.words.take_back(turns=True)
    assert "at nine" not in room.session.instructions
    room.session.connect()
    assert "at nine" not in room.session.instructions


@pytest.mark.parametrize("counts", [True, False])
async def test_what_was_talked_over_is_corrected(room: BridgeDesk, counts: bool) -> None:
    """The model learns how many milliseconds of an interrupted answer were heard. One that gave way leaves nothing: no
    turn holds it, so nobody could have it forgotten.
    """
    room.session.answers.append("one two three four")
    await room.answer(await room.say(1, "tell me"))
    room.bridge.report_heard(0.74, complete=False, counts=counts)
    assert ("one two three four" in room.session.items.values()) is counts
    assert room.session.interrupted == [740]


async def test_an_answer_that_was_not_asked_for_leaves_the_one_before_whole(room: BridgeDesk) -> None:
    """If an answer is given up before the model was asked, the model keeps its earlier answer."""
    room.session.answers.append("one two three four")
    await room.answer(await room.say(1, "tell me"))
    room.bridge.report_heard(2.0, complete=True, counts=True)
    turn = await room.say(1, "and now")
    room.prompt.broken = StoreError("The memory cannot be read.")
    with pytest.raises(StoreError):
        await room.answer(turn)
    room.bridge.report_heard(0.0, complete=False, counts=True)
    assert room.session.interrupted == []


async def test_an_answer_ends_before_words_that_are_forbidden(room: BridgeDesk) -> None:
    """Nothing of a forbidden word is yielded, also if its beginning came with an earlier piece."""
    room.forbidden = ("rude*", "three four")
    for answer in ("one two rudely four", "one two three four"):
        room.session.answers.append(answer)
        turn = await room.say(1, "tell me")
        heard: list[str] = []
        with pytest.raises(ForbiddenWordsError):
            await room.answer(turn, heard=heard)
        assert heard
        assert answer.startswith(" ".join(heard))
        assert not WordList(room.forbidden).forbids(" ".join(heard))
        room.bridge.report_heard(0.5, complete=False, counts=True)
    assert room.session.interrupted == [500, 500]


@pytest.mark.parametrize(
    "pieces",
    [
        (ReplyPiece("a", words="I think"), ReplyPiece("b", words="damn")),
        (ReplyPiece("a", words="I think"), ReplyResumed("I think", ("cut_1",)), ReplyPiece("b", words="damn")),
        (ReplyPiece("a", words="I da"), ReplyPiece("a", words="mn")),
    ],
)
async def test_a_forbidden_word_is_found_wherever_it_begins(
    room: BridgeDesk, pieces: Sequence[ReplyPiece | ReplyResumed]
) -> None:
    """The first word of an item is a word of its own, also after a lost connection. Parts of one item are not."""
    room.forbidden = ("damn",)
    room.session.answers.append(pieces)
    turn = await room.say(1, "tell me")
    with pytest.raises(ForbiddenWordsError):
        await room.answer(turn)


@pytest.mark.parametrize("complete", [True, False])
async def test_an_answer_is_of_the_conversation_in_which_it_came(room: BridgeDesk, complete: bool) -> None:
    """If the session is renewed while the room has not yet taken all of an answer that has arrived, the new
    conversation gets the answer as text, also if it is interrupted then.
    """
    turn = await room.say(1, "who are you")
    room.session.answers.append("I am Roomtone")
    async with aclosing(room.speak(asked(turn))) as answer:
        await anext(answer)
        room.session.connect()
        async for _ in answer:
            pass
    room.bridge.report_heard(1.5 if complete else 1.0, complete=complete, counts=True)
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "I am Roomtone" if complete else "I am")
    texts = [text.rpartition(": ")[2] for text in room.session.items.values()]
    assert texts == ["who are you", "I am Roomtone" if complete else "I am"]


async def test_an_answer_asked_for_anew_stands_once(room: BridgeDesk) -> None:
    """If the connection is lost before anything of an answer has come, the answer is asked for anew. The next
    conversation holds it, so its turn is not sent.
    """
    turn = await room.say(1, "who are you")
    room.session.answers.append("I am Roomtone")
    room.session.lost_after = 0
    assert " ".join(filter(None, await room.answer(turn))) == "I am Roomtone"
    room.bridge.report_heard(1.5, complete=True, counts=True)
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "I am Roomtone")
    assert [text.split(": ", 1)[-1] for text in room.session.items.values()] == ["who are you", "I am Roomtone"]


@pytest.mark.parametrize("answer", ["SKIP", "Skip.", "SKIP. They talk to each other."])
async def test_a_model_that_has_nothing_to_say_is_not_heard(room: BridgeDesk, answer: str) -> None:
    """If the model skips its answer, nothing is spoken, and the answer is cancelled and not kept."""
    turn = await room.say(1, "look at that")
    room.session.answers.append(answer)
    assert await room.answer(turn, doubtful=True) == []
    room.bridge.report_heard(0.0, complete=True, counts=True)
    assert room.session.interrupted == [0]
    assert list(room.session.items.values()) == ["Ada speaks:", "look at that"]


async def test_an_answer_gone_on_with_after_a_loss_leaves_the_conversation_whole(room: BridgeDesk) -> None:
    """An answer that was continued after a reconnection has each word once, and all its items are deleted when its turn
    is compacted.
    """
    turn = await room.say(1, "tell me a story")
    room.session.answers.append("Once there was a lantern.")
    room.session.lost_after = 2
    assert " ".join(filter(None, await room.answer(turn))) == "Once there was a lantern."
    room.bridge.report_heard(2.5, complete=True, counts=True)
    answered = await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "Once there was a lantern.")
    assert {"cut_1", "cut_2"} <= room.session.items.keys()
    for number in range(70):
        await room.say(2, f"Number {number} is the lantern of hall {number}.")
    room.bridge.refresh()
    await room.timeline.settle()
    room.bridge.refresh()
    assert room.timeline.cursor > answered.seq
    assert not [item for item in room.session.items if item.startswith(("cut_", "reply_"))]


@pytest.mark.parametrize("unplayed", [False, True])
async def test_an_answer_interrupted_after_a_loss_stands_as_it_was_heard(room: BridgeDesk, unplayed: bool) -> None:
    """If an answer was continued after a reconnection and is then interrupted, the conversation has its recorded turn
    and nothing else of it; also if the room plays the first words only and has not taken the rest.
    """
    turn = await room.say(1, "tell me a story")
    room.session.answers.append("Once there was a lantern.")
    room.session.lost_after = 2
    async with aclosing(room.speak(asked(turn))) as answer:
        async for _ in answer:
            if unplayed and room.session.resumed:
                break
    room.bridge.report_heard(0.5, complete=False, counts=True)
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "Once")
    assert [text.rpartition(": ")[2] for text in room.session.items.values()] == ["tell me a story", "Once"]
