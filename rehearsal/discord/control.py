"""The control API: a client in another language, or a person at a terminal, acts in the local Discord over plain HTTP.

docs/rehearsal.md lists the requests. Every answer is a JSON object. The answer to a mistake is `{"error": sentence}`
with a 4xx status. The address of the API contains a token, so only those who were given the address can use it.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.discord.interactions.result import InteractionResult
from rehearsal.discord.rest.wire import json_response
from rehearsal.errors import LocalDiscordError, RehearsalError

PREFIX = "/control"
_UNAUTHORISED = "The address of the control API ends in a token. Use the address that was printed."
_UNKNOWN = "The control API has no such request. Its status: GET /status."

_Text = Annotated[str, Field(min_length=1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Place(_Body):
    channel_id: int | None = None


class _Message(_Place):
    text: _Text


class _Answered(_Body):
    """A request that waits until the bot has sent `replies` answers. The limit keeps nobody waiting for ever."""

    replies: int = Field(default=1, ge=1, le=100)
    timeout_s: float = Field(default=30.0, ge=0.1, le=600.0)


class _Command(_Answered, _Place):
    name: _Text
    options: dict[str, Any] = Field(default_factory=dict)


class _Press(_Answered):
    message_id: int
    button: _Text


class _Network(_Body):
    loss: float | None = None
    padding: float | None = None
    reorder: float | None = None


class _Fault(BaseModel):
    model_config = ConfigDict(extra="allow")
    user_id: int | None = None


# What does something with a request and its body, and returns the answer.
_Act: TypeAlias = Callable[[web.Request, Any], Awaitable[Any]]


class ControlApi:
    """The HTTP handlers of the control API."""

    def __init__(self, discord: Any, *, token: str) -> None:
        """`discord`: the `LocalDiscord` that makes it."""
        self._discord = discord
        self._token = token.encode()

    def routes(self) -> list[web.RouteDef]:
        base = PREFIX + "/{token}"
        member = base + "/members/{user_id}"
        acts: dict[str, tuple[type[BaseModel], _Act]] = {
            member + "/join": (_Place, self._join),
            member + "/leave": (_Body, self._leave),
            member + "/command": (_Command, self._command),
            member + "/press": (_Press, self._press),
            member + "/message": (_Message, self._message),
            base + "/network": (_Network, self._network),
            base + "/fault/{name}": (_Fault, self._fault),
        }
        return [
            *(web.post(path, self._answering(act, model)) for path, (model, act) in acts.items()),
            web.get(base + "/status", self._answering(self._status)),
            web.route("*", base + "/{path:.*}", self._answering(None)),
            web.route("*", PREFIX + "{path:(/.*)?}", self._answering(None)),
        ]

    def _answering(
        self, act: _Act | None, model: type[BaseModel] = _Body
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return a handler that checks the token, reads the body as `model`, and answers with what `act` returns.

        Mistakes become an answer with status 400. None: there is no such request.
        """

        async def answer(request: web.Request) -> web.Response:
            if not hmac.compare_digest(request.match_info.get("token", "").encode("utf-8", "replace"), self._token):
                return json_response({"error": _UNAUTHORISED}, status=403)
            if act is None:
                return json_response({"error": _UNKNOWN}, status=404)
            try:
                return json_response(await act(request, await _body(request, model)))
            except RehearsalError as error:
                return json_response({"error": str(error)}, status=400)

        return answer

    async def _join(self, request: web.Request, body: _Place) -> Any:
        return (await self._discord.join(_user(request), channel_id=body.channel_id)).as_dict()

    async def _leave(self, request: web.Request, _: _Body) -> Any:
        await self._discord.leave(_user(request))
        return {"left": True}

    async def _command(self, request: web.Request, body: _Command) -> Any:
        result = await self._discord.invoke(
            _user(request), body.name, body.options, channel_id=body.channel_id, timeout_s=body.timeout_s
        )
        return await _answers(result, body)

    async def _press(self, request: web.Request, body: _Press) -> Any:
        result = await self._discord.press(_user(request), body.message_id, body.button, timeout_s=body.timeout_s)
        return await _answers(result, body)

    async def _message(self, request: web.Request, body: _Message) -> Any:
        posted = await self._discord.post_message(_user(request), body.text, channel_id=body.channel_id)
        return posted.as_dict()

    async def _network(self, _: web.Request, body: _Network) -> Any:
        self._discord.network.update(body.model_dump(exclude_none=True))
        return self._discord.network.as_dict()

    async def _fault(self, request: web.Request, body: _Fault) -> Any:
        options = body.model_extra or {}
        return await self._discord.fault(request.match_info["name"], user_id=body.user_id, **options)

    async def _status(self, *_: object) -> Any:
        return self._discord.status()


async def _answers(result: InteractionResult, body: _Answered) -> Any:
    await result.until(lambda current: len(current.replies) >= body.replies, timeout_s=body.timeout_s)
    return result.as_dict()


async def _body(request: web.Request, model: type[BaseModel]) -> BaseModel:
    """Return the request's JSON object; no body stands for `{}`. Raises `LocalDiscordError` with every mistake."""
    try:
        return model.model_validate_json(await request.read() or b"{}")
    except ValidationError as error:
        mistakes = [f"{'.'.join(map(str, each['loc'])) or 'the body'}: {each['msg']}" for each in error.errors()]
        raise LocalDiscordError("; ".join(mistakes)) from error


def _user(request: web.Request) -> int:
    text = request.match_info["user_id"]
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise LocalDiscordError(f"A member is named by their Discord id, for example 2001; {text!r} is none.")
    return int(text)
