"""A local server with OpenAI's Realtime protocol over a websocket that can also misbehave on request.

The server has no model: its owner passes the functions that recognise, answer and speak. Tests run OpenAI's own client
library against the server.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from aiohttp import web

from rehearsal.servers.loopback import LoopbackServer
from rehearsal.servers.realtime_behaviour import (
    RealtimeBehaviour,
    RealtimeEngines,
    RealtimeMode,
    SharedState,
)
from rehearsal.servers.realtime_session import CLOSE_INTERNAL_ERROR, ServerSession


class LocalRealtimeServer(LoopbackServer):
    """The Realtime server. It also ends its sessions on exit.

    Since the start, `sessions`: the number of connections; `received`: every client event; `asked`: the request behind
    each response; `tools`: the name and the result of every tool call that was carried out.
    """

    def __init__(self, engines: RealtimeEngines, behaviour: RealtimeBehaviour | None = None) -> None:
        super().__init__([web.get("/v1/realtime", self._serve)])
        self.behaviour = behaviour or RealtimeBehaviour()
        self._shared = SharedState(engines, self.behaviour)
        self.received = self._shared.received
        self.asked = self._shared.asked
        self.tools = self._shared.tools
        self.sessions = 0
        self._open: set[ServerSession] = set()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for session in list(self._open):
            await session.hang_up("The server is going away.")
        await super().__aexit__(exc_type, exc, tb)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the client events of one type."""
        return [event for event in self.received if event.get("type") == kind]

    async def expire(self) -> None:
        """End every session now, as if it had reached its maximum length."""
        for session in list(self._open):
            await session.expire()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.behaviour.mode is RealtimeMode.WRONG_KEY:
            return web.json_response({"error": {"message": "Incorrect API key provided."}}, status=401)
        if self.behaviour.mode is RealtimeMode.GONE:
            return web.json_response({"error": {"message": "The engine is overloaded."}}, status=503)
        socket = web.WebSocketResponse(max_msg_size=16 * 1024 * 1024)
        await socket.prepare(request)
        self.sessions += 1
        if self.behaviour.mode is RealtimeMode.BROKEN:
            await socket.close(code=CLOSE_INTERNAL_ERROR, message=b"The server had an error.")
            return socket
        session = ServerSession(self._shared, socket, model=request.query.get("model", ""), number=self.sessions)
        self._open.add(session)
        try:
            await session.serve()
        finally:
            self._open.discard(session)
        return socket
