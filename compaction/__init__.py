"""The memory of a session: conversation turns go in, and context for a language model comes out.

This package imports no other package of this project. What is exported here is public (docs/memory-library.md):
`conversation_memory` is the way in for other programs, and `session.SessionTimeline`, which it is made of, for the bot.
`compactor` summarises batches of turns and stores the results. Subpackages: `summary` (turns a batch into a segment
with the summary), `context` (the payload of one model call), `budget` (token limits of all model calls),
`memory` (search, facts about people, storage tiers of old segments), `language` (words and sentences). `model` and
`payload` define the values, and `ports` the interfaces to a store and to models. README.md has a diagram and the
reasons for the design.
"""

import importlib
from typing import TYPE_CHECKING

from compaction.errors import CompactionError, CompletionError, ContextOverflowError, StoreError
from compaction.events import CompactionEvent, RunFailed, RunLanded, RunSkipped, RunStarted
from compaction.model import Turn, TurnPart
from compaction.ports import Completion, CompletionAnswer, CompletionRequest

if TYPE_CHECKING:
    from compaction.conversation_memory import ConversationMemory
    from compaction.summary.llm import LlmSummariser

# What takes long to import is imported when somebody wants it.
_HOME_OF = {"ConversationMemory": "compaction.conversation_memory", "LlmSummariser": "compaction.summary.llm"}

__all__ = [
    "CompactionError",
    "CompactionEvent",
    "Completion",
    "CompletionAnswer",
    "CompletionError",
    "CompletionRequest",
    "ContextOverflowError",
    "ConversationMemory",
    "LlmSummariser",
    "RunFailed",
    "RunLanded",
    "RunSkipped",
    "RunStarted",
    "StoreError",
    "Turn",
    "TurnPart",
]

# A type checker sees the imports above, and would take any name for one with this.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name from its home."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME_OF[name]), name)
