"""The independent Node.js client as a child process: start it, send it commands, and read its events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rehearsal.discord import LocalDiscord
from tests.node.packages import NODE
from tests.patience import PATIENCE_S, patiently
from tests.rehearsal.discord.stock import until


class NodeClient:
    """A running client. It writes its events as JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def event(self, name: str) -> dict[str, Any]:
        """Return the next event with this name. Other events are skipped."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while line := await self._process.stdout.readline():
                event: dict[str, Any] = json.loads(line)
                if event["event"] == name:
                    return event
        raise AssertionError(f"the independent client ended before {name!r}: {await self.complaints()}")

    async def send(self, line: str) -> None:
        """Send a command: `announce`, `play`, `server`, `status` or `stop`."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    async def play(self, local: LocalDiscord, user_id: int) -> None:
        """Let it play its tone, once the voice server knows that it speaks: the tone's beginning may overtake op 5."""
        await self.send("announce")
        await until(lambda: (leg := local.media.leg_of(user_id)) is not None and leg.announced, "its op 5")
        await self.send("play")

    async def complaints(self) -> str:
        """Return the client's stderr after it has ended."""
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode()

    async def stop(self) -> dict[str, Any]:
        """Stop the client and return its counters. Its recording is complete afterwards."""
        await self.send("stop")
        counted = await self.event("stopped")
        assert await patiently(self._process.wait()) == 0
        return counted


@contextlib.asynccontextmanager
async def node_client(
    local: LocalDiscord, script: Path, *, user_id: int, listen: int, record: Path, hertz: int = 660
) -> AsyncIterator[NodeClient]:
    """Run the client until the block is left. It is killed if it is still running."""
    options = {"control": local.control_base, "user": user_id, "listen": listen, "record": record, "hertz": hertz}
    arguments = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    process = await asyncio.create_subprocess_exec(
        NODE,
        script,
        *arguments,
        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(local.certificate_path)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield NodeClient(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
