"""The use of all servers is kept over restarts, waits for a database that is away, and has limits of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from bot.cost import Cost
from bot.participation.costs import HOUR_S
from bot.participation.settings import ParticipationSettings
from bot.participation.spending import Spending
from bot.participation.statistics import over_ceiling
from bot.store.database import Database, open_database
from bot.store.servers import UsageStore
from compaction.errors import StoreError
from tests.fakes.clock import FakeClock

HERE, THERE = 5, 6
DAY_S = 86_400.0


class _Busy(UsageStore):
    """A store that can be away."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.away = False

    async def add(self, used: Mapping[int, Cost], *, now: float) -> None:
        if self.away:
            raise StoreError("It is away.")
        await super().add(used, now=now)


@pytest_asyncio.fixture
async def database(file: Path) -> AsyncIterator[Database]:
    """An empty database."""
    async with open_database(file) as opened:
        yield opened


async def test_a_restart_gives_no_new_hour(database: Database) -> None:
    """What was used before it still counts until an hour has passed."""
    settings, clock = ParticipationSettings(max_calls_per_hour=3), FakeClock()
    for used in (2, 1):
        spending = Spending(UsageStore(database), settings, clock=clock)
        ledger = await spending.open_ledger(HERE)
        assert not ledger.is_over(clock.monotonic())
        ledger.add(Cost(calls=used), now=clock.monotonic())
        await spending.save()
    ledger = await Spending(UsageStore(database), settings, clock=clock).open_ledger(HERE)
    assert ledger.is_over(clock.monotonic())
    assert ledger.total == Cost()
    clock.advance(HOUR_S + 1.0)
    assert not ledger.is_over(clock.monotonic())


async def test_use_waits_for_the_database(database: Database) -> None:
    """Nothing is lost, and nothing counts twice."""
    clock = FakeClock()
    store = _Busy(database)
    spending = Spending(store, ParticipationSettings(), clock=clock)
    ledger = await spending.open_ledger(HERE)
    store.away = True
    for _ in range(2):
        ledger.add(Cost(1, 100), now=clock.monotonic())
        await spending.save()
    store.away = False
    for _ in range(2):
        await spending.save()
    assert await store.by_server(since=0.0) == {HERE: Cost(2, 200)}


@pytest.mark.parametrize(
    ("settings", "ends"),
    [
        (ParticipationSettings(max_tokens_per_day=1_000), "2025-11-21"),
        (ParticipationSettings(max_tokens_per_month=1_000), "2025-12-01"),
    ],
)
async def test_all_servers_share_a_day_and_a_month(
    database: Database, settings: ParticipationSettings, ends: str
) -> None:
    """Use on one server silences another, in this process at once and after a restart, until the day or month ends."""
    begun = datetime(2025, 11, 20, 12, tzinfo=UTC).timestamp()
    clock = FakeClock(begun)
    spending = Spending(UsageStore(database), settings, clock=clock)
    here, there = await spending.open_ledger(HERE), await spending.open_ledger(THERE)
    here.add(Cost(tokens=999), now=clock.monotonic())
    assert not there.is_over(clock.monotonic())
    here.add(Cost(tokens=1), now=clock.monotonic())
    assert there.is_over(clock.monotonic())
    assert over_ceiling(there, clock.monotonic()) == spending.used_up()
    await spending.save()
    again = Spending(UsageStore(database), settings, clock=clock)
    await again.save()
    assert again.used_up() is not None
    clock.advance(datetime.fromisoformat(ends).replace(tzinfo=UTC).timestamp() - begun - 1.0)
    await again.save()
    assert again.used_up() is not None
    clock.advance(2.0)
    await again.save()
    assert again.used_up() is None


async def test_without_a_model_only_speech_has_a_limit(database: Database) -> None:
    """What a model has used before it was taken out silences nobody."""
    clock = FakeClock()
    settings = ParticipationSettings(
        max_calls_per_hour=1,
        max_tokens_per_hour=1,
        max_tokens_per_day=1,
        max_tokens_per_month=1,
        max_spoken_s_per_hour=9,
    )
    with_model = Spending(UsageStore(database), settings, clock=clock)
    (await with_model.open_ledger(HERE)).add(Cost(calls=5, tokens=5), now=clock.monotonic())
    await with_model.save()
    without = Spending(UsageStore(database), settings, clock=clock, billed=False)
    await without.save()
    ledger = await without.open_ledger(HERE)
    assert not ledger.is_over(clock.monotonic())
    ledger.add(Cost(spoken_s=9.0), now=clock.monotonic())
    assert ledger.is_over(clock.monotonic())


async def test_the_operator_is_told_what_all_servers_use(database: Database) -> None:
    """Today and in a month, with what is not stored yet. While the database is away, why not."""
    clock = FakeClock()
    usage = UsageStore(database)
    await usage.add({HERE: Cost(tokens=1_000), THERE: Cost(dollars=2.5)}, now=clock.now() - 2 * DAY_S)
    await usage.add({HERE: Cost(tokens=9_000_000)}, now=clock.now() - 35 * DAY_S)
    spending = Spending(usage, ParticipationSettings(), clock=clock)
    (await spending.open_ledger(HERE)).add(Cost(tokens=3), now=clock.monotonic())
    told = await spending.together()
    assert [each in told for each in (": 3 tokens", "1,003 tokens", "2.50 US dollars")] == [True] * 3
    assert await spending.month() == {HERE: Cost(tokens=1_000), THERE: Cost(dollars=2.5)}
