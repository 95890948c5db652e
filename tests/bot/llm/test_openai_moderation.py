"""The moderation adapter through the real client against a local server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from bot.llm.openai_moderation import OpenAIModerator
from rehearsal.servers.loopback import LoopbackServer
from tests.patience import PATIENCE_S
from voice.endpoint import Endpoint
from voice.speaking.moderation import ModerationError


@asynccontextmanager
async def endpoint() -> AsyncIterator[OpenAIModerator]:
    """Start a server that flags 'bad' as violence and 'worse' as hate, names the text itself as a category, fails on
    'broken', and gives no judgement on 'empty' and 'unsure'.
    """

    async def judge(request: web.Request) -> web.Response:
        text = (await request.json())["input"]
        if "broken" in text:
            return web.Response(status=500)
        if "empty" in text:
            return web.json_response({"id": "m", "model": "m", "results": []})
        if "unsure" in text:
            return web.json_response({"id": "m", "model": "m", "results": [{"flagged": None, "categories": {}}]})
        bad = "bad" in text
        result = {
            "flagged": bad,
            "categories": {"violence": bad, "hate": "worse" in text, text: bad},
            "category_scores": {},
        }
        return web.json_response({"id": "m", "model": "m", "results": [result]})

    async with (
        LoopbackServer([web.post("/v1/moderations", judge)]) as loopback,
        OpenAIModerator(Endpoint(loopback.base_url, "m", "sk-secret", timeout_s=PATIENCE_S)) as moderator,
    ):
        yield moderator


async def test_what_is_flagged_is_named_and_failure_is_no_consent() -> None:
    """A flagged text gives the category and an unflagged one None. A check that fails or
    does not judge raises an error without the text."""
    async with endpoint() as moderator:
        assert await moderator.objection("something bad") == "violence"
        assert await moderator.objection("bad and worse") == "hate,violence"
        assert await moderator.objection("something fine") is None
        for text in ("broken secret", "empty secret", "unsure secret"):
            with pytest.raises(ModerationError, match=r"speaking\.moderation") as caught:
                await moderator.objection(text)
            assert "secret" not in str(caught.value)
