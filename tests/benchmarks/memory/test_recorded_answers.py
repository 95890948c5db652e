"""Answers written by hand: recorded once, replayed for the turns that they were written for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from benchmarks.memory.conversation import ConversationLine
from benchmarks.memory.recorded_answers import (
    ReplayCounts,
    ShownTurns,
    recorded_folds,
    recording_endpoint,
    replayed_endpoint,
)

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.local_model import ChatEndpoint

LINES = tuple(
    ConversationLine("Ada" if number % 2 else "Bob", f"Sentence {number} is about the harbour.", float(number))
    for number in range(40)
)


def prompt_for(start: int, end: int, *, before: str = "Turns:") -> str:
    """Return a prompt that shows these turns in some form of its own."""
    return "\n".join([before, *(f"[{n}] {LINES[n].speaker}: {LINES[n].text}" for n in range(start, end))])


async def ask(endpoint: ChatEndpoint, prompt: str) -> str:
    """Return the endpoint's answer to one message."""
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{endpoint.base_url}/chat/completions", json={"messages": [{"role": "user", "content": prompt}]}
        )
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    ("prompt", "span"),
    [
        (prompt_for(0, 10), "0-9"),
        (json.dumps({"turns": prompt_for(10, 20, before="A „quote“")}), "10-19"),
        (f"{prompt_for(2, 4)}\n{prompt_for(20, 30)}", "20-29"),
        (prompt_for(5, 7), ""),
        ("Nothing of it.", ""),
    ],
)
def test_turns_of_a_request_are_found_by_their_words(prompt: str, span: str) -> None:
    """The longest run of neighbouring lines is the batch, however it is written; two lines are a quote."""
    assert ShownTurns(LINES).span(prompt) == span


@pytest.mark.asyncio
async def test_answers_are_recorded_and_replayed(tmp_path: Path) -> None:
    """A changed prompt about the same turns gets the answer. Misfits of both kinds are counted."""
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    for number, text in enumerate(("first", "second", "chapter"), start=1):
        (work / f"{number:03d}.resp.txt").write_text(text, "utf-8")
    async with recording_endpoint(kept, work, LINES) as endpoint:
        assert await ask(endpoint, prompt_for(0, 10)) == "first\n"
        assert await ask(endpoint, prompt_for(10, 20)) == "second\n"
        assert await ask(endpoint, "Close the chapter.") == "chapter\n"
    assert "Sentence 3" in (work / "001.req.txt").read_text("utf-8")
    counts = ReplayCounts()
    async with replayed_endpoint(kept, LINES, counts) as endpoint:
        assert await ask(endpoint, "Close the chapter, please.") == "chapter\n"
        assert await ask(endpoint, prompt_for(0, 10, before="Other words")) == "first\n"
        assert await ask(endpoint, prompt_for(0, 10)) == ""
    assert (counts.requests, counts.unanswered, counts.unused) == (3, 1, 1)
    assert counts.given == [("", "chapter\n"), ("0-9", "first\n")]
    assert recorded_folds("kept", ".", tmp_path) == 2
    assert "1 of 3" in counts.remark("roomtone", "cabin")
    assert ReplayCounts(3).remark("roomtone", "cabin") == ""
