"""Each fault affects real clients as the real Discord would, and clients that can recover do recover."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal.discord import LocalDiscord
from rehearsal.discord.faults import FAULTS
from rehearsal.people.person import scripted_member
from tests.rehearsal.discord.stock import Tone, connect, stock_bot, until

if TYPE_CHECKING:
    import discord

    from rehearsal.people.person import ScriptedPerson

BOT, SPARE, ADA, BEN = 1001, 1002, 2001, 2002


async def _hears(listener: ScriptedPerson, voice: discord.VoiceClient) -> None:
    """Check that `listener` hears the bot now."""
    # Unmodified discord.py sends unencrypted audio until it has its keys.
    state = voice._connection
    await until(lambda: state.can_encrypt or state.dave_protocol_version == 0, "the bot's keys")
    heard = listener.heard(BOT)
    before = len(heard)
    voice.play(Tone(0.2))
    await until(lambda: len(heard) >= before + 8 and not voice.is_playing(), "the bot's tone")


async def test_stock_discord_py_comes_back_with_a_new_key() -> None:
    """discord.py does not resume. It leaves, joins again, and gets a new key and a new SSRC."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        old_key, old_ssrc = list(voice._connection.secret_key), voice._connection.ssrc
        # The reader thread of discord.py may block in select() on the old socket for 30 s. A packet wakes the thread.
        await ada._link.set_speaking(True)
        await until(lambda: ada._link.send(b"\xf8\xff\xfe") and local.status()["packets"]["out"], "her packet")
        await local.fault("kill_voice_websocket")
        await until(lambda: list(voice._connection.secret_key) != old_key, "another key")
        await until(lambda: voice.is_connected() and voice._connection.can_encrypt, "its return")
        assert voice._connection.ssrc != old_ssrc
        await ada.meet(BOT)
        await _hears(ada, voice)


def test_every_fault_is_documented() -> None:
    """The page names every fault with its options and their defaults, and no others."""
    page = (Path(__file__).parents[3] / "docs" / "rehearsal.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*)\|", page, re.MULTILINE)
    documented = {name: dict(re.findall(r"`(\w+)` ([\d.]+)", options)) for name, options in rows if name in FAULTS}
    assert documented == {name: {key: f"{value:g}" for key, value in taken.items()} for name, taken in FAULTS.items()}
