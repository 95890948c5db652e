"""Calls of tools out of their pieces: the same calls however they were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.tool_calls import CallPiece, MalformedCallsError, StreamedCalls
from compaction.budget.messages import ToolCall

CALLS = (ToolCall("a", "look", '{"at": 1}'), ToolCall("b", "search", '{"query": "the lantern"}'))


@given(cuts=st.lists(st.integers(0, 24), max_size=6), interleaved=st.booleans())
def test_however_they_are_cut(cuts: list[int], interleaved: bool) -> None:
    """Arguments bit by bit, one call after the other or both at once."""
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
    """A result must find its call."""
    whole = StreamedCalls()
    for index in range(2):
        whole.feed(CallPiece(index, "", "look"))
    whole.feed(CallPiece(2, "x", "look"))
    whole.feed(CallPiece(3, "x", "look"))
    assert len({call.id for call in whole.calls}) == 4
    assert [call.arguments for call in whole.calls] == ["{}"] * 4


def test_no_pieces_are_no_calls() -> None:
    """Most answers have none."""
    assert StreamedCalls().calls == ()


def test_what_runs_wild_is_refused() -> None:
    """Names and arguments without end."""
    for piece in (CallPiece(name="x" * 129), CallPiece(name="x", arguments="1" * 20_001)):
        with pytest.raises(MalformedCallsError):
            StreamedCalls().feed(piece)
