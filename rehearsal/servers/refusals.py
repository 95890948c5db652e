"""The ways in which a local model server may refuse before it does any work, as OpenAI's answers look."""

from __future__ import annotations

from enum import StrEnum

from aiohttp import web


class Refusal(StrEnum):
    """Why a request is refused."""

    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    BROKEN = "broken"


_ANSWERS = {
    Refusal.WRONG_KEY: (401, "Incorrect API key provided."),
    Refusal.UNKNOWN_MODEL: (404, "The model does not exist."),
    Refusal.RATE_LIMITED: (429, "Rate limit reached."),
    Refusal.REFUSED: (400, "Invalid request."),
    Refusal.BROKEN: (500, "The engine died."),
}


def refusal(why: Refusal) -> web.Response:
    """Return the answer that says so."""
    status, message = _ANSWERS[why]
    return problem(status, message)


def problem(status: int, message: str) -> web.Response:
    """Return an error as OpenAI's API tells it."""
    return web.json_response(
        {"error": {"message": message, "type": "error", "param": None, "code": None}}, status=status
    )
