"""The stub endpoint that answers after a fixed time."""

from __future__ import annotations

import httpx2
import pytest

from benchmarks.stub_model import SUMMARY, stub_endpoint


@pytest.mark.asyncio
async def test_whole_answer_has_the_form_of_openai() -> None:
    """The stub answers with chat completions in OpenAI's form, as often as asked over one connection."""
    async with stub_endpoint(answer_s=0.0) as endpoint, httpx2.AsyncClient() as client:
        for _ in range(2):
            answer = await client.post(f"{endpoint.base_url}/chat/completions", json={"messages": []})
            assert answer.json()["choices"][0]["message"]["content"] == SUMMARY


@pytest.mark.asyncio
async def test_streamed_answer_goes_on_until_the_caller_hangs_up() -> None:
    """A streamed answer begins at once, and the caller may hang up."""
    async with stub_endpoint(answer_s=0.0) as endpoint, httpx2.AsyncClient() as client:
        url = f"{endpoint.base_url}/chat/completions"
        async with client.stream("POST", url, json={"messages": [], "stream": True}) as answer:
            first = await anext(answer.aiter_lines())
        assert first.startswith("data: ")
