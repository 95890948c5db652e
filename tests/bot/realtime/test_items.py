"""The items of a realtime conversation follow the memory, also when something is forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.typing import EventDict

from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.guild import PromptPolicy
from bot.realtime.items import MOST_TOOLS, Items, ReplyMaterial
from compaction.budget.trim import TrimOptions
from compaction.model import Mode, Seq
from tests.bot.brain.tools.calls import for_all
from tests.bot.evening import Evening, forget
from tests.bot.realtime.bridge_scene import FakePrompt
from voice.realtime.port import ConversationItem, ItemRole, Realtime, RealtimeTool


class _Conversation:
    """The conversation as the endpoint has it."""

    def __init__(self, items: Iterable[ConversationItem]) -> None:
        self.items = {each.id: each.text for each in items}
        self.ids = set(self.items)
        self.instructions = ""

    @property
    def stories(self) -> list[int]:
        """Return the numbers of the stories told in it, in order."""
        return [int(found[1]) for text in self.items.values() if (found := re.search(r"Story (\d+)", text))]

    def add_item(self, item: ConversationItem) -> None:
        assert item.id not in self.ids
        self.ids.add(item.id)
        self.items[item.id] = item.text

    def delete_items(self, item_ids: Iterable[str]) -> None:
        for item_id in item_ids:
            del self.items[item_id]

    def set_instructions(self, instructions: str) -> None:
        self.instructions = instructions

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        pass


def items_of(
    evening: Evening,
    *,
    max_input_tokens: int,
    tools: tuple[RoomTool, ...] = (),
    trim: TrimOptions = TrimOptions(),  # noqa: B008 - it cannot be changed
    enforced: bool = True,
) -> Items:
    """Return what holds the conversation of an evening."""
    items = Items(
        evening.timeline,
        Toolbox(tools),
        FakePrompt(),
        instructions=SystemPrompt("Roomtone"),
        zone=UTC,
    )
    items.policy = PromptPolicy(evening.timeline.mode, max_input_tokens, enforced=enforced, trim=trim)
    return items


async def test_a_conversation_begins_with_the_languages_of_the_server(evening: Evening) -> None:
    """A server may change them between two conversations."""
    assert items_of(evening, max_input_tokens=8_000).brief().languages == ("en", "de")


async def test_what_is_forgotten_leaves_the_conversation(evening: Evening) -> None:
    """Forgotten words are removed from the conversation, as text and as sound; other turns stay in order."""
    await evening.say("I live in Zanzibar.")
    await evening.say("And I in Lisbon.", "Bob")
    items = items_of(evening, max_input_tokens=8_000)
    conversation = _Conversation(items.brief().items)
    session = cast("Realtime", conversation)
    assert "Zanzibar" in str(conversation.items)
    sound = await evening.say("Zanzibar is warm.")
    conversation.items["sound-1"] = "(her voice)"
    items.hold(sound.seq, ("sound-1",))
    await forget(evening.database, evening.clock, "Ada")
    await evening.upkeep.run_once()
    items.refresh(session, answer_to=Seq(1))
    assert "sound-1" not in conversation.items
    assert "Zanzibar" not in str(conversation.items)
    assert [text.split("] ")[1] for text in conversation.items.values()] == [
        "(forgotten at somebody's wish)",
        "Bob: And I in Lisbon.",
        "(forgotten at somebody's wish)",
    ]
    before = dict(conversation.items)
    items.refresh(session)
    assert conversation.items == before


async def test_what_was_left_out_does_not_come_back_behind_newer_turns(evening: Evening) -> None:
    """A conversation grows at its end alone. What had no room in it stays out until the next one begins, and a note
    says so; no id is used twice.
    """
    items = items_of(evening, max_input_tokens=3_000)
    conversation = _Conversation(items.brief().items)
    session = cast("Realtime", conversation)
    for number in range(24):
        await evening.say(f"Story {number} is of Okonkwo in Lisbon. {'It is a long one. ' * 11}")
        items.refresh(session)
    assert len(conversation.stories) == 24
    # What was found for one answer takes room from the conversation.
    items.for_reply = ReplyMaterial(recalled=tuple(f"Bo said {'something ' * 30}{each}." for each in range(8)))
    items.refresh(session)
    kept = conversation.stories
    assert kept == list(range(24 - len(kept), 24))
    assert 0 < len(kept) < 24
    for recalled in ((), ("It is long ago.",)):
        items.for_reply = ReplyMaterial(recalled=recalled)
        await evening.say(f"Story {24 + len(recalled)} is short.")
        items.refresh(session)
    assert conversation.stories == [*kept, 24, 25]
    assert sum("evicted" in text for text in conversation.items.values()) == 1
    assert _Conversation(items.brief().items).stories == list(range(26))


@pytest.mark.covers("2.6")
@pytest.mark.parametrize(("note", "searchable"), [(True, True), (True, False), (False, True)])
async def test_the_options_of_the_budget_hold_in_a_conversation(tmp_path: Path, note: bool, searchable: bool) -> None:
    """In the rolling mode: the target, how many turns stay, whether a note tells of the others, and whether it names
    the search.
    """

    async def call(_: Mapping[str, object]) -> str:
        return ""

    tools = (RoomTool("memory_search", "", {}, for_all(call)),) if searchable else ()
    trim = TrimOptions(target_utilization=0.01, min_keep_messages=7, eviction_note=note)
    async with Evening(tmp_path / "a.db", searchable=True) as evening:
        assert await evening.timeline.set_mode(Mode.ROLLING) is Mode.ROLLING
        for number in range(40):
            await evening.say(f"Story {number} is {'a long one ' * 30}.")
        items = items_of(evening, max_input_tokens=3_000, tools=tools, trim=trim)
        conversation = _Conversation(items.brief().items)
    assert conversation.stories == list(range(33, 40))
    (told,) = [text for text in conversation.items.values() if "evicted" in text] or [""]
    assert ("33 messages evicted" in told) is note
    assert ("memory_search" in told) is (note and searchable)


@pytest.mark.covers("4.1", "4.8")
@pytest.mark.parametrize(
    ("changes", "described", "least", "most", "condensed"),
    [
        ({}, 0, 25, 30, False),
        # A description of 500 tokens takes the room of some turns.
        ({}, 500, 15, 24, False),
        ({"trim": TrimOptions(summarize_on_truncate=True)}, 0, 20, 28, True),
        # Off: everything is sent.
        ({"enforced": False}, 500, 40, 40, False),
    ],
)
async def test_a_conversation_has_the_policy_of_its_room(
    tmp_path: Path, changes: dict[str, Any], described: int, least: int, most: int, condensed: bool
) -> None:
    """The budget and its switch, tools that are counted, and what stands for turns without room: people's sentences, in
    no system message.
    """

    async def call(_: Mapping[str, object]) -> str:
        return ""

    async with Evening(tmp_path / "a.db") as evening:
        for number in range(40):
            await evening.say(f"Story {number} is of Okonkwo in Lisbon. {'It is a long one. ' * 11}")
        items = items_of(
            evening, max_input_tokens=3_500, tools=(RoomTool("t", "ab " * described, {}, for_all(call)),), **changes
        )
        sent = items.brief()
        conversation = _Conversation(sent.items)
        items.refresh(cast("Realtime", conversation))
        before = dict(conversation.items)
        items.refresh(cast("Realtime", conversation))
    assert least <= len(conversation.stories) <= most
    assert conversation.items == before
    assert sorted(before.values()) == sorted(each.text for each in sent.items)
    told = [each for each in sent.items if "Of what is left out below" in each.text]
    assert bool(told) is condensed
    assert all(each.role is ItemRole.USER for each in told)


async def test_a_session_gets_as_many_tools_as_it_takes(tmp_path: Path, logs: list[EventDict]) -> None:
    """One more would have the service refuse the session. Our own come first, and what is left out is said once."""

    async def call(_: Mapping[str, object]) -> str:
        return ""

    theirs = [RoomTool(f"hub_{number}", "", {}, for_all(call), server="hub") for number in range(MOST_TOOLS)]
    async with Evening(tmp_path / "a.db") as evening:
        memory = RoomTool("memory_search", "", {}, for_all(call))
        items = items_of(evening, max_input_tokens=16_000, tools=(*theirs, memory))
        offered = [tool.name for tool in items.brief().tools]
        items.brief()
    assert (len(offered), offered[0], offered[-1]) == (MOST_TOOLS, "memory_search", f"hub_{MOST_TOOLS - 2}")
    assert [line["left_out"] for line in logs if line["event"] == "realtime_tools_left_out"] == [
        [f"hub_{MOST_TOOLS - 1}"]
    ]
