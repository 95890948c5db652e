"""A recogniser of the pool says when it can hear nobody, so that Ray puts another in its place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bot.cluster.replica import RecogniserReplica
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FAILED = RecogniserError("The speech model failed several times in a row.")


async def check_health(**recognizer: object) -> None:
    """Ask a replica with a recogniser of these attributes."""
    replica: Any = SimpleNamespace(_recognizer=SimpleNamespace(**recognizer))
    await RecogniserReplica.check_health(replica)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("recognizer", "why"),
    [
        ({"is_running": False, "outage": None}, "has stopped"),
        ({"is_running": True, "outage": Outage(1.0, 11.0, FAILED)}, "several times in a row"),
        ({"is_running": True, "outage": Outage(1.0, None, FAILED)}, "several times in a row"),
    ],
)
async def test_a_recogniser_that_hears_nobody_is_replaced(recognizer: dict[str, object], why: str) -> None:
    """One that refuses every request at once would get more of them than those that work, because it is never busy."""
    with pytest.raises(RecogniserError, match=why):
        await check_health(**recognizer)


@pytest.mark.asyncio
async def test_a_recogniser_that_hears_is_kept() -> None:
    """Nothing is raised, also while its model is loaded again after a single failure."""
    await check_health(is_running=True, outage=None)
