"""The long runs in short: the same pieces with numbers that CI has time for, and proof that they find what is broken.

`make endurance` runs them in full.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, Turn, TurnKind
from tests.bot.conftest import Place
from tests.compaction.turn_store_contract import turn
from tests.endurance.databases import Databases, PostgresDatabases, SqliteFiles, check_whole
from tests.endurance.kills import SEED
from tests.endurance.outages import OUTAGES, POSTGRESQL_OUTAGES, measure_outage
from tests.endurance.promises import Promises, check, note_of, parts_of, session_name
from tests.endurance.victim import Activity
from tests.fakes.clock import FakeClock

ROOT = Path(__file__).parents[2]
KILLS, OUTAGE_S = 50, 240.0
# With this seed, few processes play every phase several times.
KILLS_ON_POSTGRESQL, POSTGRESQL_SEED = 16, 57


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Databases:
    return SqliteFiles(tmp_path) if request.param == "sqlite" else PostgresDatabases()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("piece", "name", "kills", "seed", "phases", "amid"),
    [
        ("kills", "kills", KILLS, SEED, 4, list(Activity)),
        # What exactly a kill finds the process at, and whether it comes before a phase is over, depends on the machine:
        # so few may miss something.
        pytest.param(
            *("kills-postgresql", "kills on PostgreSQL", KILLS_ON_POSTGRESQL, POSTGRESQL_SEED, 3, []),
            marks=pytest.mark.postgres,
        ),
    ],
    ids=["sqlite", "postgresql"],
)
def test_killed_processes_lose_nothing(
    tmp_path: Path, piece: str, name: str, kills: int, seed: int, phases: int, amid: list[Activity]
) -> None:
    """After these SIGKILLs nothing that was acknowledged is lost or doubled, and every database is whole."""
    file = tmp_path / "kills.json"
    options = ["--only", piece, "--kills", str(kills), "--seed", str(seed), "--json", str(file)]
    command = [sys.executable, "-m", "tests.endurance", *options]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(file.read_text("utf-8"))["ours"][name]
    assert told["kills"] == kills
    assert sum(told["killed_in"].values()) == kills
    assert sum(count > 0 for count in told["killed_in"].values()) >= phases, "a phase was never killed"
    assert [activity.value for activity in amid if not told["killed_amid"][activity.value]] == []


async def test_the_check_finds_what_is_lost(databases: Databases) -> None:
    """A missing turn, a turn with other words, a missing note and a fold that is gone are each found."""
    place = databases.create()
    session_id = session_name(0)
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        for seq in range(3):
            await store.append_turn(session_id, _said(seq))
        await store.add_note(session_id, note_of("n1"))
        assert await check(place, store, _promised("turns 3", "note n1")) == 3
        # The third turn is stored, but its acknowledgement did not come out.
        assert await check(place, store, _promised("turns 2")) == 3
        for line, found in (
            ("turns 4", "3 turns of 4"),
            ("turns 1", "3 turns of 1"),
            ("note n2", "note is gone"),
            ("landed 10", "fold is gone"),
        ):
            with pytest.raises(AssertionError, match=found):
                await check(place, store, _promised("turns 3", line))
        with pytest.raises(AssertionError, match="gone"):
            await check(place, store, _promised("turns 3", "ended"))
        with pytest.raises(AssertionError, match="forgotten"):
            await check(place, store, _promised("turns 3", "forgetting", "forgotten"))
        await store.append_turn(session_id, turn(3))
        with pytest.raises(AssertionError, match="turn 3"):
            await check(place, store, _promised("turns 4"))
    databases.remove(place)


@pytest.mark.postgres
def test_the_check_finds_damage_in_postgresql() -> None:
    """A row without its parent and an index that is not valid are found."""
    databases = PostgresDatabases()
    for harm, found in (
        ("SET session_replication_role = replica; DELETE FROM sessions", "a row without its parent"),
        ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'turns_pkey'::regclass", "turns_pkey"),
    ):
        place = databases.create()
        asyncio.run(_make_tables(place))
        check_whole(place)
        with psycopg.connect(place.get_secret_value()) as connection:
            connection.execute(harm)
        with pytest.raises(AssertionError, match=found):
            check_whole(place)
        databases.remove(place)


async def _make_tables(place: Place) -> None:
    """Make the tables, and store one turn."""
    async with open_database(place) as database:
        await SqlTurnStore(database, FakeClock()).append_turn(session_name(0), turn(0))


def _said(seq: int) -> Turn:
    return replace(turn(seq), kind=TurnKind.SPEECH, parts=parts_of(session_name(0), seq), seq=Seq(seq))


def _promised(*lines: str) -> Promises:
    promises = Promises()
    for line in lines:
        promises.hear(line)
    return promises


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "outage"),
    [
        *(("sqlite", name) for name in OUTAGES),
        *(pytest.param("postgresql", name, marks=pytest.mark.postgres) for name in POSTGRESQL_OUTAGES),
    ],
    indirect=["databases"],
)
async def test_nothing_is_lost_while_nothing_can_be_written(databases: Databases, outage: str) -> None:
    """People talk on while the database is away or the disk is full. Afterwards every turn is stored once."""
    told = await measure_outage((OUTAGES | POSTGRESQL_OUTAGES)[outage], databases, seconds=OUTAGE_S)
    assert told["turns"] == 180
    assert told["lost"] == told["doubled"] == 0
