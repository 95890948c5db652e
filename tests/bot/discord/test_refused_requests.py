"""A request that Discord refused is one line in the log, without ids, tokens and words."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.discord.refused_requests import log_refusal

PATH = "/api/v10/channels/198622483471925248/messages"
FORM = {"embeds": {"0": {"title": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": "Zaphod is too long"}]}}}}


@pytest.mark.parametrize(
    ("path", "status", "body", "logged"),
    [
        (PATH, 200, "{}", None),
        (PATH, 403, '{"message": "Zaphod", "code": 50013}', ("/api/v10/channels/{}/messages", 403, 50013, [])),
        (PATH, 400, FORM, ("/api/v10/channels/{}/messages", 400, 50035, ["embeds.0.title.BASE_TYPE_MAX_LENGTH"])),
        (PATH, 502, "<html>Zaphod</html>", ("/api/v10/channels/{}/messages", 502, None, [])),
        (PATH, 400, '{"code": "Zaphod", "errors": {"Zaphod": {"_errors": [{}]}}}', (
            "/api/v10/channels/{}/messages", 400, None, ["{}.{}"])),
        ("/api/v10/webhooks/1986/aW50ZX-Zaphod/messages/@original", 404, "[]", (
            "/api/v10/webhooks/{}/{}/messages/@original", 404, None, [])),
        (PATH, 400, "[" * 100_000, ("/api/v10/channels/{}/messages", 400, None, [])),
    ],
    ids=["taken", "permission", "form", "page", "hostile", "webhook", "deep"],
)  # fmt: skip
async def test_a_refused_request_is_logged(
    path: str, status: int, body: str | dict[str, Any], logged: tuple[object, ...] | None
) -> None:
    """With its route, Discord's code and the places of mistakes. discord.py still reads the answer."""
    answer = body if isinstance(body, str) else '{"code": 50035, "errors": ' + repr(body).replace("'", '"') + "}"

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(text=answer, status=status)

    app = web.Application()
    app.router.add_get("/{path:.*}", refuse)
    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(log_refusal)
    async with TestServer(app) as server, aiohttp.ClientSession(trace_configs=[trace]) as http:
        with structlog.testing.capture_logs() as lines:
            async with http.get(server.make_url(path)) as read:
                assert await read.text() == answer
    found = [(each["route"], each["status"], each["code"], each["mistakes"]) for each in lines]
    assert found == ([] if logged is None else [logged])
