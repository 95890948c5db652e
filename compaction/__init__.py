"""The memory of a session: conversation turns go in, and context for a language model comes out.

This package imports no other package of this project. What is exported here is public (docs/memory-library.md):
`conversation_memory` is the way in for other programs, and `session.SessionTimeline`, which it is made of, for the bot.
`compactor` summarises batches of turns and stores the results. Subpackages: `summary` (turns a batch into a segment
with the summary), `context` (the payload of one model call), `budget` (token limits of all model calls),
`memory` (search, facts about people, storage tiers of old segments), `language` (words and sentences). `model` and
`payload` define the values, and `ports` the interfaces to a store and to models. README.md has a diagram and the
reasons for the design.
"""

from compaction.conversation_memory import ConversationMemory
from compaction.errors import CompactionError, CompletionError, ContextOverflowError, StoreError
from compaction.events import CompactionEvent, RunFailed, RunLanded, RunSkipped, RunStarted
from compaction.model import Turn, TurnPart
from compaction.ports import Completion, CompletionAnswer, CompletionRequest
from compaction.summary.llm import LlmSummariser

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
