"""The question before an effect says what the call does, in words that a voice says in full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.links import link_tool
from bot.brain.tools.proposals import question_about
from bot.brain.tools.tool import RoomTool, ToolError
from tests.fakes.chat import FakeChat
from voice.speaking.sentences import SentenceSplitter
from voice.speaking.text_normalizer import TextNormalizer

POST = link_tool(FakeChat())
WRITE = RoomTool("fs_write_file", "Writes.", {}, POST.call, words=("write", "file", "fs"))


@pytest.mark.parametrize(
    ("tool", "arguments", "german", "question"),
    [
        (
            POST,
            {"url": "https://maps.example/lisbon?q=1"},
            False,
            "Shall I post the link maps dot example lisbon and 3 more characters in the chat?",
        ),
        (
            POST,
            {"url": "http://a.example:8080/go?to=evil.example#x"},
            True,
            "Soll ich den Link a Punkt example 8080 go und 16 weitere Zeichen in den Chat schreiben?",
        ),
        (POST, {"text": "💣💣"}, False, "Shall I post the words 2 characters in the chat?"),
        (POST, {"text": "💣💣"}, True, "Soll ich die Worte 2 Zeichen in den Chat schreiben?"),
        (POST, {"text": "Milk, bread."}, False, "Shall I post the words Milk, bread in the chat?"),
        (
            POST,
            {"url": "https://a.example", "text": "Da!"},
            True,
            "Soll ich den Link a Punkt example und die Worte Da in den Chat schreiben?",
        ),
        (
            WRITE,
            {"path": "/etc/passwd", "content": "x" * 500},
            False,
            f"With path etc passwd and content {'x' * 100} and 400 more characters, shall I run fs write file?",
        ),
        (WRITE, {}, True, "Soll ich fs write file ausführen?"),
        (WRITE, {"path": None}, False, "With path nothing, shall I run fs write file?"),
        (WRITE, {"path": None}, True, "Mit path nichts, soll ich fs write file ausführen?"),
        (WRITE, {"path": "a.txt"}, True, "Mit path a Punkt txt, soll ich fs write file ausführen?"),
    ],
)
def test_the_question_says_what_the_call_does(
    tool: RoomTool, arguments: dict[str, object], german: bool, question: str
) -> None:
    """The question names the deed and its values."""
    assert question_about(tool, arguments, german=german) == question


def test_a_link_that_cannot_be_posted_is_not_asked_about() -> None:
    """Arguments that the tool would refuse make no question."""
    with pytest.raises(ToolError):
        question_about(POST, {"url": "https://bank.example@evil.example"}, german=False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (POST, {"url": "https://www.evil.example/a/b.html?x=y#z", "text": "See https://www.evil.example!"}),
        (WRITE, {"path": "~/.ssh/authorized_keys", "content": "Ha! Is it warm? **Yes.** (or no) `rm -rf /` <b>"}),
        (WRITE, {"content": "Thanks. Do you like cats?\nRoomtone: *laughs* [no]"}),
    ],
)
def test_the_voice_says_the_whole_question(tool: RoomTool, arguments: dict[str, object]) -> None:
    """Nothing of the question is lost on its way through sentences and the voice's normaliser."""
    question = question_about(tool, arguments, german=False)
    normalizer, splitter = TextNormalizer(own_names=("Roomtone",)), SentenceSplitter()
    said = [normalizer.normalize(part) for part in (*splitter.feed(question), *splitter.flush())]
    assert " ".join(each.text for each in said if each is not None) == question


@given(value=st.text(max_size=150))
def test_no_value_ends_the_question(value: str) -> None:
    """Whatever a hostile model puts into a call, the bot asks one question, and it is ours to the end."""
    question = question_about(WRITE, {"path": value}, german=False)
    assert question.endswith(", shall I run fs write file?")
    assert not set(question[:-1]) & set(".!?;:\n")
