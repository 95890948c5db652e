"""Reads the parts and the body of a REST request, and writes answers and errors in Discord's form.

discord.py compares the content type with `application/json` exactly, so no charset is sent.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

from aiohttp import BodyPartReader, web

from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.limits import RefusedError, check_request
from rehearsal.discord.specification import mistakes_in, route_key

API_VERSION = 10
API_PREFIX = f"/api/v{API_VERSION}"
Handler: TypeAlias = "Callable[[web.Request], Awaitable[web.Response]]"
# A handler that also gets the id of the bot whose token the request has.
BotHandler: TypeAlias = "Callable[[web.Request, int], Awaitable[web.Response]]"


def json_response(body: Any, *, status: int = 200) -> web.Response:
    """Return a response whose content type is exactly `application/json`."""
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


# Only answers of Discord itself have this header. discord.py takes a 429 without it for a ban.
VIA: Final = {"Via": "1.1 google"}


def limited(
    retry_after_s: float, *, everywhere: bool, code: int = 0, message: str = "You are being rate limited."
) -> web.Response:
    """Return Discord's answer to one request too many; `everywhere`: by the limit over all routes."""
    body = {"message": message, "retry_after": retry_after_s, "global": everywhere, "code": code}
    scope = "global" if everywhere else "user"
    answer = json_response(body, status=429)
    answer.headers.update({**VIA, "Retry-After": str(round(retry_after_s) + 1), "X-RateLimit-Scope": scope})
    if everywhere:
        answer.headers["X-RateLimit-Global"] = "true"
    return answer


class RefusedRequest(NamedTuple):
    """A request that was refused. `mistakes`: those in its form, as JSON; "null": Discord's answer names none."""

    route: str
    status: int
    code: int
    mistakes: str


def translated(
    method: str, route: str, handler: Handler, wrong_answers: set[str], refused: Counter[RefusedRequest]
) -> Handler:
    """Answer errors in Discord's form, and hold answers against Discord's specification.

    A body that is not JSON is error 50109. `wrong_answers` gets what an answer lacks, and the client gets the answer.
    `refused` counts the requests that were refused.
    """
    key = route_key(method, route)

    async def answered(request: web.Request) -> web.Response:
        try:
            answer = await handler(request)
        except RefusedError as error:
            refused[RefusedRequest(key, error.status, error.code, json.dumps(error.errors))] += 1
            body = {"message": str(error), "code": error.code}
            return json_response(
                body if error.errors is None else {**body, "errors": error.errors}, status=error.status
            )
        except (json.JSONDecodeError, UnicodeDecodeError):
            body = {"message": "The request body contains invalid JSON.", "code": 50109}
            return json_response(body, status=400)
        if isinstance(answer.body, bytes):
            lacking = mistakes_in(key, answer.status, json.loads(answer.body))
            wrong_answers.update(f"{key} {'.'.join(map(str, place))}: {message}" for place, _, message in lacking)
        return answer

    return answered


def number_in(request: web.Request, name: str) -> int:
    """Return the id that the path has under this name. Raises `RefusedError`."""
    text = request.match_info[name]
    if not text.isascii() or not text.isdigit():
        raise RefusedError(400, 50035, f"Invalid Form Body: {name} is not a snowflake.")
    return int(text)


async def body_of(request: web.Request) -> Any:
    """Return the body of a request, with the files of a multipart form among the message's attachments. Only their
    names and sizes are used. Raises `RefusedError` for one that Discord would refuse, `JSONDecodeError` for none.
    """
    body, files = await _read(request)
    resource = request.match_info.route.resource
    assert resource is not None, "only known routes have handlers"
    check_request(route_key(request.method, resource.canonical.removeprefix(API_PREFIX)), body)
    if files:
        # An answer to an interaction has its message below.
        message = body.get("data") or body
        message["attachments"] = [*(message.get("attachments") or []), *files]
    return body


async def _read(request: web.Request) -> tuple[Any, list[Json]]:
    if request.content_type == "application/x-www-form-urlencoded":
        # py-cord answers an interaction so.
        return json.loads(str((await request.post()).get("payload_json", ""))), []
    if not request.content_type.startswith("multipart/"):
        return await request.json(), []
    body: Any = None
    files: list[Json] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        content = await part.read(decode=True)
        if part.name == "payload_json":
            body = json.loads(content)
        elif part.filename is not None:
            number = time.time_ns() + len(files)
            url = f"{request.scheme}://{request.host}/attachments/0/{number}/{quote(part.filename)}"
            sized = {"id": str(number), "filename": part.filename, "size": len(content)}
            files.append({**sized, "url": url, "proxy_url": url})
    return {} if body is None else body, files
