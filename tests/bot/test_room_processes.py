"""`roomtone run --rooms processes`: a room whose process is killed is back, and no turn is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.servers.free_port import free_port
from tests.bot.bot_process import ADA, CLIPS, ada_in, logged, roomtone, roomtone_run, told, two_machines
from tests.bot.test_takeover import said, until
from tests.bot.test_two_machines import NORTH, SOUTH, has_spoken, sessions, spoken
from tests.patience import PATIENCE_S
from tests.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import SecretStr

    from rehearsal.people.person import ScriptedPerson
    from tests.bot.bot_process import Process


def running(folder: Path) -> list[int]:
    """Return the rooms' processes that run, oldest first."""
    pids = [int(str(line["pid"])) for line in logged(folder, "room_process_started")]
    return [pid for pid in pids if _is_running(pid)]


def _is_running(pid: int) -> bool:
    """Return whether a process has not ended; one whose parent was killed may never be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def met(ada: ScriptedPerson) -> None:
    """Wait until the bot is in Ada's channel and hears her."""
    async with asyncio.timeout(PATIENCE_S):
        await ada.meet(ROOMTONE_BOT_ID)


@asynccontextmanager
async def bot_with_ada(
    folder: Path, whisper: Path, database: SecretStr
) -> AsyncIterator[tuple[Process, LocalDiscord, ScriptedPerson]]:
    """Run a bot whose rooms have processes of their own. It has been called, and hears Ada."""
    url = {"ROOMTONE_DATABASE_URL": database.get_secret_value()}
    async with (
        LocalDiscord() as local,
        ada_in(local) as ada,
        roomtone_run(local, folder, whisper, "--rooms", "processes", **url) as bot,
    ):
        await bot.says("is on Discord")
        await local.invoke(ADA, "join")
        await until(lambda: len(logged(folder, "room_opened")) == 1, "the room")
        await met(ada)
        yield bot, local, ada


async def measured(port: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return what the bot answers to Prometheus, by name and labels."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value for each in families for sample in each.samples
    }


async def rooms_on(port: int) -> dict[str, float]:
    """Return how many rooms the bot's metrics have of each machine."""
    figures = await measured(port)
    return {
        dict(labels)["machine"]: value for (name, labels), value in figures.items() if name == "roomtone_machine_rooms"
    }


async def shown_machines(folder: Path) -> list[dict[str, Any]]:
    """Return the machines that the dashboard shows to the operator. The login link of the data folder is used up."""
    link = (folder / "dashboard-link").read_text("utf-8").strip()
    base, _, token = link.partition("/login#")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        async with http.post(f"{base}/api/login", json={"token": token}, headers={"Origin": base}) as answer:
            assert answer.status == 200
        async with http.get(f"{base}/api/machines") as answer:
            found: list[dict[str, Any]] = (await answer.json())["machines"]
    return found


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_killed_room_goes_on_and_nothing_is_lost_or_doubled(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """The room's process is killed while Ada speaks. Another one goes on with the session: what was said before is
    there once, what is said afterwards is heard, and the bot stays as silent as it was. /status knows the room,
    /opt-out takes effect in it, /leave ends it.
    """
    async with bot_with_ada(tmp_path, whisper_model_dir, postgres_place) as (bot, local, ada):
        assert "I am silent until" in (await local.invoke(ADA, "quiet")).replies[0].content
        await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
        await until(lambda: len(said(postgres_place)) == 1, "the first turn")
        speaking = asyncio.create_task(ada.say(Clip.load(CLIPS / "3-ada.ogg")))
        await asyncio.sleep(0)
        os.kill(running(tmp_path)[0], signal.SIGKILL)
        await until(lambda: len(logged(tmp_path, "room_opened")) == 2, "the room's next process")
        await speaking
        await met(ada)
        await ada.say(Clip.load(CLIPS / "1-ada.ogg"))
        await until(lambda: len(said(postgres_place)) >= 2, "a turn in the next process")
        state = (await local.invoke(ADA, "status")).replies[0].content
        assert "I have been in" in state
        assert "I am silenced for now" in state
        assert "no longer hear you" in (await local.invoke(ADA, "opt-out")).replies[0].content
        spoken = said(postgres_place)
        await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
        await local.invoke(ADA, "leave")
        await until(lambda: len(logged(tmp_path, "session_ended")) == 1, "the session's end")
        assert said(postgres_place) == spoken
        status, err = await bot.ends(signal.SIGTERM)
        assert (status, err.count("Traceback")) == (0, 0)
    assert running(tmp_path) == []
    assert [line["resumed"] for line in logged(tmp_path, "room_opened")] == [False, True]
    with psycopg.connect(postgres_place.get_secret_value()) as database:
        numbers = [seq for (seq,) in database.execute("SELECT seq FROM turns ORDER BY seq").fetchall()]
        sessions = database.execute("SELECT count(*) FROM sessions").fetchone()
    assert numbers == list(range(len(numbers)))
    assert len(spoken) == len({words for _, words in spoken})
    assert sessions == (1,)


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_room_that_loses_its_process_while_the_database_is_away_waits_for_it(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """The process that waits is asked again and again, and runs the room once the database is back."""
    server = running_server()
    async with bot_with_ada(tmp_path, whisper_model_dir, postgres_place) as (bot, local, ada):
        await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
        await until(lambda: len(said(postgres_place)) == 1, "the first turn")
        # One for each of its seats.
        await until(lambda: len(logged(tmp_path, "gateway_link_opened")) == 4, "the process that waits")
        first, waits = running(tmp_path)
        server.stop()
        try:
            os.kill(first, signal.SIGKILL)
            await until(
                lambda: len(logged(tmp_path, "room_seat_handed_back")) >= 2, "two attempts without the database"
            )
        finally:
            server.start()
        await until(lambda: len(logged(tmp_path, "room_opened")) == 2, "the room's next process")
        assert waits in running(tmp_path)
        await met(ada)
        await ada.say(Clip.load(CLIPS / "3-ada.ogg"))
        await until(lambda: len(said(postgres_place)) >= 2, "a turn in the next process")
        await local.invoke(ADA, "leave")
        await until(lambda: len(logged(tmp_path, "session_ended")) == 1, "the session's end")
        status, err = await bot.ends(signal.SIGTERM)
        assert (status, err.count("Traceback")) == (0, 0)
    assert [line["resumed"] for line in logged(tmp_path, "room_opened")] == [False, True]
    assert len(logged(tmp_path, "room_not_opened")) == 1


@pytest.mark.rehearsal
@pytest.mark.asyncio
async def test_rooms_in_processes_need_a_server(tmp_path: Path, whisper_model_dir: Path) -> None:
    """One file of SQLite has one writer, so the bot says at its start what it needs."""
    async with (
        LocalDiscord() as local,
        roomtone_run(local, tmp_path, whisper_model_dir, "--rooms", "processes") as bot,
    ):
        status, err = await bot.ends()
    assert status == 1
    assert "ROOMTONE_DATABASE_URL" in err
    assert "Traceback" not in err


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_room_on_another_machine_is_drained_and_goes_on(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Two data folders are two machines. The room begins on the one that only has the cluster's token. That one is
    told to end: the room goes on beside the gateway process, with the same session, and nothing is lost or doubled.
    `roomtone tail` on the first machine shows the room on both, and its metrics have the figures of both. Its dashboard
    says that the other one is gone.
    """
    here, north, address = two_machines(tmp_path)
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    port = free_port()
    listening = ("--rooms", "processes", "--rooms-listen", address)
    offering = ("cluster", "rooms", "--gateway", address, "--rooms", "2", "--name", "north")
    async with (
        LocalDiscord() as local,
        ada_in(local) as ada,
        roomtone_run(local, here, whisper_model_dir, *listening, ROOMTONE_WEB__PORT=str(port), **url) as bot,
    ):
        await bot.says("is on Discord")
        async with roomtone(local, north, whisper_model_dir, *offering, **url) as machine:
            await until(lambda: len(logged(here, "room_process_offered")) == 1, "the other machine's process")
            await local.invoke(ADA, "join")
            await until(lambda: len(logged(north, "room_opened")) == 1, "the room on the other machine")
            await met(ada)
            assert await rooms_on(port) == {"here": 0, "north": 1}
            await local.invoke(ADA, "quiet")
            await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
            await until(lambda: len(said(postgres_place)) == 1, "the first turn")
            async with roomtone(local, here, whisper_model_dir, "tail", "--event", "turn_recorded", "-f") as tail:
                await tail.says("machine=north")
            status, err = await machine.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
        await until(lambda: len(logged(here, "room_opened")) == 1, "the room here")
        await met(ada)
        await ada.say(Clip.load(CLIPS / "3-ada.ogg"))
        await until(lambda: len(said(postgres_place)) == 2, "a turn here")
        own, other = await shown_machines(here)
        assert (own["machine"], own["rooms"], own["with_rooms"], own["gone_since"]) == ("", 1, 1, None)
        assert (other["machine"], other["rooms"], other["waiting"]) == ("north", 0, 0)
        assert other["gone_since"] is not None
        await local.invoke(ADA, "leave")
        await until(lambda: len(logged(here, "session_ended")) == 1, "the session's end")
        # Its process has told its last figures by then.
        await until(lambda: len(logged(here, "room_ended")) == 1, "the room's end")
        figures = await measured(port)
        for machine_name in ("north", "here"):
            heard = figures[
                "roomtone_recognitions_total", frozenset({("machine", machine_name), ("outcome", "completed")})
            ]
            assert heard >= 1
            labels = frozenset({("machine", machine_name), ("operation", "append_turn")})
            assert figures["roomtone_store_seconds_count", labels] >= 1
        of_process = frozenset({("machine", "here"), ("process", "1")})
        assert figures["process_resident_memory_bytes", of_process] > 50_000_000
        assert figures["process_cpu_seconds_total", of_process] > 0
        assert ("roomtone_event_loop_lag_seconds_count", of_process) in figures
        status, err = await bot.ends(signal.SIGTERM)
        assert (status, err.count("Traceback")) == (0, 0)
    assert [line["machine"] for line in logged(here, "room_placed")] == ["north", "here"]
    assert [line["resumed"] for line in logged(here, "room_opened")] == [True]
    for event in ("room_opened", "turn_recorded"):
        (line,), (there,) = told(here, event), logged(north, event)
        assert {**line, "timestamp": there["timestamp"]} == {**there, "machine": "north"}
    assert [*running(here), *running(north)] == []
    with psycopg.connect(postgres_place.get_secret_value()) as database:
        numbers = [seq for (seq,) in database.execute("SELECT seq FROM turns ORDER BY seq").fetchall()]
        sessions = database.execute("SELECT count(*) FROM sessions").fetchone()
    assert (numbers, sessions) == (list(range(len(numbers))), (1,))


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_two_rooms_share_a_process_and_survive_its_end(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Both are heard in one process. It is killed, and both go on in the one that waited, each with its own session and
    claim. One leaves, and the other is heard as before.
    """
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg", "1-ada.ogg")]
    async with (
        LocalDiscord(guild=NORTH) as north,
        LocalDiscord(guild=SOUTH, beside=north) as south,
        ada_in(north) as northerner,
        ada_in(south) as southerner,
        roomtone_run(north, tmp_path, whisper_model_dir, "--rooms", "processes", "--rooms-each", "2", **url) as bot,
    ):
        await bot.says("is on Discord")
        for count, (local, ada) in enumerate(((north, northerner), (south, southerner)), 1):
            await local.invoke(ADA, "join")
            await until(lambda count=count: len(logged(tmp_path, "room_opened")) == count, f"room {count}")  # type: ignore[misc]
            await met(ada)
            await local.invoke(ADA, "quiet")
            await ada.say(clips[0])
        for guild in (NORTH, SOUTH):
            await until(partial(has_spoken, postgres_place, guild, 1), f"the first turn of {guild.name}")
        first, second = logged(tmp_path, "room_placed")
        assert first["run_id"] == second["run_id"]
        await until(lambda: len(logged(tmp_path, "room_link_opened")) == 6, "the seats of the process that waits")

        os.kill(running(tmp_path)[0], signal.SIGKILL)
        await until(lambda: len(logged(tmp_path, "room_opened")) == 4, "both rooms in the next process")
        for ada in (northerner, southerner):
            await met(ada)
            await ada.say(clips[1])
        for guild in (NORTH, SOUTH):
            await until(partial(has_spoken, postgres_place, guild, 2), f"the second turn of {guild.name}")
        assert len({line["run_id"] for line in logged(tmp_path, "room_placed")}) == 2

        assert "no longer hear you" in (await south.invoke(ADA, "opt-out")).replies[0].content
        await south.invoke(ADA, "leave")
        await until(lambda: sessions(postgres_place)[SOUTH.id] == [True], "the end of one session")
        await northerner.say(clips[2])
        await until(partial(has_spoken, postgres_place, NORTH, 3), "a turn in the room that stays")
        status, err = await bot.ends(signal.SIGTERM)
        assert (status, err.count("Traceback")) == (0, 0)
    assert running(tmp_path) == []
    assert sessions(postgres_place) == {NORTH.id: [True], SOUTH.id: [True]}
    for guild, turns in ((NORTH, 3), (SOUTH, 2)):
        numbers = [number for _, number in spoken(postgres_place, guild)]
        assert (len(numbers), len(set(numbers))) == (turns, turns)
        assert len({session for session, _ in spoken(postgres_place, guild)}) == 1
    assert [line["resumed"] for line in logged(tmp_path, "room_opened")] == [False, False, True, True]
