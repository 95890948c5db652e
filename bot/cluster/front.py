"""Answers HTTP requests on every node: an application around Ray Serve's own, in Serve's proxy process (`node`).

It reads a request, hands the utterance to a free recogniser, and answers with what that heard. Ray Serve would do the
same for a recogniser that takes HTTP requests, but more slowly (decision 0023): there a recogniser fetches the body
from Serve's process with calls of its own, and answers piece by piece. Which recogniser is free is Serve's decision.

It logs no text and no sound.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from bot.background_task import owned_task
from bot.cluster.address import node_folder, read_token
from bot.cluster.ongoing_requests import ongoing_requests
from bot.cluster.state import APP, DEPLOYMENT
from bot.cluster.transcription import Answer, TranscriptionRefusedError, check_caller, refusal, utterance_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp, Receive, Scope, Send

    from bot.cluster.transcription import PooledUtterance

# Ray Serve's own pages: whether it is well, and what it serves. It hands any other one on to a recogniser, and keeps
# what is sent with it, however much, until one has room.
_OF_SERVE = frozenset({"/-/healthz", "/-/routes"})
# Seconds for one request, from its form to its answer. A bot waits for a part of that (`address.POOL_TIMEOUT_S`); what
# takes longer must not keep its sound in memory, nor a machine from leaving.
REQUEST_WITHIN_S = 20.0
_NOBODY = "No recogniser could be asked."

log = structlog.get_logger()


def middlewares() -> list[Middleware]:
    """Return what Ray Serve puts around its own application. Raises `ClusterError` without the cluster's token: then
    Serve does not listen.
    """
    return [Middleware(_front_of_ray, token=read_token(node_folder(Path.cwd())))]


def _front_of_ray(serve: ASGIApp, *, token: str) -> PoolFront:
    return PoolFront(serve, token=token, hear=_heard_by_ray, ongoing=ongoing_requests(serve))


class PoolFront:
    """The application. `serve`: Ray Serve's own. `token`: what a request must bring. `hear`: asks a recogniser; it is
    cancelled when nobody waits for the answer any more. `ongoing`: this process is not ended during its block.
    `within_s`: for one request.
    """

    def __init__(
        self,
        serve: ASGIApp,
        *,
        token: str,
        hear: Callable[[PooledUtterance], Coroutine[Any, Any, Answer]],
        ongoing: Callable[[], AbstractContextManager[None]],
        within_s: float = REQUEST_WITHIN_S,
    ) -> None:
        self._serve = serve
        self._token = token
        self._hear = hear
        self._ongoing = ongoing
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. No other than for a page of Serve's own gets past this."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        elif scope["path"] in _OF_SERVE:
            await self._serve(scope, receive, send)
        else:
            with self._ongoing():
                if (answer := await self._answer(Request(scope, receive))) is not None:
                    await JSONResponse(dict(answer.body), answer.status)(scope, receive, send)

    async def _answer(self, request: Request) -> Answer | None:
        """Return the answer to one request, or None if nobody waits for it any more."""
        try:
            check_caller(request.headers, method=request.method, path=request.url.path, token=self._token)
            async with asyncio.timeout(self._within_s):
                return await self._heard(await _utterance(request), request.receive)
        except TranscriptionRefusedError as refused:
            return refusal(refused.status, str(refused))
        except ClientDisconnect:
            return None
        # Ray's errors have no base: a recogniser that was killed, one that is not there, a connection. Or it took long.
        except Exception as error:  # noqa: BLE001 - the caller then hears by itself
            log.warning("pool_call_failed", error_class=type(error).__name__)
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, _NOBODY)

    async def _heard(self, utterance: PooledUtterance, receive: Receive) -> Answer | None:
        """Ask a recogniser; return None if the caller goes before it has answered."""
        async with (
            owned_task(_gone(receive), name="pool-caller-gone") as gone,
            owned_task(self._hear(utterance), name="pool-hearing") as hearing,
        ):
            await asyncio.wait({hearing, gone}, return_when=asyncio.FIRST_COMPLETED)
            return hearing.result() if hearing.done() else None


async def _gone(receive: Receive) -> None:
    """Return when the connection is closed. The request's body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _utterance(request: Request) -> PooledUtterance:
    """Return what a request brings. Raises `TranscriptionRefusedError` and `ClientDisconnect`."""
    try:
        async with request.form(max_files=1, max_fields=20) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The request has no file.")
            return utterance_of(form, await file.read(), request.headers)
    except MultiPartException as error:
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The form is broken or has too many parts.") from error


async def _heard_by_ray(utterance: PooledUtterance) -> Answer:
    """Ask a recogniser that Ray Serve chooses; it waits for one if none is there or has room."""
    from ray import serve

    # Ray Serve keeps one for each process, and follows with it where recognisers are.
    handle: Any = serve.get_deployment_handle(DEPLOYMENT, APP)
    asked = handle.options(
        method_name="answers", stream=True, request_serialization="pickle", response_serialization="pickle"
    ).remote(utterance)
    try:
        # To the end: Serve counts the request until then.
        [answer] = [each async for each in asked]
    except asyncio.CancelledError:
        asked.cancel()
        raise
    heard: Answer = answer
    return heard
