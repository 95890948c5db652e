"""A benchmark's bot is at its local Discord, and keeps nothing in the operator's database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.receive.receiving_process import LoggedTrouble, ReceivingProcess
from benchmarks.reply.many_rooms_process import ManyRoomsBot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bot.wiring.settings import BotSettings

    Start = Callable[[AsyncExitStack, dict[str, Any], dict[str, Any]], Awaitable[object]]


async def _receiving(stack: AsyncExitStack, settings: dict[str, Any], discord: dict[str, Any]) -> object:
    process = ReceivingProcess(stack, LoggedTrouble())
    return await process.answer({"op": "bot", "settings": settings, "discord": discord})


async def _many_rooms(stack: AsyncExitStack, settings: dict[str, Any], discord: dict[str, Any]) -> None:
    await ManyRoomsBot(stack).start(settings, discord)


class _StartedError(Exception):
    """The bot would run now."""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("module", "start"),
    [("benchmarks.receive.receiving_process", _receiving), ("benchmarks.reply.many_rooms_process", _many_rooms)],
)
async def test_people_who_are_made_up_stay_out_of_the_operator_s_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, start: Start
) -> None:
    """`bench cluster` needs ROOMTONE_DATABASE_URL, so it is often set where the other benchmarks run."""
    seen: list[BotSettings] = []

    def running_bot(parts: BotSettings, **_: object) -> None:
        seen.append(parts)
        raise _StartedError

    monkeypatch.setenv("ROOMTONE_DATABASE_URL", "postgresql://roomtone:secret@127.0.0.1/roomtone")
    monkeypatch.setattr(f"{module}.running_bot", running_bot)
    certificate = tmp_path / "ca.pem"
    certificate.touch()
    discord = {
        "token": "1001.local.benchmark",
        "api_base": "https://127.0.0.1:1/api/v10",
        "gateway": "wss://127.0.0.1:1/gateway",
        "ca_file": str(certificate),
        "guild_id": 500,
        "channel_id": 600,
    }
    async with AsyncExitStack() as stack:
        with pytest.raises(_StartedError):
            await start(stack, {"storage.data_dir": str(tmp_path)}, discord)
    [parts] = seen
    assert parts.storage.database == tmp_path / "roomtone.db"
    assert parts.discord.api_base == discord["api_base"]
