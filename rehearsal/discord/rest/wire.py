"""Reads the parts and the body of a REST request, and writes answers and errors in Discord's form.

discord.py compares the content type with `application/json` exactly, so no charset is sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import BodyPartReader, web

from rehearsal.discord.limits import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rehearsal.discord.guild.payloads import Json

Handler: TypeAlias = "Callable[[web.Request], Awaitable[web.Response]]"
# A handler that also gets the id of the bot whose token the request has.
BotHandler: TypeAlias = "Callable[[web.Request, int], Awaitable[web.Response]]"


def json_response(body: Any, *, status: int = 200) -> web.Response:
    """Return a response whose content type is exactly `application/json`."""
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


def translated(handler: Handler) -> Handler:
    """Answer errors in Discord's form. A body that is not JSON is error 50109."""

    async def answered(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except RefusedError as error:
            return json_response({"message": str(error), "code": error.code}, status=error.status)
        except (json.JSONDecodeError, UnicodeDecodeError):
            body = {"message": "The request body contains invalid JSON.", "code": 50109}
            return json_response(body, status=400)

    return answered


def number_in(request: web.Request, name: str) -> int:
    """Return the id that the path has under this name. Raises `RefusedError`."""
    text = request.match_info[name]
    if not text.isascii() or not text.isdigit():
        raise RefusedError(400, 50035, f"Invalid Form Body: {name} is not a snowflake.")
    return int(text)


async def message_body(request: web.Request) -> Json:
    """Return the fields of a message from JSON or a multipart form. Only the name and size of a file are used."""
    if not request.content_type.startswith("multipart/"):
        body = await request.json()
        if not isinstance(body, dict):
            raise RefusedError(400, 50035, "Invalid Form Body")
        return body
    fields: Json = {}
    attachments: list[Json] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        content = await part.read(decode=True)
        if part.name == "payload_json":
            decoded = json.loads(content)
            fields |= decoded if isinstance(decoded, dict) else {}
        elif part.filename is not None:
            attachments.append(_attachment(len(attachments), part.filename, len(content)))
    if attachments:
        fields["attachments"] = attachments
    return fields


def _attachment(index: int, filename: str, size_bytes: int) -> Json:
    return {"id": str(index), "filename": filename, "size": size_bytes, "url": "", "proxy_url": ""}
