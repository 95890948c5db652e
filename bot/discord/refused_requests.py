"""Logs each request that Discord refused: its route, Discord's code, and where in the form the mistakes are.

Ids, tokens and names are no part of a route. Only the words listed here stand, which are those of Discord's interface;
each other part is `{}`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import aiohttp
import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator

log = structlog.get_logger()

_ROUTES = """
    @me @original api applications archived-threads bot callback channels commands emojis gateway guilds interactions
    members messages oauth2 permissions pins reactions roles scheduled-events soundboard-default-sounds stage-instances
    stickers thread-members threads typing users v10 voice-states webhooks
"""
_FIELDS = """
    allowed_mentions attachments author auto_archive_duration channel_id choices color components content custom_id data
    default description embeds emoji fields filename flags footer image inline label max_length max_values
    message_reference min_length min_values name nick nonce options parse placeholder required row style text thumbnail
    timestamp title type url value values
"""
_CODES = """
    APPLICATION_COMMANDS_DUPLICATE_NAME APPLICATION_COMMAND_INVALID_NAME APPLICATION_COMMAND_TOO_LARGE
    BASE_TYPE_BAD_LENGTH BASE_TYPE_CHOICES BASE_TYPE_INVALID BASE_TYPE_MAX_LENGTH BASE_TYPE_MIN_LENGTH
    BASE_TYPE_REQUIRED BUTTON_COMPONENT_NO_LABEL_OR_EMOJI COMPONENT_CUSTOM_ID_DUPLICATED COMPONENT_LAYOUT_WIDTH_EXCEEDED
    LIST_TYPE_CONVERT MAX_EMBED_SIZE_EXCEEDED MODEL_TYPE_CONVERT NUMBER_TYPE_COERCE NUMBER_TYPE_MAX NUMBER_TYPE_MIN
    REPLIES_UNKNOWN_MESSAGE SELECT_COMPONENT_OPTION_VALUE_DUPLICATED STRING_TYPE_CONVERT UNION_TYPE_CHOICES
    URL_TYPE_INVALID_URL
"""
_FIELD_NAMES = frozenset(_FIELDS.split())
_KNOWN = _FIELD_NAMES.union(_ROUTES.split(), _CODES.split())
# The place of an entry in a list, of which Discord takes at most 100.
_PLACE_DIGITS = 2
# A form may be wrong in every field.
_MOST_MISTAKES = 5
_DEEPEST = 10


def masked(text: str, separator: str) -> str:
    """Return a text with each part that is no word of Discord's as `{}`. A small number behind a field stands."""
    parts = text.split(separator)
    shown = [part if part in _KNOWN or not part else "{}" for part in parts]
    for at, (before, part) in enumerate(pairwise(parts), start=1):
        if before in _FIELD_NAMES and part.isascii() and part.isdecimal() and len(part) <= _PLACE_DIGITS:
            shown[at] = part
    return separator.join(shown)


async def log_refusal(_session: object, _context: object, ended: aiohttp.TraceRequestEndParams) -> None:
    """Log a request that Discord refused. Part of a client's trace, so it sees answers to interactions too."""
    answer = ended.response
    if answer.status < 400:
        return
    told: object = None
    # discord.py reads the same body afterwards.
    with suppress(aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
        told = json.loads(await answer.read())
    code, errors = (told.get("code"), told.get("errors")) if isinstance(told, dict) else (None, None)
    log.info(
        "request_refused",
        method=ended.method,
        route=masked(ended.url.path, "/"),
        status=answer.status,
        code=code if isinstance(code, int) else None,
        mistakes=list(islice(_mistakes(errors, ()), _MOST_MISTAKES)),
    )


def _mistakes(errors: object, place: tuple[str, ...]) -> Iterator[str]:
    """Yield where the mistakes of a form are, and what each is, such as `embeds.0.title.BASE_TYPE_MAX_LENGTH`."""
    if not isinstance(errors, dict) or len(place) > _DEEPEST:
        return
    for name, inner in errors.items():
        if name != "_errors":
            yield from _mistakes(inner, (*place, str(name)))
        elif isinstance(inner, list):
            codes = (str(each.get("code")) for each in inner if isinstance(each, dict))
            yield from (masked(".".join((*place, code)), ".") for code in codes)
