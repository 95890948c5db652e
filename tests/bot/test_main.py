"""The bot as a process in the local Discord: a wrong token, a kill, a restart, and an orderly end."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
from contextlib import AbstractAsyncContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from bot.cli.run import next_step
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip, VoicedBounds
from rehearsal.people.person import ClipPlayback
from tests.bot.bot_process import ADA, CLIPS, Process, ada_in, roomtone_run, started, stored, until_stored
from tests.fakes.webhook_receiver import receiving
from tests.free_port import free_port
from tests.patience import PATIENCE_S, patiently, settle
from tests.scenarios.program import REPOSITORY

# The first 1.9 s of a clip.
CUT = 95
VENV = REPOSITORY / ".venv"


def in_checkout(command: list[str], local: LocalDiscord, checkout: Path) -> AbstractAsyncContextManager[Process]:
    """Start a command in a fresh checkout, as somebody else, with what `make setup` has installed here."""
    home = checkout.with_name("home")
    home.mkdir(exist_ok=True)
    own = {
        "HOME": str(home),
        "ROOMTONE_MODELS__DIRECTORY": str(REPOSITORY / "data" / "models"),
        # Another bot of these tests may have the default.
        "ROOMTONE_WEB__PORT": "0",
        # The program comes from the checkout, too.
        "PYTHONPATH": str(checkout),
    }
    return started(command, local, checkout, **own)


@pytest.mark.rehearsal
async def test_the_steps_of_the_readme_end_in_a_spoken_answer(local: LocalDiscord, tmp_path: Path) -> None:
    """Clone, `roomtone setup`, `make run`, type /join: the bot comes, says in the channel's chat that it listens, and
    answers aloud.
    """
    checkout = tmp_path / "roomtone"
    await asyncio.to_thread(subprocess.run, ["git", "clone", "--quiet", str(REPOSITORY), str(checkout)], check=True)
    words = ["--token", f"{ROOMTONE_BOT_ID}.local", "--model", "none", "--voice", "own"]
    async with in_checkout([f"{VENV}/bin/roomtone", "setup", *words], local, checkout) as setup:
        await setup.says(f"client_id={ROOMTONE_BOT_ID}&")
        assert (await setup.ends())[0] == 0
    # Installing the same packages once more would take minutes; tests/docs/test_install.py installs them.
    run = ["make", "run", f"VENV={VENV}", f"--old-file={VENV}/.installed"]
    async with ada_in(local) as ada, in_checkout(run, local, checkout) as bot:
        await bot.says("is on Discord, in ")
        await bot.says("My speech model runs on the ")
        await bot.says("Go into a voice channel and type /join.")
        await bot.says("Answers: quotes only")
        # Its output is no terminal.
        link = checkout / "data" / "dashboard-link"
        await bot.says(f"Dashboard: the login link is in {link}, which only")
        assert link.read_text("utf-8").startswith("http://127.0.0.1:")
        assert "/login#" not in bot.out
        joined = await local.invoke(ADA, "join")
        assert "coming to Evening" in joined.content
        await patiently(ada.meet(ROOMTONE_BOT_ID))
        said = await ada.say(Clip.load(CLIPS / "1-ada.ogg"))
        await ada.wait_for_sound(ROOMTONE_BOT_ID, since=said.speech_ended_at, timeout_s=PATIENCE_S)
        assert local.messages[0].content.startswith("I am listening in this channel")
        helped = await local.invoke(ADA, "help")
        assert "/leave" in str(helped.replies[0].payload["embeds"])
        await until_stored(checkout / "data", "good to have you here")
        # Ctrl-C reaches `make` and the bot.
        _, err = await bot.ends(signal.SIGINT)
        assert "Traceback" not in err


def test_a_bot_in_no_server_prints_its_link() -> None:
    """The link stands where somebody looks who has just started it for the first time."""
    link = next_step(1234, is_in_a_server=False).splitlines()[-1]
    assert link.startswith("https://discord.com/oauth2/authorize?client_id=1234&")
    assert "/join" in next_step(1234, is_in_a_server=True)


async def test_a_wrong_token_ends_with_a_sentence(local: LocalDiscord, tmp_path: Path, whisper_model_dir: Path) -> None:
    """With a wrong token the process ends with status 1 and one plain sentence, without the token and without a
    traceback.
    """
    async with roomtone_run(local, tmp_path, whisper_model_dir, token="9999.wrong.token") as bot:
        status, err = await bot.ends()
    assert status == 1
    assert "Discord refused the bot's token" in err
    assert "Traceback" not in err
    assert "9999" not in err


@pytest.mark.rehearsal
async def test_a_session_goes_to_the_webhook_that_a_manager_chose(
    local: LocalDiscord, tmp_path: Path, whisper_model_dir: Path
) -> None:
    """Ada chooses it in /settings, the notice and /privacy name its host, and what she said arrives there."""
    async with (
        receiving() as receiver,
        ada_in(local) as ada,
        roomtone_run(local, tmp_path, whisper_model_dir, ROOMTONE_ROOM__PRIVATE_WEBHOOKS="true") as bot,
    ):
        await bot.says("is on Discord")
        (panel,) = (await local.invoke(ADA, "settings")).replies
        window = await local.pick(ADA, int(panel.payload["id"]), "roomtone:settings-privacy", ["webhook"])
        written = await local.write(window, receiver.address)
        await written.until(lambda now: "whsec_" in now.content, timeout_s=PATIENCE_S)
        await local.invoke(ADA, "join")
        await patiently(ada.meet(ROOMTONE_BOT_ID))
        await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
        await until_stored(tmp_path, "bicycle")
        await local.invoke(ADA, "leave")
        await settle(lambda: len(receiver.taken) == 2)
        assert "127.0.0.1 gets the recap and transcript" in local.messages[0].content
        assert "127.0.0.1 gets the recap and transcript" in (await local.invoke(ADA, "privacy")).content
    assert [json.loads(body)["type"] for _, body in receiver.taken] == ["test", "session.ended"]
    assert "bicycle" in receiver.taken[1][1].decode()


@pytest.mark.rehearsal
async def test_killed_in_the_middle_it_goes_on_where_it_was(
    local: LocalDiscord, tmp_path: Path, whisper_model_dir: Path
) -> None:
    """After SIGKILL and a restart, the bot rejoins the channel and continues the session; no turn is lost or stored
    twice.

    After SIGTERM, the session is closed and stored, and the bot ends without a traceback and with status 0.
    """
    async with ada_in(local) as ada:
        async with roomtone_run(local, tmp_path, whisper_model_dir) as bot:
            await bot.says("is on Discord")
            await local.invoke(ADA, "join")
            await patiently(ada.meet(ROOMTONE_BOT_ID))
            await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
            await until_stored(tmp_path, "bicycle")
            status, _ = await bot.ends(signal.SIGKILL)
            assert status == -signal.SIGKILL
        before = stored(tmp_path)
        async with roomtone_run(local, tmp_path, whisper_model_dir) as bot:
            await bot.says("is on Discord")
            await patiently(ada.meet(ROOMTONE_BOT_ID))
            await ada.say(Clip.load(CLIPS / "3-ada.ogg"))
            await until_stored(tmp_path, "that I bought")
            status, err = await bot.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
    turns = stored(tmp_path)
    assert turns[: len(before)] == before
    assert len({session for session, _, _, _ in turns}) == 1
    assert [seq for _, seq, _, _ in turns] == list(range(len(turns)))
    said = [parts for _, _, kind, parts in turns if kind == "speech"]
    assert len(said) == len(set(said)) == 2
    with closing(sqlite3.connect(tmp_path / "roomtone.db")) as database:
        assert database.execute("SELECT count(*) FROM sessions WHERE ended_at IS NULL").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM segments WHERE closing").fetchone() == (1,)


def spoken(turns: list[tuple[str, int, str, str]], kind: str) -> list[str]:
    """Return the words of the turns of one kind."""
    return [" ".join(text for _, _, text, _ in json.loads(parts)) for _, _, each, parts in turns if each == kind]


@pytest.mark.rehearsal
async def test_ended_in_mid_sentence_it_keeps_what_it_heard(
    local: LocalDiscord, tmp_path: Path, whisper_model_dir: Path
) -> None:
    """SIGTERM while Ada speaks: what she has said so far is stored, once, and not answered. /readyz is red until the
    process is gone, with status 0.
    """
    clip = Clip.load(CLIPS / "2-ada.ogg")
    port = free_port()
    async with (
        ada_in(local) as ada,
        roomtone_run(local, tmp_path, whisper_model_dir, ROOMTONE_WEB__PORT=str(port)) as bot,
        aiohttp.ClientSession() as http,
    ):
        await bot.says("is on Discord")
        await local.invoke(ADA, "join")
        await patiently(ada.meet(ROOMTONE_BOT_ID))
        # She says "I bought a green bicycle at the market this morning" in three seconds. The rest comes once the bot
        # knows that it has to end, and never earlier, as it could from a machine that stalls.
        await ada.say(replace(clip, packets=clip.packets[:CUT], voiced=VoicedBounds(clip.voiced.first, CUT - 1)))
        ending = asyncio.create_task(bot.ends(signal.SIGTERM), name="bot-ends")
        causes = set[str]()
        speaking: asyncio.Task[ClipPlayback] | None = None
        while not ending.done():
            with suppress(aiohttp.ClientError):
                async with http.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    causes.update(cause["cause"] for cause in (await answer.json())["causes"])
            if causes and speaking is None:
                rest = replace(clip, packets=clip.packets[CUT:], voiced=VoicedBounds(0, clip.voiced.last - CUT))
                speaking = asyncio.create_task(ada.say(rest), name="ada-speaks")
            await asyncio.sleep(0.02)
        assert causes == {"draining"}
        assert speaking is not None
        status, err = await ending
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
    # Python 3.13.0 trips over a connection that it accepts just as the loop ends.
    assert (status, err.count("Traceback") - err.count("_SelectorTransport.__del__")) == (0, 0)
    turns = stored(tmp_path)
    assert [seq for _, seq, _, _ in turns] == list(range(len(turns)))
    (said,) = spoken(turns, "speech")
    assert said.casefold().startswith("i bought a green"), said
    assert "morning" not in said
    assert spoken(turns, "assistant") == []
    with closing(sqlite3.connect(tmp_path / "roomtone.db")) as database:
        assert database.execute("SELECT count(*) FROM sessions WHERE ended_at IS NULL").fetchone() == (0,)
