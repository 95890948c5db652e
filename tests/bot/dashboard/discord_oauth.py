"""A local fake of Discord's OAuth2: the page where people agree, the token, who they are, and revoking.

It checks what Discord checks: client id and secret, the redirect, that a code works once, and PKCE (RFC 7636).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from aiohttp import web

CLIENT_ID, SECRET = "4242", "the-client-secret"


class FakeDiscordOAuth:
    """The server. `user`: who agrees on the page. `trouble`: what the next answers are instead."""

    def __init__(self) -> None:
        self.user: dict[str, object] = {"id": "2001", "username": "ada", "global_name": "Ada L."}
        self.refuses = False
        self.scope = "identify"
        # `down`, `busy`, `failing`, `garbage`, `huge`, `slow` or `redirect`: how tokens are answered.
        self.trouble = ""
        self.api_base = ""
        self.asked: list[dict[str, str]] = []
        self.tokens: set[str] = set()
        self.revoked: set[str] = set()
        self._codes: dict[str, dict[str, str]] = {}

    def agree(self, query: dict[str, str]) -> str:
        """Let the person agree; return where Discord sends the browser."""
        if self.refuses:
            return f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': query['state']})}"
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    async def authorize(self, request: web.Request) -> web.StreamResponse:
        """The page for people, on which this one agrees at once."""
        self.asked.append(dict(request.query))
        raise web.HTTPFound(self.agree(dict(request.query)))

    async def token(self, request: web.Request) -> web.StreamResponse:
        """Exchange a code for a token."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        match self.trouble:
            case "down":
                raise web.HTTPServiceUnavailable
            case "busy":
                return web.json_response({"message": "You are being rate limited.", "retry_after": 7.5}, status=429)
            case "failing":
                return web.json_response({"message": "500: Internal Server Error", "code": 0}, status=500)
            case "garbage":
                return web.Response(text="<html>", content_type="text/html")
            case "huge":
                return web.Response(body=b"[" * 10_000_000)
            case "slow":
                await asyncio.sleep(30)
            case "redirect":
                raise web.HTTPFound(f"{self.api_base}/elsewhere")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, SECRET):
            return web.json_response({"error": "invalid_client"}, status=401)
        begun = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if begun is None or begun["redirect_uri"] != form.get("redirect_uri") or begun["code_challenge"] != challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = f"token-{len(self.tokens)}"
        self.tokens.add(token)
        return web.json_response({"access_token": token, "token_type": "Bearer", "scope": self.scope})

    async def me(self, request: web.Request) -> web.StreamResponse:
        """Say who has the token."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens - self.revoked:
            raise web.HTTPUnauthorized
        return web.json_response(self.user)

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Revoke a token."""
        self.revoked.add(str((await request.post())["token"]))
        return web.json_response({})


@asynccontextmanager
async def discord_oauth() -> AsyncIterator[FakeDiscordOAuth]:
    """Start the server on this machine."""
    fake = FakeDiscordOAuth()
    app = web.Application()
    app.router.add_get("/api/v10/oauth2/authorize", fake.authorize)
    app.router.add_post("/api/v10/oauth2/token", fake.token)
    app.router.add_post("/api/v10/oauth2/token/revoke", fake.revoke)
    app.router.add_get("/api/v10/users/@me", fake.me)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.api_base = f"http://{host}:{port}/api/v10"
    try:
        yield fake
    finally:
        await runner.cleanup()
