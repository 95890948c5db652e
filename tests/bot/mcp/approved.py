"""A tool server for tests, and approvals for tests of other things: every tool is approved."""

from __future__ import annotations

from pathlib import Path

from bot.mcp.tools import Approvals

SERVER = Path(__file__).with_name("server.py")


class Everything(frozenset[str]):
    """Has every digest in it."""

    def __contains__(self, _: object) -> bool:
        return True


class AllApproved(Approvals):
    """Approves whatever a server has."""

    def __init__(self) -> None:
        super().__init__(Path())

    def of(self, server: str) -> frozenset[str]:
        return Everything()
