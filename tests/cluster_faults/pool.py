"""The recogniser pool that the rooms use, and its death: who recognised what, and what people were told."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.cluster.address import POOL_IP, read_token
from rehearsal.errors import LocalDiscordError
from tests.cluster_faults.rooms import SPEAKERS

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from benchmarks.report import Json
    from tests.cluster_faults.faults import Cluster
    from tests.cluster_faults.rooms import RoomUnderTest

# How often a room says how it is.
LOOK_EVERY_S = 1.0
POOL, OWN = "pool", "own"
# The pool is away for at least so long, and until every room has missed it twice: then it is not asked any more.
AWAY_S, AWAY_WITHIN_S = 20.0, 60.0
_MISSED = 2
# A room tries the pool again a minute after it was found away (`voice.circuit_breaker`), with somebody's next sentence.
USED_AGAIN_WITHIN_S = 120.0
_UP_WITHIN_S = 60.0
# How `/status` begins to tell of it.
SAYS = "The cluster's speech recognition"


@dataclass(slots=True)
class Pool:
    """A pool of one recogniser, in a process of its own. `script_url`: the recogniser of the test. `folder`: gets its
    output.
    """

    port: int
    script_url: str
    folder: Path
    token: str = ""
    _process: Process | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        """Return what rooms are told: HOST:PORT."""
        return f"{POOL_IP}:{self.port}"

    @asynccontextmanager
    async def running(self, cluster_folder: Path) -> AsyncIterator[None]:
        """Run the pool during the block. `cluster_folder`: has the token. Raises TimeoutError."""
        self.token = await asyncio.to_thread(read_token, cluster_folder)
        await self.start()
        try:
            yield
        finally:
            await self.kill()

    async def start(self) -> None:
        """Start it, and return when it answers. Raises TimeoutError."""
        with (self.folder / "pool.txt").open("ab") as output:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.cluster_faults.pool_server", str(self.port), self.script_url),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        assert process.stdin is not None, "a pipe"
        process.stdin.write(f"{self.token}\n".encode())
        process.stdin.close()
        async with asyncio.timeout(_UP_WITHIN_S):
            while not await self._listens():
                assert process.returncode is None, "it runs"
                await asyncio.sleep(0.2)

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(POOL_IP, self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class KilledPool:
    """SIGKILL to the recogniser pool, which is started again: rooms hear by themselves, and use it again later."""

    def __init__(self) -> None:
        self._rooms: Sequence[RoomUnderTest] = ()
        self._struck_at = self._back_at = 0.0
        self._told: list[bool] = []

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        self._rooms = list(cluster.rooms)
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        assert cluster.pool is not None, "rooms use one"
        self._struck_at = time.monotonic()
        await cluster.pool.kill()

    async def mend(self, cluster: Cluster) -> None:
        assert cluster.pool is not None, "rooms use one"
        await asyncio.sleep(AWAY_S)
        await self._until_all_heard_by(OWN, since=self._struck_at, times=_MISSED, within_s=AWAY_WITHIN_S - AWAY_S)
        # A room in another process tells how it is at intervals.
        await asyncio.sleep(LOOK_EVERY_S)
        self._told = [await _says_so(room) for room in self._rooms]
        await cluster.pool.start()
        self._back_at = time.monotonic()
        await self._until_all_heard_by(POOL, since=self._back_at, times=1, within_s=USED_AGAIN_WITHIN_S)

    def facts(self) -> dict[str, Json]:
        """Return how many rooms did otherwise than they should while the pool was there, away, and back."""
        rooms = {room.number for room in self._rooms}
        return {
            "rooms_that_did_not_use_it": len(rooms - self._heard_by(POOL, until=self._struck_at)),
            "rooms_that_did_not_say_so": self._told.count(False),
            "rooms_that_did_not_hear_by_themselves": len(
                rooms - self._heard_by(OWN, since=self._struck_at, until=self._back_at)
            ),
            "rooms_that_did_not_use_it_again": len(rooms - self._heard_by(POOL, since=self._back_at)),
        }

    async def _until_all_heard_by(self, recogniser: str, *, since: float, times: int, within_s: float) -> None:
        for _ in range(round(within_s)):
            if len(self._heard_by(recogniser, since=since, times=times)) == len(self._rooms):
                return
            await asyncio.sleep(1)

    def _heard_by(
        self, recogniser: str, *, since: float = 0.0, until: float = float("inf"), times: int = 1
    ) -> set[int]:
        """Return the rooms of which a recogniser has recognised speech so often, in that time."""
        done = self._rooms[0].takes.recognised
        counts = Counter(each.room for each in done if each.recogniser == recogniser and since <= each.at < until)
        return {room for room, count in counts.items() if count >= times}


async def _says_so(room: RoomUnderTest) -> bool:
    """Return whether `/status` tells that the pool is away."""
    try:
        return SAYS in (await room.discord.invoke(SPEAKERS[0][0], "status")).content
    except LocalDiscordError:
        return False
