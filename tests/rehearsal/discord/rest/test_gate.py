"""What requests pass before their handler: limits that always apply, and ordered trouble of Discord's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from rehearsal.discord import LocalDiscord

BOT = 1001
MESSAGES = "/channels/601/messages"


@asynccontextmanager
async def api(local: LocalDiscord) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session that sends the bot's token. Its paths are whole."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {BOT}.t"}) as session:
        yield session


async def post(local: LocalDiscord, session: aiohttp.ClientSession, text: str = "hello") -> aiohttp.ClientResponse:
    """Post a message and return the answer, which has been read."""
    async with session.post(local.api_base + MESSAGES, json={"content": text}) as response:
        await response.read()
        return response


async def test_the_sixth_message_at_once_is_refused(local: LocalDiscord) -> None:
    """The answers have Discord's headers, and the refusal says how long to wait."""
    async with api(local) as session:
        answers = [await post(local, session) for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [429]
        assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["4", "3", "2", "1", "0", "0"]
        assert all(answer.headers["Via"] == "1.1 google" for answer in answers)
        body = await answers[-1].json()
        assert (body["global"], 0 < body["retry_after"] <= 5) == (False, True)
        assert answers[-1].headers["X-RateLimit-Scope"] == "user"
        assert len(local.messages) == 5


async def test_ordered_refusals_end_after_their_number(local: LocalDiscord) -> None:
    """With `everywhere` they are by the limit over all routes."""
    async with api(local) as session:
        for everywhere in (0, 1):
            await local.fault("rest_limit", count=2, retry_after_s=0.5, everywhere=everywhere)
            answers = [await post(local, session) for _ in range(3)]
            assert [answer.status for answer in answers] == [429, 429, 200]
            body = await answers[0].json()
            assert (body["retry_after"], body["global"]) == (0.5, bool(everywhere))
            assert ("X-RateLimit-Global" in answers[0].headers) == bool(everywhere)


@pytest.mark.parametrize(("html", "carried_out"), [(1, 0), (0, 1)])
async def test_errors_of_discords_servers_are_no_json(local: LocalDiscord, html: int, carried_out: int) -> None:
    """Such a request may have been carried out all the same."""
    async with api(local) as session:
        await local.fault("rest_errors", status=502, html=html, carried_out=carried_out)
        answer = await post(local, session)
        assert (answer.status, answer.content_type, bool(await answer.text())) == (502, "text/html", bool(html))
        assert len(local.messages) == carried_out
        assert (await post(local, session)).status == 200
