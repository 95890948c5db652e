"""The words of an answer are what is left of it without thoughts and written tool calls."""

from __future__ import annotations

import pytest

from bot.llm.answer_text import AnswerText

CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("size", [1, 999])
@pytest.mark.parametrize(
    ("text", "words", "names"),
    [
        ("Bo brings it.", "Bo brings it.", []),
        (CALL, "", ["look"]),
        (f"<think>I look.</think>\n{CALL}", "", ["look"]),
        ("<think>I know.</think>Bo.", "Bo.", []),
        ("<think>I know", "", []),
    ],
)
def test_words_and_calls_are_told_apart(text: str, words: str, names: list[str], size: int) -> None:
    """A call may follow the thoughts. `spoke` tells whether there was a word."""
    answer = AnswerText(has_tools=True, unopened=False)
    begun = "".join(answer.feed(text[at : at + size]) for at in range(0, len(text), size))
    rest, calls = answer.end(cut_off=False)
    assert (begun + rest, [call.name for call in calls]) == (words, names)
    assert answer.spoke == bool(words)


def test_without_tools_a_call_is_text() -> None:
    answer = AnswerText(has_tools=False, unopened=False)
    assert (answer.feed(CALL), answer.end(cut_off=False), answer.spoke) == (CALL, ("", ()), True)
