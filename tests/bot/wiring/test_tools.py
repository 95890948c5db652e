"""The settings decide which tools a room gets."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.brain.tools.tool import BUILT_IN_NAMES, NOBODY, Asker, ToolError
from bot.brain.tools.toolbox import TalkTools, Toolbox
from bot.memory.recall import Recall, RecallScope
from bot.participation.guild_state import GuildStates
from bot.screen.screens import Screens
from bot.viewers import Viewer
from bot.wiring.services import toolbox_factory
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import told
from tests.bot.brain.tools.views import MAP, View
from tests.bot.memory.recalled import recalled_evening as evening
from tests.compaction.memory.recall_index_contract import EVENING, SAID
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel

ADA = Asker(1, "Ada", present=True)
HERE = RecallScope(EVENING, 1, 10)


class NobodyElsewhere:
    """The attendance of people who were in no other session."""

    async def readable(self, viewers: Collection[Viewer], channels: Collection[int] | None) -> tuple[()]:
        """Return no session."""
        return ()


async def toolbox(
    channel: FakeRoomChannel,
    *,
    view: View | None = None,
    withheld: frozenset[str] = frozenset(),
    reach: str | None = "channel",
    has_screens: bool = True,
) -> Toolbox:
    """Return the tools of a session in `channel`."""
    index, store = await evening(*SAID)
    open_toolbox = toolbox_factory(
        Recall(index, store),
        attendance=cast("Any", NobodyElsewhere()),
        reach=reach,
        clock=FakeClock(),
        zone=UTC,
        screens=cast("Screens", SimpleNamespace(room=lambda _: view)) if has_screens else None,
        participation=cast(
            "GuildStates",
            SimpleNamespace(opted_out_of=lambda guild_id: withheld if guild_id == channel.guild_id else frozenset()),
        ),
    )
    return open_toolbox(HERE, channel, TalkTools())


ALWAYS = {"read_attachment", "read_attachment_of_others", "post_link"}
MEMORY = {"memory_search", "recall_turns"}


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        # Nobody shares a screen; screens are switched off, whatever is shared; memory search is switched off.
        ({}, ALWAYS | MEMORY),
        ({"view": View(), "has_screens": False}, ALWAYS | MEMORY),
        ({"reach": None}, ALWAYS),
    ],
)
async def test_what_is_not_there_has_no_tool(settings: dict[str, Any], offered: set[str]) -> None:
    """The other tools are offered."""
    made = await toolbox(FakeRoomChannel(), **settings)
    assert {tool.name for tool in made.tools(ADA)} == offered


async def test_they_reach_their_own_room() -> None:
    """Tools use the memory, the chat and the screens of their room."""
    channel, view = FakeRoomChannel(), View()
    box = await toolbox(channel, view=view)
    use = box.for_asker(ADA)
    assert "lighthouse" in await told(use, MessageToolCall("c", "memory_search", '{"query": "lighthouse"}'))
    channel.chat.drop("notes.txt", b"milk")
    assert "milk" in await told(use, MessageToolCall("c", "read_attachment", "{}"))
    assert "is posted" in await told(use, MessageToolCall("c", "post_link", MAP))
    assert len(channel.chat.posted) == 1
    assert set(channel.asked_by) == {1}, "the chat is used with the permissions of who asks"
    assert "look_at_screen" not in {tool.name for tool in box.tools()}
    view.shared.append("Bo")
    assert "look_at_screen" in {tool.name for tool in box.tools()}
    # They do no more than an answer does, so they run at once.
    at_once = {"memory_search", "recall_turns", "look_at_screen", "read_attachment", "post_link"}
    assert {tool.name for tool in box.tools(ADA) if not tool.asks} == at_once
    of_a_conversation = {"be_quiet", "stop", "remind", "remind_in_chat", "missed"}
    assert at_once == BUILT_IN_NAMES - of_a_conversation - {"read_attachment_of_others"}


async def test_files_of_who_has_opted_out_are_not_read() -> None:
    """Whoever asks for them."""
    channel = FakeRoomChannel()
    channel.chat.drop("diary.txt", b"I am in love.", by="Bo", by_id=2)
    for withheld, is_read in ((frozenset[str](), True), (frozenset({"2"}), False)):
        box = await toolbox(channel, withheld=withheld)
        tool = box.find("read_attachment_of_others", ADA)
        assert tool is not None
        assert tool.fix is not None
        if not is_read:
            with pytest.raises(ToolError, match="No such file"):
                await tool.fix({"file": "diary"})
            continue
        _, found = await tool.run(await tool.fix({"file": "diary"}), NOBODY)
        assert "in love" in found.text
