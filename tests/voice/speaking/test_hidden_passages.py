"""Code, reasoning and tool calls are not spoken, however the text is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.hidden_passages import HiddenPassages
from voice.speaking.sentences import SentenceSplitter


def visible(reply: str) -> str:
    """Return the visible part of a whole reply that is split as the brain splits it."""
    splitter, hidden = SentenceSplitter(), HiddenPassages()
    return " ".join(" ".join(hidden.visible(piece) for piece in [*splitter.feed(reply), *splitter.flush()]).split())


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ('<tool>search("boats")</tool> I found it.', "I found it."),
        ('One moment. <tool_call>\n{"name": "search", "arguments": {"words": "boat, or ship"}}\n</tool_call> Yes.',
         "One moment. Yes."),
        ('<function=search>{"q": 1}</function> Here.', "Here."),
        ('<function_calls><invoke name="x"><parameter name="q">a. b. c</parameter></invoke></function_calls>Done.',
         "Done."),
        ('<tool name="x"/> Next.', "Next."),
        ("<think>One. Two.\n\nThree.</think>\n\nIt is four.", "It is four."),
        ("◁think▷hidden words◁/think▷It is four.", "It is four."),
        ("<thinking>a ``` b</thinking>It ```x``` is.", "It is."),
        ('{"tool": "memory_search", "words": "a boat, or perhaps a ship that somebody bought"} I look.', "I look."),
        ('[{"name": "search", "parameters": {"q": ["a", "b"]}}]', ""),
        ("Thought: they want the time\nAction: clock\nAction Input: now\nIt is nine.", "It is nine."),
        ("A set like {a, b} and [c] stays.", "A set like {a, b} and [c] stays."),
        ("I think that a tool may help.", "I think that a tool may help."),
        ("5 < 6 and 7 > 3", "5 < 6 and 7 > 3"),
        ("</think>It is nine.", "It is nine."),
    ],
)  # fmt: skip
def test_what_is_for_no_ears_is_left_out(reply: str, left: str) -> None:
    assert visible(reply) == left


def test_what_is_never_closed_hides_the_rest() -> None:
    """A passage that is never closed hides the rest, because a model that was cut off in a call said
    nothing after it.
    """
    assert visible("Wait. <tool_call> a. b. c") == "Wait."


@given(st.text(alphabet='ab .<>/`{}[]":kinth', max_size=200))
def test_nothing_is_made_up(reply: str) -> None:
    """The visible text contains only characters of the reply, in their order."""
    rest = iter("".join(reply.split()))
    assert all(letter in rest for letter in visible(reply).replace(" ", ""))
