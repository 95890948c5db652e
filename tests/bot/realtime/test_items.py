"""The items of a realtime conversation follow the memory, also when something is forgotten."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, cast

import pytest

from bot.brain.system_prompt import SystemPrompt
from bot.realtime.items import Items
from bot.store.speech_forgetting import SpeechForgetter
from compaction.model import Seq
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from voice.realtime.port import ConversationItem, Realtime, RealtimeTool


class _Conversation:
    """The conversation as the endpoint has it."""

    def __init__(self, items: Iterable[ConversationItem]) -> None:
        self.items = {each.id: each.text for each in items}
        self.ids = set(self.items)
        self.instructions = ""

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


@pytest.mark.asyncio
async def test_what_is_forgotten_leaves_the_conversation(tmp_path: Path) -> None:
    """Forgotten words are removed from the conversation, as text and as sound; other turns stay in order."""
    async with Evening(tmp_path / "a.db") as evening:
        await evening.say("I live in Zanzibar.")
        await evening.say("And I in Lisbon.", "Bob")
        items = Items(
            evening.memory,
            tuple,
            instructions=SystemPrompt("Roomtone"),
            introductions=list,
            max_input_tokens=8_000,
            zone=UTC,
        )
        conversation = _Conversation(items.brief().items)
        session = cast("Realtime", conversation)
        assert "Zanzibar" in str(conversation.items)
        sound = await evening.say("Zanzibar is warm.")
        conversation.items["sound-1"] = "(her voice)"
        items.hold(sound.seq, ("sound-1",))
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
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
