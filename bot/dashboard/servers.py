"""The operator's page of all servers: what they have used, and which of them the bot serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cost import NOTHING
from bot.participation.costs import cost_in_words
from bot.store.servers import AdmissionStore, server_id
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.dashboard.access import Json
    from bot.participation.spending import Spending


class OperatorServers:
    """All servers of a database. Every method raises `StoreError`."""

    def __init__(self, spending: Spending, admissions: AdmissionStore) -> None:
        self._spending = spending
        self._admissions = admissions

    async def json(self, names: Mapping[int, str]) -> Json:
        """Return the servers that the bot is on, that have used it in the last 30 days or were decided on, the dearest
        first. `names`: of the servers that this process is on.
        """
        used, decided = await self._spending.month(), await self._admissions.all()
        listed = names.keys() | used.keys() | decided.keys()
        return {
            "used": await self._spending.together(),
            "servers": [
                {
                    "id": str(each),
                    "name": names.get(each, ""),
                    "used": cost_in_words(used.get(each, NOTHING)),
                    "served": decided.get(each),
                }
                for each in sorted(listed, key=lambda each: used.get(each, NOTHING).dearness, reverse=True)
            ],
        }

    async def decide(self, server: str, *, served: bool) -> Json:
        """Admit or refuse a server. Returns what the page tells. Raises `SetupError` if that is no server's id."""
        await self._admissions.put(server_id(server), served=served)
        told = Text("The bot now works on this server. If it is not a member there yet, invite it.")
        return {"told": told if served else Text("I leave this server within ten seconds.")}
