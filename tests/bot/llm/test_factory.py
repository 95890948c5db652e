"""Listing an endpoint's models confirms its address and key."""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic import SecretStr

from bot.llm.factory import list_served_models
from bot.llm.port import ChatModelError
from bot.llm.settings import LlmSettings

KEY = "sk-right-key-1234"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Act as an OpenAI-compatible server with two models and one valid key."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    right = f"Bearer {KEY}" in head
    body = json.dumps(
        {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in "ab"]}
        if right
        else {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}
    )
    status = "200 OK" if right and head.startswith("GET /v1/models ") else "401 Unauthorized"
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}".encode()
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()


@pytest.mark.asyncio
async def test_models_are_listed_and_a_wrong_key_is_told() -> None:
    """The right key gives the names of the models; a wrong key gives an error without the key in it."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        assert await list_served_models(LlmSettings(base_url=url, api_key=SecretStr(KEY))) == ("a", "b")
        with pytest.raises(ChatModelError, match="key") as caught:
            await list_served_models(LlmSettings(base_url=url, api_key=SecretStr("sk-wrong-key-1234")))
    assert "sk-wrong" not in str(caught.value)
    assert url in str(caught.value)
