"""Opt-outs from being heard are stored for each guild separately."""

from __future__ import annotations

from bot.store.database import open_database
from bot.store.servers import OptOutStore
from tests.bot.conftest import Place
from tests.fakes.clock import FakeClock


async def test_an_opt_out_outlives_the_process(place: Place) -> None:
    """An opt-out is still stored after a restart until it is withdrawn, and opting out twice changes nothing."""
    async with open_database(place) as database:
        opt_outs = OptOutStore(database, FakeClock())
        for person_id in (1 << 60, 2, 2):
            await opt_outs.put(10, person_id, out=True)
        await opt_outs.put(11, 3, out=True)
        await opt_outs.put(10, 2, out=False)
        await opt_outs.put(10, 4, out=False)
    async with open_database(place) as database:
        opt_outs = OptOutStore(database, FakeClock())
        assert await opt_outs.of(10) == {1 << 60}
        assert await opt_outs.of(11) == {3}
        assert await opt_outs.of(12) == frozenset()
