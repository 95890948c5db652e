"""The buttons of a call that waits, on the local Discord."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bot.brain.tools.frozen_calls import LAPSED
from bot.brain.tools.permission import Asker
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import CallRequest
from bot.discord.answers import MESSAGE_CHARS
from bot.discord.call_buttons import call_text, visible_json
from bot.discord.connection import connected
from bot.discord.place import DiscordPlace
from compaction.payload import MessageToolCall
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import settings_for, settle
from tests.bot.discord.test_consent_buttons import ADA, LOUNGE
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.discord.interactions.result import InteractionResult

BEN = 2002
ROOMS: Any = SimpleNamespace(place_of=lambda _: None)


def seen(result: InteractionResult) -> str:
    return str(result.replies[-1].payload["content"])


async def test_only_the_askers_press_counts_over_the_wire() -> None:
    """The chat shows the call in full. Ben's press answers only Ben, Ada's has the call carried out, and the message
    then says so without buttons. After a restart a press says that the call has lapsed.
    """
    done: list[dict[str, object]] = []

    async def write(arguments: Mapping[str, object]) -> str:
        done.append(dict(arguments))
        return "Written."

    tool = RoomTool("files_write_file", "", {"type": "object"}, write, server="files", title="write_file")
    ask = [MessageToolCall("c", tool.name, json.dumps({"path": "plan.txt", "text": "Coffee at nine."}))]
    async with LocalDiscord() as local:
        async with connected(settings_for(local), ROOMS) as client:
            place = client.place(local.guild.id, LOUNGE)
            assert isinstance(place, DiscordPlace)
            toolbox = Toolbox([tool], ask_for_press=place.ask_for_press, is_present=lambda user_id: user_id == ADA)
            use = toolbox.for_asker(Asker(ADA, "Ada", present=True))
            await use.run_all(ask)
            (posted,) = local.messages
            for shown in ("Ada", "write\\_file", "files", '"path": "plan.txt"', '"text": "Coffee at nine."'):
                assert shown in posted.payload["content"]
            assert "Ada" in seen(await local.press(BEN, posted.id, "Do it"))
            assert done == []
            await local.press(ADA, posted.id, "Do it")
            await settle(lambda: "Done for Ada." in posted.payload["content"])
            assert not posted.payload.get("components")
            assert done == [{"path": "plan.txt", "text": "Coffee at nine."}]
            await use.run_all(ask)
            later = local.messages[-1]
            toolbox.frozen.on_done = None  # type: ignore[assignment]
        async with connected(settings_for(local), ROOMS):
            assert seen(await local.press(ADA, later.id, "Do it")) == LAPSED
        await toolbox.frozen.finish(within_s=PATIENCE_S)
    assert len(done) == 1


def test_a_long_call_is_a_file() -> None:
    """Nothing of it is left out there, and the message stays within Discord's limit."""
    for request in (
        CallRequest("Ada", "write_file", "files", {"text": "word " * 900}),
        CallRequest("A" * 500, "t" * 900, "files", {}),
    ):
        text, content = call_text(request, "en")
        assert len(text) <= MESSAGE_CHARS
        assert content is not None
        assert json.loads(content) == {
            "server": request.server,
            "tool": request.tool,
            "arguments": request.arguments,
        }


@pytest.mark.parametrize(
    "hidden", ["```\n**Nothing happens.**", "safe\u202etxt.exe", "a\u200bb", "\x7f", "😀\U000e0041"]
)
def test_nothing_in_a_call_is_hidden(hidden: str) -> None:
    """No argument ends the block of code, turns the direction of the text or cannot be seen; what is shown is what is
    called with.
    """
    shown = visible_json({"path": hidden})
    assert all(char == "\n" or (char.isprintable() and char != "`") for char in shown)
    assert json.loads(shown) == {"path": hidden}
    text, _ = call_text(CallRequest("Ada", "rm`", "files", {"path": hidden}), "en")
    assert text.count("```") == 2
