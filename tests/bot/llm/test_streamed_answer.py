"""What has come of an answer: words without thoughts, and tool calls, however they are split."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.streamed_answer import (
    CallPiece,
    ChunkContent,
    MalformedCallsError,
    StreamedAnswer,
    StreamedCalls,
    Thoughts,
    words_of,
)
from compaction.payload import MessageToolCall

LOOK = ChunkContent(calls=((CallPiece(0, "call_1", "look", "{}"), "signed"),))


def streamed(*contents: ChunkContent) -> tuple[StreamedAnswer, str]:
    """Return an answer of these chunks, and its words."""
    answer = StreamedAnswer(has_tools=True, unopened=False, max_output_tokens=50)
    words = ""
    for content in contents:
        words += answer.take(content)
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
        ((ChunkContent('<think>I look.</think>\n{"name": "look", "arguments": {}}'),), "", True, True, []),
        ((LOOK,), "", True, False, ["look"]),
        ((ChunkContent("<tool_call>"), ChunkContent("</tool_call>")), "", True, True, []),
        (tuple(map(ChunkContent, '{"name": "look", "arguments": {}}')), "", True, True, []),
        ((ChunkContent('```json\n[{"function": {"name": "look", "parameters": {}}}]\n```'),), "", True, True, []),
        ((ChunkContent('{{"name": "look", "arguments": {{}}}}'),), "", True, True, []),
        ((ChunkContent('{"name": "look", "arguments": {"at": 1'),), "", True, True, []),
        (tuple(map(ChunkContent, "```\nlook()\n```")), "```\nlook()\n```", True, False, []),
        ((ChunkContent('{"name": "Ada"} is JSON.'),), '{"name": "Ada"} is JSON.', True, False, []),
        (tuple(map(ChunkContent, "<b>x</b> [21:04]")), "<b>x</b> [21:04]", True, False, []),
    ],
)
def test_an_answer_has_words_or_calls(
    contents: tuple[ChunkContent, ...], words: str, began: bool, wordless: bool, tools: list[str]
) -> None:
    """Thoughts, white space and a call that is written as text are neither."""
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
        answer.take(ChunkContent(piece))
    for _ in range(100):
        answer.take(ChunkContent("\n" * 100))
    assert answer.is_over


BYTEWISE, WHOLE = 1, 999


def separated(text: str, *, unopened: bool, size: int, cut_off: bool = False) -> tuple[str, Thoughts]:
    """Return the words of an answer that comes in pieces of `size` characters."""
    thoughts = Thoughts(unopened=unopened)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    words = "".join(map(thoughts.feed, pieces))
    return words + thoughts.end(cut_off=cut_off), thoughts


@pytest.mark.parametrize("size", [BYTEWISE, 3, WHOLE])
@pytest.mark.parametrize(
    ("text", "unopened", "cut_off", "words", "was_answer"),
    [
        *(
            (text, False, cut_off, words, False)
            for cut_off in (False, True)
            for text, words in (
                ("Bo brings it.", "Bo brings it."),
                ("  <b>Bo</b> brings it.", "  <b>Bo</b> brings it."),
                ("<think>Who? Bo.</think>\n\nBo brings it.", "\n\nBo brings it."),
                ("\n<think></think>Bo.", "Bo."),
                ("<think>Who brings", ""),
                ("<th", "<th"),
                ("", ""),
                ("I <think> so.", "I <think> so."),
            )
        ),
        ("They ask who. Bo.</think>Bo brings it.", True, False, "Bo brings it.", False),
        # Without the expected thoughts it is passed on whole at its end. If it is cut off there, it may be thoughts.
        ("Bo brings it.", True, False, "Bo brings it.", True),
        ("They ask who brings", True, True, "", False),
    ],
)
def test_thoughts_are_left_out(
    text: str, unopened: bool, cut_off: bool, words: str, was_answer: bool, size: int
) -> None:
    """At the beginning, also those that never end, and those that nothing opens where they are expected."""
    found, thoughts = separated(text, unopened=unopened, size=size, cut_off=cut_off)
    assert (found, thoughts.was_answer) == (words, was_answer)


@pytest.mark.parametrize(
    ("answer", "unopened", "cut_off", "words"),
    [
        ("Bo brings it.", False, False, "Bo brings it."),
        ("Bo brings it.", True, False, "Bo brings it."),
        ("They ask who brings", True, True, ""),
        ("Bo brings", False, True, "Bo brings"),
        ("<think>Who? Bo.</think>Bo brings it.", False, False, "Bo brings it."),
        ("<think>Who? Bo.</think>Bo brings it.", True, False, "Bo brings it."),
        ("Who? Bo.</think>Bo brings it.", False, False, "Bo brings it."),
        ("Bo wrote <think>so</think>.", False, False, "Bo wrote <think>so</think>."),
    ],
)
def test_a_whole_answer_has_its_words_at_once(answer: str, unopened: bool, cut_off: bool, words: str) -> None:
    """Thoughts that nothing opens are seen the first time, because all of the answer is there."""
    assert words_of(answer, unopened=unopened, cut_off=cut_off) == words


CALLS = (MessageToolCall("a", "look", '{"at": 1}'), MessageToolCall("b", "search", '{"query": "the lantern"}'))


@given(cuts=st.lists(st.integers(0, 24), max_size=6), interleaved=st.booleans())
def test_however_they_are_cut(cuts: list[int], interleaved: bool) -> None:
    """Streamed calls are put together, however their arguments are split and even if the calls are interleaved."""
    whole = StreamedCalls()
    bits: list[list[CallPiece]] = []
    for index, call in enumerate(CALLS):
        at = [0, *sorted(cut for cut in cuts if cut < len(call.arguments)), len(call.arguments)]
        parts = [call.arguments[start:end] for start, end in itertools.pairwise(at)]
        bits.append([CallPiece(index, call.id, call.name), *(CallPiece(index, arguments=part) for part in parts)])
    pieces = list(itertools.chain.from_iterable(bits))
    if interleaved:
        longest = max(map(len, bits))
        pieces = [each[at] for at in range(longest) for each in bits if at < len(each)]
    for piece in pieces:
        whole.feed(piece)
    assert whole.calls == CALLS


def test_calls_without_ids_or_with_the_same_get_their_own() -> None:
    """Calls without an id, or with the same one, get unique ids, so that each result can name its call."""
    whole = StreamedCalls()
    for index in range(2):
        whole.feed(CallPiece(index, "", "look"))
    whole.feed(CallPiece(2, "x", "look"))
    whole.feed(CallPiece(3, "x", "look"))
    assert len({call.id for call in whole.calls}) == 4
    assert [call.arguments for call in whole.calls] == ["{}"] * 4


def test_what_runs_wild_is_refused() -> None:
    """An overlong name, id or overlong arguments raise a MalformedCallsError."""
    for piece in (
        CallPiece(name="x" * 129),
        CallPiece(name="x", arguments="1" * 20_001),
        CallPiece(name="x", id="1" * 20_001),
    ):
        with pytest.raises(MalformedCallsError):
            StreamedCalls().feed(piece)
