"""Answers written by hand: recorded once, replayed for the turns that they were written for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from benchmarks.errors import EndpointError
from benchmarks.local_model import ChatEndpoint
from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.systems.recorded_answers import (
    ReplayCounts,
    ShownTurns,
    answering_model,
    recorded_folds,
    recording_endpoint,
    replayed_endpoint,
)
from benchmarks.stub_model import chat_endpoint

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.report import Json

LINES = tuple(
    ConversationLine("Ada" if number % 2 else "Bob", f"Sentence {number} is about the harbour.", float(number))
    for number in range(40)
)


def prompt_for(start: int, end: int, *, before: str = "Turns:") -> str:
    """Return a prompt that shows these turns in some form of its own."""
    return "\n".join([before, *(f"[{n}] {LINES[n].speaker}: {LINES[n].text}" for n in range(start, end))])


async def ask(endpoint: ChatEndpoint, prompt: str) -> str:
    """Return the endpoint's answer to one message."""
    async with httpx2.AsyncClient() as client:
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


@pytest.mark.asyncio
async def test_a_models_answers_are_recorded_and_asked_for_once(tmp_path: Path) -> None:
    """What the model has answered is used when the recording goes on; the form of the answer reaches the model."""
    work, kept = tmp_path / "work", tmp_path / "kept"
    asked: list[dict[str, Json]] = []

    async def answer(body: dict[str, Json]) -> str:
        asked.append(body)
        return f"answer {len(asked)}"

    async with chat_endpoint(answer, model="small") as model:
        async with recording_endpoint(kept, work, LINES, model) as endpoint:
            assert await ask(endpoint, prompt_for(0, 10)) == "answer 1\n"
        async with recording_endpoint(kept, work, LINES, model) as endpoint:
            assert await ask(endpoint, prompt_for(0, 10)) == "answer 1\n"
            assert await ask(endpoint, prompt_for(10, 20)) == "answer 2\n"
    assert [body["model"] for body in asked] == ["small", "small"]
    assert (kept / "002.txt").read_text("utf-8") == "answer 2\n"
    assert recorded_folds("kept", ".", tmp_path) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(("status", "answered"), [(HTTPStatus.INTERNAL_SERVER_ERROR, ["", "said\n"]), (None, [""])])
async def test_a_model_that_refuses_or_goes_away(
    tmp_path: Path, status: HTTPStatus | None, answered: list[str]
) -> None:
    """A refusal, as of a prompt that is too long, is an empty answer; without the model the recording has failed."""
    work, kept = tmp_path / "work", tmp_path / "kept"
    calls = 0

    async def serve(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        if status is None:
            assert request.transport is not None
            request.transport.abort()
        elif calls == 1:
            return web.Response(status=status)
        return web.json_response({"choices": [{"message": {"content": "said"}}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", serve)
    async with TestServer(app) as server:
        model = ChatEndpoint(str(server.make_url("/v1")), "small")
        with pytest.raises(EndpointError, match="Start it") if status is None else nullcontext():
            async with recording_endpoint(kept, work, LINES, model) as endpoint:
                given = [await ask(endpoint, prompt_for(at, at + 10)) for at in (0, 10)]
                assert [text.strip() + "\n" if text.strip() else "" for text in given][: len(answered)] == answered
    assert (work / "001.resp.txt").exists() == (status is not None)


def test_answers_name_their_model(tmp_path: Path) -> None:
    """Only a small model's folder has a name; those written by hand are called recorded."""
    assert answering_model(tmp_path) == ""
    (tmp_path / "MODEL").write_text("small\n", "utf-8")
    assert answering_model(tmp_path) == "small"
