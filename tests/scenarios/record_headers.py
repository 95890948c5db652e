"""Records the headers of the scenario `recorded-headers`: `python -m tests.scenarios.record_headers FILE`.

The recorder of `roomtone doctor --live` joins the local Discord while two people speak and the packets have what other
libraries report of Discord's: bursts of padding, frames in the clear, tiny ones, silence, header extensions, RTCP, late
op 5, and another order. Look at what it prints, and record again if the machine was busy: its delays are replayed too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from bot.cli.doctor.live_report import live_findings
from bot.discord.live_probe import probe_channel
from bot.settings import DiscordSettings
from rehearsal.discord import LocalDiscord
from rehearsal.discord.media.network import NetworkConditions
from rehearsal.people.clip import Clip
from rehearsal.runner.scripted_member import scripted_member
from rehearsal.script.scenario_file import scenario_path
from tests.rehearsal.discord.stock import repointed, until

BOT, ADA, BEN = 1001, 2001, 2002
CHANNEL = 600
SEED = 3
NETWORK = NetworkConditions(padding=0.2, reorder=0.05)
FAULTS: dict[str, dict[str, float]] = {
    "padding_bursts": {"count": 6, "empty": 0.5},
    "clear_frames": {"share": 0.06, "tiny": 0.5},
    "late_speaking": {"delay_s": 0.06},
}
RTCP_PACKETS = 4
# Short, because every packet takes a line of the file: the talkspurts of the scenario repeat it.
SPEECH_PACKETS = 24
SECONDS = 6.0


async def record() -> dict[str, object]:
    """Return what the recorder noted. Two people speak twice each."""
    hello, crowd = scenario_path("hello").parent, scenario_path("crowd").parent
    async with LocalDiscord(network=NETWORK, seed=SEED) as local:
        settings = DiscordSettings.model_validate(
            {
                "token": f"{BOT}.test",
                "api_base": local.api_base,
                "gateway": local.gateway_url,
                "ca_file": str(local.certificate_path),
            }
        )
        async with scripted_member(local, ADA) as ada, scripted_member(local, BEN) as ben:

            async def speak() -> None:
                await until(lambda: _is_there(local), "the bot")
                await asyncio.gather(ada.meet(BOT), ben.meet(BOT))
                for name, options in FAULTS.items():
                    await local.fault(name, user_id=None, **options)
                for _ in range(2):
                    await ada.say(_beginning(hello / "2-ada.ogg"))
                    await local.fault("rtcp", count=RTCP_PACKETS // 2)
                    await ben.say(_beginning(crowd / "2-ben.ogg"))

            with repointed(local):
                speaking = asyncio.create_task(speak(), name="speak")
                noted = await probe_channel(settings, CHANNEL, seconds=SECONDS, say=print)
                await speaking
    return noted


def _beginning(path: Path) -> Clip:
    clip = Clip.load(path)
    first = clip.voiced.first
    return replace(clip, packets=clip.packets[first : first + SPEECH_PACKETS])


def _is_there(local: LocalDiscord) -> bool:
    return any(member["id"] == str(BOT) and member["voice_connected"] for member in local.status()["members"])


def main() -> None:
    (target,) = sys.argv[1:]
    noted = asyncio.run(record())
    Path(target).write_text(json.dumps(noted) + "\n", "utf-8")
    for finding in live_findings(noted):
        print(f"{finding.name}: {finding.detail}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
