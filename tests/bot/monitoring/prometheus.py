"""A real Prometheus on 127.0.0.1 that scrapes one bot, for tests."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from rehearsal.servers.free_port import free_port
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REPOSITORY = Path(__file__).parents[3]
CONFIG = REPOSITORY / "config" / "prometheus.yml"
# `make test` puts it there where none is installed.
OWN = REPOSITORY / ".cache" / "prometheus" / "usr" / "bin"
# The bot's default address.
DEFAULT_TARGET = "127.0.0.1:8095"


def prometheus_program() -> str:
    """Return the path of Prometheus. Skips the test without one, except in CI."""
    found = shutil.which("prometheus", path=os.pathsep.join((os.environ.get("PATH", ""), str(OWN))))
    if found is None:
        why = "no prometheus is installed: `make prometheus` gets one on Debian"
        if os.environ.get("CI"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    return found


class Prometheus:
    """A running Prometheus."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def query(self, expression: str) -> list[Any]:
        """Return the result of an instant query. Fails if the expression cannot be parsed."""
        async with self._http.get("/api/v1/query", params={"query": expression}) as answer:
            body = await answer.json()
        assert body["status"] == "success", f"{expression}: {body.get('error')}"
        return list(body["data"]["result"])

    async def until(self, expression: str) -> None:
        """Wait until a query has a result."""
        for _ in range(round(PATIENCE_S / 0.2)):
            if await self.query(expression):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"Prometheus never had {expression}")


@asynccontextmanager
async def scraping(port: int, folder: Path) -> AsyncIterator[Prometheus]:
    """Run Prometheus with the repository's own configuration, which asks the bot at `port` every second."""
    program = prometheus_program()
    _write_config(port, folder)
    own_port = free_port()
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{own_port}",
        "--log.level=error",
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{own_port}") as http:
            await _ready(http)
            yield Prometheus(http)
    finally:
        process.terminate()
        await process.wait()


def _write_config(port: int, folder: Path) -> None:
    text = CONFIG.read_text("utf-8")
    for before, after in (("scrape_interval: 15s", "scrape_interval: 1s"), (DEFAULT_TARGET, f"127.0.0.1:{port}")):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(text, "utf-8")


async def _ready(http: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with http.get("/-/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
