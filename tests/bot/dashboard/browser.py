"""A browser without a page, for the dashboard's addresses."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from tests.bot.dashboard.house import DashboardHouse

READ = (
    "rooms",
    "rooms/evening",
    "sessions",
    "sessions/evening",
    "sessions/evening/replies",
    "search?q=password",
    "servers",
)


class Browser:
    """A browser without a page."""

    def __init__(self, house: DashboardHouse, http: aiohttp.ClientSession) -> None:
        self.house = house
        self.http = http

    async def post(self, path: str, body: object = None, *, origin: str | None = None) -> tuple[int, Any]:
        """Send JSON as our page does, or as a page of another origin."""
        headers = {"Origin": self.house.base if origin is None else origin}
        async with self.http.post(self.house.base + path, json=body or {}, headers=headers) as answer:
            return answer.status, await answer.json() if "json" in answer.content_type else await answer.text()

    async def get(self, path: str) -> tuple[int, Any]:
        """Read JSON."""
        async with self.http.get(f"{self.house.base}/api/{path}") as answer:
            return answer.status, await answer.json()

    async def log_in(self) -> None:
        """Use the login link."""
        assert (await self.post("/api/login", {"token": self.house.links[-1].partition("#")[2]}))[0] == 200

    async def everything(self) -> str:
        """Return all that can be read, as one text."""
        texts = [json.dumps((await self.get(path))[1]) for path in READ]
        replies = (await self.get("sessions/evening/replies"))[1]["replies"]
        texts += [json.dumps((await self.get(f"sessions/evening/replies/{each['turn']}"))[1]) for each in replies]
        return "\n".join(texts)
