"""The process with the token is killed and started again while people speak: its rooms go on as if nothing had been."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from bot.participation.opt_out_file import FILE_NAME
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from tests.bot.bot_process import (
    ADA,
    CLIPS,
    ada_in,
    logged,
    roomtone,
    roomtone_run,
    two_machines,
    voice_session,
)
from tests.bot.test_room_processes import met, running
from tests.bot.test_takeover import said, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic import SecretStr

    from rehearsal.people.person import ScriptedPerson
    from tests.bot.bot_process import Process

ROOMS = ("--rooms", "processes")
# Longer than any test takes.
FOR_EVER_S = 3600.0


@asynccontextmanager
async def ended(*folders: Path) -> AsyncIterator[None]:
    """End the rooms' processes that a killed bot has left, whatever happens."""
    try:
        yield
    finally:
        for folder in folders:
            for pid in running(folder):
                os.kill(pid, signal.SIGKILL)


async def in_room(bot: Process, local: LocalDiscord, ada: ScriptedPerson, folder: Path) -> None:
    """Wait for a bot that has just been started, and call it into a room, in which it only listens."""
    await bot.says("is on Discord")
    await until(lambda: bool(logged(folder, "room_link_opened")), "a process that waits")
    await local.invoke(ADA, "join")
    await until(lambda: len(logged(folder, "room_opened")) == 1, "the room")
    await met(ada)
    await local.invoke(ADA, "quiet")


def claims(place: SecretStr) -> list[int]:
    """Return the numbers of the claims."""
    with psycopg.connect(place.get_secret_value()) as database:
        return [number for (number,) in database.execute("SELECT number FROM room_claims").fetchall()]


def numbers(place: SecretStr) -> list[int]:
    """Return the numbers of all turns, in order."""
    with psycopg.connect(place.get_secret_value()) as database:
        return [seq for (seq,) in database.execute("SELECT seq FROM turns ORDER BY seq").fetchall()]


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_rooms_go_on_while_the_gateway_process_is_killed_and_started_again(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Ada speaks when it is killed, while it is away, and afterwards. The room stays the same: one session, one claim,
    each sentence once. Once nobody speaks, its voice session is renewed, so that nothing happens when Discord ends the
    main session of the killed process. Commands reach it: /status, /opt-out, /leave.
    """
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg", "1-ada.ogg")]
    async with LocalDiscord(main_session_s=FOR_EVER_S) as local, ada_in(local) as ada, ended(tmp_path):
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url) as bot:
            await in_room(bot, local, ada, tmp_path)
            speaking = asyncio.create_task(ada.say(clips[0]))
            await asyncio.sleep(0)
            await bot.killed()
        before = voice_session(local)
        await speaking
        await until(lambda: len(said(postgres_place)) == 1, "the turn that was spoken meanwhile")
        speaking = asyncio.create_task(ada.say(clips[1]))
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url) as bot:
            await bot.says("is on Discord")
            await speaking
            assert len(logged(tmp_path, "room_taken_back")) == 1
            await until(lambda: len(said(postgres_place)) == 2, "the second turn")
            await until(lambda: voice_session(local) not in {before, None}, "the new voice session")
            renewed = voice_session(local)
            local._gateway.time_out(ROOMTONE_BOT_ID)
            assert voice_session(local) == renewed
            [line] = logged(tmp_path, "voice_session_renewed")
            assert line["pause_s"]
            assert claims(postgres_place) == [1]
            await met(ada)
            await ada.say(clips[2])
            await until(lambda: len(said(postgres_place)) == 3, "the third turn")
            state = (await local.invoke(ADA, "status")).replies[0].content
            assert "I am silenced for now" in state
            assert "no longer hear you" in (await local.invoke(ADA, "opt-out")).replies[0].content
            spoken = said(postgres_place)
            await ada.say(clips[0])
            await local.invoke(ADA, "leave")
            await until(lambda: len(logged(tmp_path, "session_ended")) == 1, "the session's end")
            assert said(postgres_place) == spoken
            status, err = await bot.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
        await until(lambda: running(tmp_path) == [], "the end of all processes")
    assert len(logged(tmp_path, "room_opened")) == 1
    assert numbers(postgres_place) == list(range(len(numbers(postgres_place))))
    assert len(spoken) == len({words for _, words in spoken})


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_an_opt_out_right_before_the_kill_holds_though_the_database_hangs(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Ada opts out while the database answers nothing about opt-outs, and her room's process stands still. The bot is
    killed before the room has confirmed, so before it would ask the database. Her room goes on and hears her no more.
    """
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg")]
    file = tmp_path / FILE_NAME
    async with LocalDiscord(main_session_s=FOR_EVER_S) as local, ada_in(local) as ada, ended(tmp_path):
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url) as bot:
            await in_room(bot, local, ada, tmp_path)
            await ada.say(clips[0])
            await until(lambda: len(said(postgres_place)) == 1, "the turn before")
            room = running(tmp_path)[0]
            with psycopg.connect(postgres_place.get_secret_value()) as database:
                database.execute("LOCK TABLE hearing_opt_outs IN ACCESS EXCLUSIVE MODE")
                os.kill(room, signal.SIGSTOP)
                opting_out = asyncio.create_task(local.invoke(ADA, "opt-out"))
                try:
                    await until(file.exists, "the file")
                    await bot.killed()
                finally:
                    with suppress(ProcessLookupError):
                        os.kill(room, signal.SIGCONT)
                    opting_out.cancel()
                    await asyncio.gather(opting_out, return_exceptions=True)
            assert room in running(tmp_path), "the bot was killed before it gave the room up"
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url) as bot:
            await bot.says("is on Discord")
            await until(lambda: len(logged(tmp_path, "room_taken_back")) == 1, "the room")
            await ada.say(clips[1])
            await until(lambda: not file.exists(), "the opt-out in the database")
            await local.invoke(ADA, "leave")
            await until(lambda: len(logged(tmp_path, "session_ended")) == 1, "the session's end")
            status, err = await bot.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
    assert len(said(postgres_place)) == 1
    with psycopg.connect(postgres_place.get_secret_value()) as database:
        out = database.execute("SELECT guild_id, person_id FROM hearing_opt_outs").fetchall()
    assert out == [(local.guild.id, ADA)]


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_room_on_another_machine_is_taken_back_and_hears_nobody_who_opted_out_meanwhile(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Two data folders are two machines. The room's machine notices nothing of the kill. Ada's opt-out is in the
    database alone when the gateway process comes back, and is in effect from then on.
    """
    here, north, address = two_machines(tmp_path)
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    listening = (*ROOMS, "--rooms-listen", address)
    offering = ("cluster", "rooms", "--gateway", address, "--rooms", "1", "--name", "north")
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg")]
    async with (
        LocalDiscord(main_session_s=FOR_EVER_S) as local,
        ada_in(local) as ada,
        ended(here),
        roomtone(local, north, whisper_model_dir, *offering, **url) as machine,
    ):
        async with roomtone_run(local, here, whisper_model_dir, *listening, **url) as bot:
            await bot.says("is on Discord")
            await until(lambda: len(logged(here, "room_process_offered")) == 1, "the other machine's process")
            await local.invoke(ADA, "join")
            await until(lambda: len(logged(north, "room_opened")) == 1, "the room on the other machine")
            await met(ada)
            await local.invoke(ADA, "quiet")
            await bot.killed()
        await ada.say(clips[0])
        await until(lambda: len(said(postgres_place)) == 1, "the turn that was spoken meanwhile")
        with psycopg.connect(postgres_place.get_secret_value()) as database:
            database.execute("INSERT INTO hearing_opt_outs VALUES (%s, %s, 0)", (local.guild.id, ADA))
        async with roomtone_run(local, here, whisper_model_dir, *listening, **url) as bot:
            await bot.says("is on Discord")
            assert [line["machine"] for line in logged(here, "room_taken_back")] == ["north"]
            await ada.say(clips[1])
            assert "I have been in" in (await local.invoke(ADA, "status")).replies[0].content
            await local.invoke(ADA, "leave")
            await until(lambda: len(logged(north, "session_ended")) == 1, "the session's end")
            status, err = await bot.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
        status, err = await machine.ends(signal.SIGTERM)
        assert (status, err.count("Traceback")) == (0, 0)
    assert len(said(postgres_place)) == 1
    assert claims(postgres_place) == [1]
    assert len(logged(north, "room_opened")) == 1


@pytest.mark.rehearsal
@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_room_that_may_not_go_on_begins_anew(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """The operator has changed a setting. The session goes on in another process, and the one that ran on has ended."""
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    changed = {"ROOMTONE_ROOM__LEAVE_WHEN_EMPTY_S": "77"}
    async with LocalDiscord(main_session_s=FOR_EVER_S) as local, ada_in(local) as ada, ended(tmp_path):
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url) as bot:
            await bot.says("is on Discord")
            await until(lambda: bool(logged(tmp_path, "room_link_opened")), "a process that waits")
            await local.invoke(ADA, "join")
            await until(lambda: len(logged(tmp_path, "room_opened")) == 1, "the room")
            await met(ada)
            await bot.killed()
        async with roomtone_run(local, tmp_path, whisper_model_dir, *ROOMS, **url, **changed) as bot:
            await bot.says("is on Discord")
            await until(lambda: len(logged(tmp_path, "room_opened")) == 2, "the room's next process")
            await met(ada)
            await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
            await until(lambda: len(said(postgres_place)) == 1, "a turn")
            status, err = await bot.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
        await until(lambda: running(tmp_path) == [], "the end of the process that ran on")
    assert [line["reason"] for line in logged(tmp_path, "room_not_taken_back")] == ["other_settings"]
    assert [line["resumed"] for line in logged(tmp_path, "room_opened")] == [False, True]
