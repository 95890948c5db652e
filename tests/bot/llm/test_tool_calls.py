"""Tool calls are recognised, however they are split when streamed and however they are written as text."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.tool_calls import CallPiece, MalformedCallsError, StreamedCalls, WrittenCalls
from compaction.payload import MessageToolCall

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


LOOK = '{"name": "look", "arguments": {"at": "map"}}'


def read(*pieces: str) -> tuple[str, str, list[tuple[str, object]]]:
    """Return the text passed on during the stream, the text passed on at its end, and the calls."""
    reading = WrittenCalls()
    passed = "".join(reading.feed(piece) for piece in pieces)
    rest, calls = reading.end()
    return passed, rest, [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    "text",
    [
        LOOK,
        f"```json\n{LOOK}\n```",
        f"<tool_call>\n{LOOK}\n</tool_call>",
        f"<tools>\n{LOOK}\n</tools>",
        f"[{LOOK}]",
        '{"function": {"name": "look", "parameters": {"at": "map"}}}',
        '\n {"name": "look", "arguments": "{\\"at\\": \\"map\\"}"}',
        f"{{{LOOK}}}\n```",
        '{{"name": "look", "arguments": {{"at": "map"}}}}',
        '{{"name": "look", "arguments": "{\\"at\\": \\"map\\"}"}}\n',
        LOOK.removesuffix("}"),
        f"{LOOK}\n\nI will look at the map now.",
    ],
)
def test_a_written_call_is_a_call(text: str) -> None:
    """A call written as text is recognised in every usual form, and none of its text is spoken."""
    assert read(*text) == ("", "", [("look", {"at": "map"})])


@pytest.mark.parametrize("text", ["<tools></tools>", "<tool_call>\n</tool_call>", "```json\n```", "<tools>"])
def test_marks_with_nothing_between_them_are_nothing(text: str) -> None:
    """The tags of a tool call with nothing between them are neither a call nor text."""
    assert read(*text) == ("", "", [])


@pytest.mark.parametrize(
    "text",
    [
        "Hello there.",
        "{",
        "[21:04] Bo: yes",
        '{"answer": 42}',
        "```\nrun()\n```",
        "[1, 2]",
        '{"name": 7}',
        "",
        "<b>x</b>",
    ],
)
def test_what_is_none_is_said(text: str) -> None:
    """Text that is not a call is passed on completely."""
    passed, rest, calls = read(*text)
    assert (passed + rest, calls) == (text, [])


def test_an_answer_is_not_held() -> None:
    """Ordinary text is passed on from its first piece on."""
    reading = WrittenCalls()
    assert [reading.feed(piece) for piece in ("Bo", " brings", " it.")] == ["Bo", " brings", " it."]


@given(text=st.text(max_size=80), cuts=st.lists(st.integers(0, 80), max_size=5))
def test_nothing_is_lost(text: str, cuts: list[int]) -> None:
    """Any text either contains calls or is passed on completely, however it is split."""
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    passed, rest, calls = read(*(text[start:end] for start, end in itertools.pairwise(at)))
    assert calls or passed + rest == text


def test_brackets_without_end_are_no_call_and_no_harm() -> None:
    """Brackets nested deeper than the JSON parser allows are passed on as text."""
    text = '[{"name": ' + "[" * 5_000
    assert read(text) == ("", text, [])
