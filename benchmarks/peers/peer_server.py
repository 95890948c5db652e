"""The counterpart of `benchmarks.peers.process` in the other library's environment: it reads and writes JSON lines.

Run as `python peer_server.py MODULE`. The module next to this file has `async def open_peer(request) -> peer`, and the
peer has `version`, `close`, and a method for each request that it is sent. This file imports nothing of Roomtone, which
is not installed in that environment.

    {"op": "open", ...}                                              -> {"version"}
A peer that remembers, opened with {"base_url", "model", "api_key", "max_chars", "recent", "batch"}:
    {"op": "hear", "text", "by_bot"}                                 -> {}   when everything due is folded
    {"op": "snapshot"}                                               -> {"summary", "folds", "failures", "messages"}
    {"op": "barge_in", "turns": [{"text", "by_bot"}], "turn_s"}       -> {"asked", "applied", "behind"}
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from typing import Any


async def serve(module_name: str, answers: int) -> None:
    """Answer requests until stdin ends. A failure is not raised; the answer is then `{"error"}`."""
    module = importlib.import_module(module_name)
    peer: Any = None
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            try:
                match request.pop("op"):
                    case "open":
                        peer = await module.open_peer(request)
                        answer = {"version": peer.version}
                    case "hear" | "snapshot" | "barge_in" | "speak" as operation:
                        answer = await getattr(peer, operation)(**request) or {}
                    case other:
                        answer = {"error": f"unknown request {other}"}
            except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer
                answer = {"error": f"{type(error).__name__}: {error}"[:500]}
            os.write(answers, (json.dumps(answer) + "\n").encode())
    finally:
        if peer is not None:
            await peer.close()


if __name__ == "__main__":
    # Libraries print to stdout, so redirect stdout to stderr and keep the original stdout for the answers.
    channel = os.dup(1)
    os.dup2(2, 1)
    asyncio.run(serve(sys.argv[1], channel))
