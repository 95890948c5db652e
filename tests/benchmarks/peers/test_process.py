"""A peer library in its own process: the pipe and its failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.errors import PeerError
from benchmarks.local_model import ChatEndpoint
from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.peers.environment import PeerLibrary
from benchmarks.peers.process import peer_process

ENDPOINT = ChatEndpoint("http://127.0.0.1:9/v1", "none")
PYTHON = Path(sys.executable)
PEER = '''
"""A peer that remembers how often it heard something, and prints all the while."""
import os

class Peer:
    version = "peer 1"
    def __init__(self, request):
        self.request, self.heard = request, 0
    async def hear(self, text, *, by_bot):
        print("a library prints")
        self.heard += 1
        if "crash" in text:
            os._exit(3)
        if "fail" in text:
            raise RuntimeError("out of ideas")
    async def snapshot(self):
        return {"summary": f"heard {self.heard}", "folds": 1, "failures": 2, "messages": 1}
    async def barge_in(self, turns, turn_s):
        return {"asked": len(turns), "applied": 0, "behind": 7}
    async def close(self):
        pass

async def open_peer(request):
    if request["model"] == "bad":
        raise ValueError("no such model")
    return Peer(request)
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeerLibrary:
    """Return a library of the test, whose module is found like that of a real peer library."""
    (tmp_path / "own_peer.py").write_text(PEER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return PeerLibrary("own", tmp_path / "own.txt", "own_peer")


@pytest.mark.asyncio
async def test_peer_hears_and_tells(library: PeerLibrary) -> None:
    """A peer's answers come through although its library prints, and turns that it no longer holds are covered by its
    summary.
    """
    async with peer_process(library, PYTHON, ENDPOINT) as peer:
        assert peer.version == "peer 1"
        for number in range(3):
            await peer.hear(ConversationLine("Ada", "Hello.", float(number)))
        snapshot = await peer.snapshot()
        assert (snapshot.injected, snapshot.folds, snapshot.cursor) == ("heard 3", 1, 3)
        assert peer.cost.failures == 2
        barged = await peer.barge_in([ConversationLine("Ada", "Hello.", 0.0)] * 4, turn_s=0.0)
        assert barged == {"asked": 4, "applied": 0, "behind": 7}


@pytest.mark.asyncio
async def test_failure_of_the_library_is_told(library: PeerLibrary) -> None:
    """An error in the library is raised with the library's own message, and the process goes on."""
    async with peer_process(library, PYTHON, ENDPOINT) as peer:
        with pytest.raises(PeerError, match="own failed: RuntimeError: out of ideas"):
            await peer.hear(ConversationLine("Ada", "please fail", 0.0))
        await peer.hear(ConversationLine("Ada", "Hello.", 1.0))


@pytest.mark.asyncio
async def test_death_of_the_library_is_told(library: PeerLibrary) -> None:
    """If the library's process dies, the caller gets an error."""
    async with peer_process(library, PYTHON, ENDPOINT) as peer:
        with pytest.raises(PeerError, match="own stopped answering"):
            await peer.hear(ConversationLine("Ada", "please crash", 0.0))


@pytest.mark.asyncio
async def test_peer_that_does_not_open_is_told(library: PeerLibrary) -> None:
    """An error while the library opens is raised at the first request."""
    with pytest.raises(PeerError, match="no such model"):
        async with peer_process(library, PYTHON, ChatEndpoint("http://127.0.0.1:9/v1", "bad")):
            pass
