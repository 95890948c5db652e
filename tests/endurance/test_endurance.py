"""The long runs in short: the same pieces with numbers that CI has time for, and proof that they find what is broken.

`make endurance` runs them in full.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, TurnKind
from tests.compaction.turn_store_contract import turn
from tests.endurance.curves import FIGURES, draw
from tests.endurance.databases import PostgresDatabases, SqliteFiles, check_whole
from tests.endurance.full_caches import fill_interned_strings
from tests.endurance.kept_descriptors import keep_descriptors
from tests.endurance.kills import SEED
from tests.endurance.moments import Activity
from tests.endurance.outages import OUTAGES, POSTGRESQL_OUTAGES, measure_outage
from tests.endurance.promises import Promises, check, note_of, parts_of, session_name
from tests.endurance.report import KILLED, endurance_report
from tests.endurance.samples import LeastUse, Sample, Use, allocated_mb, figures
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json
    from compaction.model import Turn
    from tests.bot.conftest import Place
    from tests.endurance.databases import Databases

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
        ("kills", "kills", KILLS, SEED, 5, (Activity.TURN, Activity.FOLD, Activity.MIGRATION, Activity.FORGETTING)),
        # What exactly a kill finds the process at, and whether it comes before a phase is over, depends on the machine:
        # so few may miss something.
        pytest.param(
            *("kills-postgresql", "kills on PostgreSQL", KILLS_ON_POSTGRESQL, POSTGRESQL_SEED, 3, ()),
            marks=pytest.mark.postgres,
        ),
    ],
    ids=["sqlite", "postgresql"],
)
def test_killed_processes_lose_nothing(
    tmp_path: Path, piece: str, name: str, kills: int, seed: int, phases: int, amid: Sequence[Activity]
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
    assert sum(told["killed_while"].values()) >= kills
    for activity in amid:
        assert told["killed_while"][activity.value] > 0, f"no kill came while {activity.value}"


@pytest.mark.asyncio
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
        with pytest.raises(AssertionError, match="end is gone"):
            await check(place, store, _promised("turns 3", "ended"))
        with pytest.raises(AssertionError, match="was forgotten and is there"):
            await check(place, store, _promised("turns 3", "forgetting", "forgotten"))
        await store.append_turn(session_id, turn(3))
        with pytest.raises(AssertionError, match="turn 3 has other words"):
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
@pytest.mark.asyncio
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


def test_every_piece_has_its_target() -> None:
    """The report judges the kills on each kind of database, and each outage, under the name of its figures."""
    pieces: dict[str, Json] = {piece: {"kills": 1_000} for piece in KILLED}
    pieces |= {outage: {"lost": 0, "turns_said_meanwhile": 900} for outage in (*OUTAGES, *POSTGRESQL_OUTAGES)}
    met = [target.name for target in endurance_report(pieces).targets if target.met]
    assert met == [
        "SIGKILLs with nothing lost, doubled or damaged",
        "SIGKILLs on PostgreSQL with nothing lost, doubled or damaged",
        "turns lost of an hour with database away",
        "turns lost of an hour with disk full",
        "turns lost of an hour with PostgreSQL away",
        "turns lost of an hour with PostgreSQL's disk full",
    ]


def test_a_growth_is_judged_only_if_its_interval_allows() -> None:
    """Samples that scatter so much that the growth may be on either side of what is allowed tell nothing; the same
    samples for longer do.
    """

    def judged(minutes: int, scatter_mb: float) -> bool | None:
        wave = (0.0, 0.6, -1.0, 0.3, 1.0, -0.6, -0.2)
        samples = [
            Sample(60.0 * number, 700 + scatter_mb * wave[number % len(wave)], 60.0, 80.0, 7, 20, 23, 5_000)
            for number in range(1, minutes + 1)
        ]
        report = endurance_report({"live room": figures(samples)})
        (target,) = (each for each in report.targets if each.name == "live room: memory grows by, MB an hour")
        assert (target.met is None) == any("too short to tell" in each for each in report.remarks)
        return target.met

    assert [judged(20, 0.1), judged(20, 20.0), judged(240, 20.0)] == [True, None, True]


def test_a_sample_is_the_least_of_each_figure() -> None:
    """What is used for a moment between two samples is no growth, whichever figure it is in; a figure that nobody can
    tell stays unknown.
    """
    recognising, asking, unknown = Use(720.0, 1480.0, 21, 28), Use(660.0, 1336.0, 22, 29), Use(670.0, None, 21, 28)
    assert recognising.least(asking) == asking.least(recognising) == Use(660.0, 1336.0, 21, 28)
    assert asking.least(unknown) == Use(660.0, 1336.0, 21, 28)
    assert unknown.least(unknown).allocated_mb is None
    least = LeastUse()
    least.look()
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    during = LeastUse().take()
    for each in opened:
        os.close(each)
    assert least.take().descriptors == during.descriptors - 3


def test_what_malloc_has_handed_out_is_told_apart() -> None:
    """Memory that grows by 6 MB an hour is told with what malloc has handed out, which grows by 1 here."""
    samples = [
        Sample(60.0 * number, 700 + number / 10, 60.0, 1_300 + number / 60, 7, 20, 23, 5_000) for number in range(1, 91)
    ]
    report = endurance_report({"live room": figures(samples)})
    (target,) = (each for each in report.targets if each.name == "live room: memory grows by, MB an hour")
    assert target.met is False
    assert target.sample.endswith("what malloc has handed out by 1 to 1 MB an hour")


def test_kept_descriptors_are_those_of_later_connections(tmp_path: Path) -> None:
    """What SQLite keeps of connections that were closed, later ones use: no other descriptors of the file come."""
    file = tmp_path / "room.db"

    def descriptors() -> int:
        return sum(each.resolve() == file for each in Path("/proc/self/fd").iterdir())

    with closing(sqlite3.connect(file)) as first:
        first.execute("PRAGMA journal_mode = WAL")
        first.execute("CREATE TABLE said (words TEXT)")
        keep_descriptors(file, 4)
        assert descriptors() == 5
        with ExitStack() as stack:
            for _ in range(3):
                later = stack.enter_context(closing(sqlite3.connect(file)))
                later.execute("SELECT words FROM said").fetchall()
            assert descriptors() == 5
        assert descriptors() == 5


def test_new_names_take_no_more_once_the_interned_strings_have_their_size() -> None:
    """As many names as make the dictionary be copied several times."""
    fill_interned_strings()
    before = allocated_mb()
    if before is None:
        pytest.skip("only glibc tells what is allocated")
    for number in range(400_000):
        sys.intern(f"a new name {number}")
    after = allocated_mb()
    assert after is not None
    assert after - before < 1.0


def test_growth_is_told_and_drawn() -> None:
    """Memory that grows by 6 MB an hour misses its target, threads that stay meet it, and every figure has a curve."""
    samples = [Sample(300.0 * number, 200.0 + number / 2, 60.0, 80.0, 7, 20, 23, 5_000) for number in range(1, 97)]
    report = endurance_report({"virtual room": figures(samples)})
    met = {each.name: each.met for each in report.targets if "virtual" in each.name}
    assert met["hours of a room in the virtual clock"] is True
    assert met["virtual room: memory grows by, MB an hour"] is False
    assert met["virtual room: more threads in the second half"] is True
    assert met["virtual room: largest payload, tokens"] is True
    assert {each.met for each in report.targets if "virtual" not in each.name} == {None}
    # Some minutes after the warm-up are too short to tell.
    short = figures([replace(each, at_s=each.at_s / 28) for each in samples])
    flat = short["flat"]
    assert isinstance(flat, dict)
    assert (flat["memory_mb_an_hour"], flat["more_threads"]) == (None, 0)
    (remark,) = endurance_report({"live room": short}).remarks[1:]
    assert "the 9 minutes after the warm-up are too short" in remark
    assert "memory rose by 23.5 MB" in remark
    assert len(report.remarks) == 1
    lists = {"at_s": [each.at_s for each in samples], **{name: [1.0] * len(samples) for name in FIGURES}}
    drawn = draw({"Eight hours": lists, "Nothing": {"at_s": []}})
    assert drawn.count("<polyline") == 2 * len(FIGURES)
    assert drawn.count("<rect") == len(FIGURES), "the warm-up is shaded"
    assert "+0 MB an hour" in drawn
    assert "8 h" in drawn
    assert "Nothing" not in drawn
