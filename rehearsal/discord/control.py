"""The control API: a test, or a person at a terminal, acts in the local Discord over plain HTTP.

docs/rehearsal-control-api.md describes the API. Every answer is a JSON object. The answer to a mistake is
`{"error": sentence}` with a 4xx status. The address of the API contains a token, so only those who were given the
address can use it.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from rehearsal.discord.rest.wire import json_response
from rehearsal.errors import LocalDiscordError, RehearsalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rehearsal.discord.guild.payloads import Json
    from rehearsal.discord.guild.spec import GuildSpec
    from rehearsal.discord.guild.state import PostedMessage, VoiceCredentials
    from rehearsal.discord.interactions.result import InteractionResult
    from rehearsal.discord.media.network import NetworkConditions

PREFIX = "/control"
_UNAUTHORISED = "The address of the control API ends in a token. Use the address that was printed."
# A model may take this long to answer a command. The limit keeps a caller from waiting for ever.
_MAX_TIMEOUT_S = 600.0
_DEFAULT_TIMEOUT_S = 30.0


class ControlledDiscord(Protocol):
    """The operations of `LocalDiscord` that the control API uses."""

    guild: GuildSpec
    network: NetworkConditions

    async def join(self, user_id: int, *, channel_id: int | None = None) -> VoiceCredentials:
        """Move a member into a voice channel."""

    async def leave(self, user_id: int) -> None:
        """Remove a member from voice."""

    async def post_message(self, user_id: int, text: str, *, channel_id: int | None = None) -> PostedMessage:
        """Post a message."""

    async def invoke(
        self,
        user_id: int,
        command_name: str,
        options: Mapping[str, Any] | None = None,
        *,
        channel_id: int | None = None,
        timeout_s: float = _DEFAULT_TIMEOUT_S,
    ) -> InteractionResult:
        """Use a slash command as a member."""

    async def press(
        self, user_id: int, message_id: int, button: str, *, timeout_s: float = _DEFAULT_TIMEOUT_S
    ) -> InteractionResult:
        """Press a button below a message as a member."""

    async def fault(self, name: str, /, *, user_id: int | None = None, **options: float) -> Json:
        """Inject a fault."""

    def status(self) -> Json:
        """Return the status of the whole local Discord."""


class ControlApi:
    """The HTTP handlers of the control API."""

    def __init__(self, discord: ControlledDiscord, *, token: str) -> None:
        self._discord = discord
        self._token = token.encode()

    def routes(self) -> list[web.RouteDef]:
        base = PREFIX + "/{token}"
        member = base + "/members/{user_id}"
        return [
            web.post(member + "/join", self._authorised(self._join)),
            web.post(member + "/leave", self._authorised(self._leave)),
            web.post(member + "/command", self._authorised(self._command)),
            web.post(member + "/press", self._authorised(self._press)),
            web.post(member + "/message", self._authorised(self._message)),
            web.post(base + "/network", self._authorised(self._network)),
            web.post(base + "/fault/{name}", self._authorised(self._fault)),
            web.get(base + "/status", self._authorised(self._status)),
            web.route("*", base + "/{path:.*}", self._authorised(self._unknown)),
            web.route("*", PREFIX + "{path:(/.*)?}", self._authorised(self._unknown)),
        ]

    def _authorised(
        self, handler: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return `handler` behind the check of the token. Mistakes become an answer with status 400."""

        async def authorised(request: web.Request) -> web.Response:
            if not hmac.compare_digest(request.match_info.get("token", "").encode("utf-8", "replace"), self._token):
                return json_response({"error": _UNAUTHORISED}, status=403)
            try:
                return await handler(request)
            except RehearsalError as error:
                return json_response({"error": str(error)}, status=400)

        return authorised

    async def _join(self, request: web.Request) -> web.Response:
        body = await _body(request, "channel_id")
        joined = await self._discord.join(_user(request), channel_id=_optional_id(body, "channel_id"))
        return json_response(joined.as_dict())

    async def _leave(self, request: web.Request) -> web.Response:
        await _body(request)
        await self._discord.leave(_user(request))
        return json_response({"left": True})

    async def _command(self, request: web.Request) -> web.Response:
        body = await _body(request, "name", "options", "channel_id", "replies", "timeout_s")
        options = body.get("options", {})
        if not isinstance(options, dict):
            raise LocalDiscordError('options is an object, for example {"limit": 5}.')
        timeout_s = _number(body, "timeout_s", default=_DEFAULT_TIMEOUT_S, least=0.1, most=_MAX_TIMEOUT_S)
        replies = int(_number(body, "replies", default=1, least=1, most=100))
        result = await self._discord.invoke(
            _user(request),
            _text(body, "name", example="status"),
            options,
            channel_id=_optional_id(body, "channel_id"),
            timeout_s=timeout_s,
        )
        await result.until(lambda current: len(current.replies) >= replies, timeout_s=timeout_s)
        return json_response(result.as_dict())

    async def _press(self, request: web.Request) -> web.Response:
        body = await _body(request, "message_id", "button", "replies", "timeout_s")
        timeout_s = _number(body, "timeout_s", default=_DEFAULT_TIMEOUT_S, least=0.1, most=_MAX_TIMEOUT_S)
        replies = int(_number(body, "replies", default=1, least=1, most=100))
        message_id = _id(body.get("message_id"), "message_id")
        button = _text(body, "button", example="Next")
        result = await self._discord.press(_user(request), message_id, button, timeout_s=timeout_s)
        await result.until(lambda current: len(current.replies) >= replies, timeout_s=timeout_s)
        return json_response(result.as_dict())

    async def _message(self, request: web.Request) -> web.Response:
        body = await _body(request, "text", "channel_id")
        text = _text(body, "text", example="Good evening")
        posted = await self._discord.post_message(_user(request), text, channel_id=_optional_id(body, "channel_id"))
        return json_response(posted.as_dict())

    async def _network(self, request: web.Request) -> web.Response:
        self._discord.network.update(await _body(request, "loss", "padding", "reorder"))
        return json_response(self._discord.network.as_dict())

    async def _fault(self, request: web.Request) -> web.Response:
        body = await _body(request, ...)
        user_id = _optional_id(body, "user_id")
        options = {key: value for key, value in body.items() if key != "user_id"}
        return json_response(await self._discord.fault(request.match_info["name"], user_id=user_id, **options))

    async def _status(self, request: web.Request) -> web.Response:
        return json_response(self._discord.status())

    async def _unknown(self, request: web.Request) -> web.Response:
        asked = f"{request.method} /{request.match_info['path']}"
        return json_response({"error": f"The control API has no {asked}. Its status: GET /status."}, status=404)


async def _body(request: web.Request, *known: Any) -> Json:
    """Return the request's JSON object, or {} if the request has no body. Raises `LocalDiscordError` for an unknown
    key.
    """
    content = await request.read()
    if not content:
        return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise LocalDiscordError('The request\'s body is not JSON. An example: {"loss": 0.05}.') from error
    if not isinstance(body, dict):
        raise LocalDiscordError('The request\'s body is a JSON object, for example {"loss": 0.05}.')
    unknown = sorted(set(body) - set(known))
    if unknown and known != (...,):
        there = ", ".join(map(str, known)) or "none"
        raise LocalDiscordError(f"This request has no field {unknown[0]!r}. Its fields: {there}.")
    return body


def _user(request: web.Request) -> int:
    return _id(request.match_info["user_id"], "the user id")


def _optional_id(body: Json, key: str) -> int | None:
    return None if body.get(key) is None else _id(body[key], key)


def _id(value: object, what: str) -> int:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise LocalDiscordError(f"{what} is a Discord id, for example 2001; {value!r} is not.")
    return int(text)


def _text(body: Json, key: str, *, example: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value.strip():
        raise LocalDiscordError(f'{key} is a text that is not empty, for example "{example}".')
    return value


def _number(body: Json, key: str, *, default: float, least: float, most: float) -> float:
    value = body.get(key, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise LocalDiscordError(f"{key} is a number from {least:g} to {most:g}; {value!r} is not.")
    return float(value)
