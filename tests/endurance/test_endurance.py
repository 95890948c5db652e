"""The long runs in short: the same pieces with numbers that CI has time for.

`make endurance` runs them in full.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.endurance.databases import PostgresDatabases, SqliteFiles
from tests.endurance.kills import SEED
from tests.endurance.outages import OUTAGES, POSTGRESQL_OUTAGES, measure_outage

if TYPE_CHECKING:
    from tests.endurance.databases import Databases

ROOT = Path(__file__).parents[2]
KILLS, OUTAGE_S = 30, 240.0
# With this seed, few processes play every phase several times.
KILLS_ON_POSTGRESQL, POSTGRESQL_SEED = 16, 57


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Databases:
    return SqliteFiles(tmp_path) if request.param == "sqlite" else PostgresDatabases()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("piece", "name", "kills", "seed", "phases"),
    [
        ("kills", "kills", KILLS, SEED, 4),
        # Whether a kill comes before a phase is over depends on the machine: so few may miss one.
        pytest.param(
            *("kills-postgresql", "kills on PostgreSQL", KILLS_ON_POSTGRESQL, POSTGRESQL_SEED, 3),
            marks=pytest.mark.postgres,
        ),
    ],
    ids=["sqlite", "postgresql"],
)
def test_killed_processes_lose_nothing(
    tmp_path: Path, piece: str, name: str, kills: int, seed: int, phases: int
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
