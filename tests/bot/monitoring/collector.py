"""An OpenTelemetry collector on 127.0.0.1, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Keeps what it is sent. `address`: the value of OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self) -> None:
        self.address = ""
        self.received: list[ExportTraceServiceRequest] = []

    async def collect(self, request: web.Request) -> web.Response:
        """Take spans."""
        self.received.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response()


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Run a collector."""
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.collect)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        collector.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        await runner.cleanup()
