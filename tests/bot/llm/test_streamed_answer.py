"""What has come of a streamed answer, and how long the next piece may take."""

from __future__ import annotations

import pytest

from bot.llm.chat_wire import ChunkContent
from bot.llm.streamed_answer import StreamDeadlines, StreamedAnswer
from bot.llm.tool_calls import CallPiece

LOOK = ChunkContent(calls=((CallPiece(0, "call_1", "look", "{}"), "signed"),))


def streamed(*contents: ChunkContent) -> tuple[StreamedAnswer, str]:
    """Return an answer of these chunks, and its words."""
    answer = StreamedAnswer(has_tools=True, unopened=False, max_output_tokens=50)
    words = ""
    for content in contents:
        answer.take_calls(content)
        words += answer.take_words(content)
    return answer, words + answer.end()


@pytest.mark.parametrize(
    ("contents", "words", "began", "wordless", "tools"),
    [
        ((), "", False, True, []),
        ((ChunkContent(),), "", False, True, []),
        ((ChunkContent("Hello "), ChunkContent("Ada.", finish_reason="stop")), "Hello Ada.", True, False, []),
        ((ChunkContent(" "),), " ", True, True, []),
        ((ChunkContent("<think>Hm.</think>"),), "", True, True, []),
        ((ChunkContent("<think>I know.</think>Bo."),), "Bo.", True, False, []),
        ((ChunkContent('<think>I look.</think>\n{"name": "look", "arguments": {}}'),), "", True, False, ["look"]),
        ((LOOK,), "", True, False, ["look"]),
        ((ChunkContent("<tool_call>"), ChunkContent("</tool_call>")), "", True, True, []),
        ((ChunkContent('{"name": "look", "arguments": {}}'),), "", True, False, ["look"]),
    ],
)
def test_an_answer_has_words_or_calls(
    contents: tuple[ChunkContent, ...], words: str, began: bool, wordless: bool, tools: list[str]
) -> None:
    """Thoughts, white space and the tags of a call are neither; calls may be streamed or written."""
    answer, read = streamed(*contents)
    assert (read, answer.began, answer.wordless) == (words, began, wordless)
    assert [call.name for call in answer.calls] == tools


def test_the_last_reason_counts_and_each_call_keeps_what_came_with_it() -> None:
    answer, _ = streamed(LOOK, ChunkContent(finish_reason="length"), ChunkContent())
    assert answer.reason == "length"
    assert answer.signatures == ["signed"]


@pytest.mark.parametrize("before", ["", "<think>", "<think></think>"])
def test_white_space_without_an_end_is_cut_off(before: str) -> None:
    """It is not gathered in case a call or thoughts follow: each piece would take longer than the one before."""
    answer = StreamedAnswer(has_tools=True, unopened=False, max_output_tokens=50)
    for piece in (before, *(["\n" * 100] * 100), "</think>" if before == "<think>" else ""):
        answer.take_words(ChunkContent(piece))
    for _ in range(100):
        answer.take_words(ChunkContent("\n" * 100))
    assert answer.is_over


def test_a_piece_may_take_as_long_as_the_first_one_and_all_of_them_the_whole_time() -> None:
    """What the voice takes for a piece is added to both."""
    deadlines = StreamDeadlines(100.0, first_token_s=4.0, total_s=10.0)
    assert deadlines.next_at == 104.0
    deadlines.on_piece(103.0)
    assert deadlines.next_at == 107.0
    deadlines.postpone(20.0)
    assert deadlines.next_at == 127.0
    deadlines.on_piece(129.0)
    assert deadlines.next_at == 130.0
