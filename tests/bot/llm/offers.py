"""A tool that a model is offered."""

from __future__ import annotations

from bot.llm.port import OfferedTools, ToolOffer

LOOK = OfferedTools((ToolOffer("memory_search", "Finds what was said.", {"type": "object", "properties": {}}),))
