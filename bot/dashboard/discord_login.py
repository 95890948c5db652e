"""Logs somebody in with Discord's OAuth2: authorization code with state and PKCE.

Only the scope `identify` is asked for: who somebody is. What they may see, the bot knows from its own servers. Their
access token is used once, for that question, then given back; nothing of it is kept.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import aiohttp
import structlog
from nacl.encoding import HexEncoder
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from bot.dashboard.access import DashboardUser, LoginRefusedError
from bot.texts.text import Text

if TYPE_CHECKING:
    from pydantic import SecretStr

    from bot.clock import Clock

# How long somebody may stay at Discord's page.
VALID_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class LoginStart:
    """The beginning of a login with Discord. `url`: where the browser goes. `proof`: the browser's cookie meanwhile."""

    url: str
    proof: str


log = structlog.get_logger()

# One request to Discord, and how much it may answer.
REQUEST_TIMEOUT_S: Final = 10.0
_MAX_ANSWER_BYTES: Final = 64_000
_API_BASE: Final = "https://discord.com/api/v10"
_AUTHORIZE_URL: Final = "https://discord.com/oauth2/authorize"
_SCOPE: Final = "identify"
# How Discord refuses a code (RFC 6749, 5.2). Anybody can come back with a wrong one and fill the log.
_WRONG_CODE: Final = ("invalid_grant", "invalid_request")
_AGAIN: Final = Text("This login no longer works. Begin again in this browser.")
_NOT_ASKED: Final = Text("I could not ask Discord who you are. Try again in a moment.")


class DiscordLogin:
    """Logins with Discord. `secret`: the application's client secret.

    `api_base`: of Discord's REST API; empty: Discord's own.
    *Cancellation* of `finish`: the login has to begin again.
    """

    def __init__(self, secret: SecretStr, *, api_base: str, clock: Clock) -> None:
        self._secret = secret
        self._api_base = api_base.rstrip("/") or _API_BASE
        # A local Discord has the page for people beside its API.
        self._authorize_url = f"{self._api_base}/oauth2/authorize" if api_base else _AUTHORIZE_URL
        self._clock = clock
        # Nobody but this process makes or opens the cookies of logins that are at Discord.
        self._box = SecretBox(secrets.token_bytes(SecretBox.KEY_SIZE))

    def start(self, client_id: int, redirect_uri: str) -> LoginStart:
        """Begin a login. Returns the URL of Discord's page."""
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        pending = [state, verifier, redirect_uri, self._clock.monotonic() + VALID_S]
        # Each has a random nonce of 24 bytes. Cookies may have hexadecimal digits as they are.
        sealed = self._box.encrypt(json.dumps(pending).encode(), encoder=HexEncoder)
        query = {
            "client_id": str(client_id),
            "response_type": "code",
            "redirect_uri": redirect_uri,
            "scope": _SCOPE,
            "state": state,
            # RFC 7636, section 4.2.
            "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
            "prompt": "none",
        }
        return LoginStart(f"{self._authorize_url}?{urlencode(query)}", sealed.decode("ascii"))

    async def finish(self, client_id: int, proof: str, state: str, code: str) -> DashboardUser:
        """Return who came back with `code`. Raises `LoginRefusedError`. Discord takes a code once."""
        try:
            plain = self._box.decrypt(proof.encode("ascii"), encoder=HexEncoder)
        except (CryptoError, ValueError) as error:
            raise LoginRefusedError(_AGAIN) from error
        own_state, verifier, redirect_uri, until = json.loads(plain)
        is_own = secrets.compare_digest(own_state.encode(), state.encode("utf-8", "replace"))
        if not code or not is_own or self._clock.monotonic() >= until:
            raise LoginRefusedError(_AGAIN)
        form = {
            "client_id": str(client_id),
            "client_secret": self._secret.get_secret_value().strip(),
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        try:
            timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
            # Nothing is unpacked that was not asked for, so the bound of `_object` counts all there is.
            asked = {"Accept-Encoding": "identity"}
            async with aiohttp.ClientSession(timeout=timeout, headers=asked, auto_decompress=False) as http:
                token = await self._token(http, form)
                try:
                    return await self._identify(http, token)
                finally:
                    await self._give_back(http, token, form)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            log.warning("discord_login_failed", error_class=type(error).__name__)
            raise LoginRefusedError(_NOT_ASKED) from error

    async def _token(self, http: aiohttp.ClientSession, form: dict[str, str]) -> str:
        async with http.post(f"{self._api_base}/oauth2/token", data=form, allow_redirects=False) as response:
            answer = await _object(response)
            if response.status != 200:
                reason = answer.get("error")
                if reason not in _WRONG_CODE:
                    log.warning("discord_login_refused", status=response.status)
                if reason == "invalid_client":
                    raise LoginRefusedError(
                        Text(
                            "Discord does not accept the bot's client secret. The owner of this bot "
                            "can copy it again from the page OAuth2 of Discord's developer portal."
                        )
                    )
                # Too many requests, or a failure of Discord's: nothing is wrong with the login.
                raise LoginRefusedError(_NOT_ASKED if response.status == 429 or response.status >= 500 else _AGAIN)
        token, scope = answer.get("access_token"), str(answer.get("scope", "")).split()
        if not isinstance(token, str) or _SCOPE not in scope:
            raise LoginRefusedError(_AGAIN)
        return token

    async def _identify(self, http: aiohttp.ClientSession, token: str) -> DashboardUser:
        headers = {"Authorization": f"Bearer {token}"}
        async with http.get(f"{self._api_base}/users/@me", headers=headers, allow_redirects=False) as response:
            answer = await _object(response)
        user_id = str(answer.get("id", ""))
        if response.status != 200 or not user_id.isascii() or not user_id.isdecimal() or len(user_id) > 20:
            raise LoginRefusedError(Text("Discord did not say who you are. Try again."))
        name = answer.get("global_name") or answer.get("username")
        return DashboardUser(str(name or user_id)[:100], int(user_id))

    async def _give_back(self, http: aiohttp.ClientSession, token: str, form: dict[str, str]) -> None:
        """Revoke the access token. If that fails, it lapses by itself."""
        given = {name: form[name] for name in ("client_id", "client_secret")} | {"token": token}
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                async with http.post(f"{self._api_base}/oauth2/token/revoke", data=given, allow_redirects=False):
                    pass
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.info("discord_token_not_revoked", error_class=type(error).__name__)


async def _object(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the JSON object of an answer. Raises `ValueError` if it is none."""
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MAX_ANSWER_BYTES:
            raise ValueError("too long")
    try:
        answer = json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(answer, dict):
        raise ValueError("not an object")  # noqa: TRY004 - one error for all that is no answer
    return answer
