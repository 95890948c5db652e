"""@discordjs/voice with its own DAVE implementation in the local Discord: both sides hear each other, also after
faults.

This client was not written for Roomtone, so it shows that the local Discord follows the protocol and not only our
own reading of it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rehearsal.discord import LocalDiscord
from rehearsal.people.person import scripted_member
from rehearsal.pytest_plugin import DiscordForTests
from tests.node.client import node_client
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import Tone, connect, stock_bot, until
from tests.rehearsal.people.sounds import clip_of

pytestmark = pytest.mark.node

BOT, ADA, CHLOE = 1001, 2001, 2003
_HERTZ = 660
_SECOND_PACKETS = 50


def _loudest_hertz(pcm: NDArray[np.int16], rate_hz: int) -> float:
    """Return the frequency with the most energy."""
    spectrum = np.abs(np.fft.rfft(pcm.astype(np.float64)))
    return float(np.fft.rfftfreq(len(pcm), 1 / rate_hz)[int(np.argmax(spectrum))])


def _recorded(path: Path) -> NDArray[np.int16]:
    """Return one channel of the client's recording, 48 kHz."""
    return np.fromfile(path, dtype="<i2")[::2]


async def test_it_hears_a_person_and_the_person_hears_it(
    independent_client: Path, local: LocalDiscord, tmp_path: Path
) -> None:
    """A person and the client hear each other with padding, at the right pitch, and every frame is decrypted."""
    record = tmp_path / "heard.pcm"
    local.network.update({"padding": 0.3})
    async with scripted_member(local, ADA) as ada:
        async with node_client(local, independent_client, user_id=CHLOE, listen=ADA, record=record) as node:
            ready = await node.event("ready")
            assert len(ready["privacyCode"]) == 30
            await ada.meet(CHLOE)
            said = await ada.say(clip_of(tmp_path, voice_s=1.0))
            await node.play(local, CHLOE)
            await node.event("played")
            counted = await node.stop()
        heard = ada.heard(CHLOE)
        await until(lambda: len(heard) >= _SECOND_PACKETS, "the client's tone")
        assert abs(_loudest_hertz(heard.pcm(since=0.0), 16_000) - _HERTZ) < 5
        assert ada.dave_failures == 0
        # The first packets may arrive before op 5, and this library drops them.
        assert (counted["packets"] >= said.sent_packets // 2, counted["failures"]) == (True, 0)
        pcm = _recorded(record)
        assert np.sqrt(np.mean(pcm.astype(np.float64) ** 2)) > 500
        assert abs(_loudest_hertz(pcm, 48_000) - 220) < 5
        assert local.status()["packets"]["bad"] == 0


async def test_it_hears_the_stock_bot_after_every_fault(
    independent_client: Path, local_discord: DiscordForTests, tmp_path: Path
) -> None:
    """After an invalid commit, a broken websocket and a new group, the client still hears the bot and is heard."""
    record, local = tmp_path / "heard.pcm", local_discord.discord
    async with (
        stock_bot(local, BOT) as bot,
        scripted_member(local, ADA) as ada,
        node_client(local, independent_client, user_id=CHLOE, listen=BOT, record=record) as node,
    ):
        voice = await connect(bot)
        await node.event("ready")
        await ada.meet(BOT)

        async def packets() -> int:
            await node.send("status")
            return int((await node.event("status"))["packets"])

        def agreed(*, besides: int = 0) -> bool:
            """Return whether all three are in one epoch other than `besides`, with no pending transition."""
            status = local.status()
            everybody = set(status["leaves"]) == {str(BOT), str(ADA), str(CHLOE)}
            settled = not status["channels"][0]["pending_transitions"]
            return everybody and settled and status["epoch"] != besides and voice._connection.can_encrypt

        async def both_ways(what: str) -> None:
            """Let the bot and the client play a tone once all share an epoch, and check that both are heard."""
            await until(agreed, what)
            before, spoken = await packets(), len(ada.heard(CHLOE))
            # The client drops what arrives before op 5, which may be late: discord.py does not wait for it.
            voice.play(Tone(PATIENCE_S))
            async with asyncio.timeout(PATIENCE_S):
                while await packets() < before + 10:
                    pass
            voice.stop()
            await node.play(local, CHLOE)
            await node.event("played")
            await until(lambda: len(ada.heard(CHLOE)) >= spoken + 20, f"the client after {what}")

        await both_ways("the beginning")
        epoch = local.status()["epoch"]
        await local.fault("invalid_commit", user_id=CHLOE)
        await until(lambda: agreed(besides=epoch), "removal and addition")
        await both_ways("an invalid commit")
        await local.fault("kill_voice_websocket", user_id=CHLOE, close_code=4015)
        await node.event("state")
        await node.event("state")
        await both_ways("a resumed session")
        epoch = local.status()["epoch"]
        await local.fault("request_reset")
        await until(lambda: 0 < local.status()["epoch"] < epoch, "the new group")
        await both_ways("a new group")
        counted = await node.stop()
        assert counted["failures"] == 0
