"""How many turns a conversation needs for a number of folds, and how many folds its turns allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.window import BATCH_SIZE, RECENT_WINDOW

if TYPE_CHECKING:
    from benchmarks.memory.conversations.conversation import RecordedConversation

# One turn more than the first compaction needs, because some libraries count the summary as a message.
_SLACK_TURNS = 2


def turns_needed(folds: int) -> int:
    """Return how many turns a conversation needs for `folds` folds."""
    return RECENT_WINDOW + _SLACK_TURNS + folds * BATCH_SIZE


def folds_possible(conversation: RecordedConversation) -> int:
    """Return how many folds are possible in the conversation."""
    return max(0, (len(conversation.lines) - RECENT_WINDOW - _SLACK_TURNS) // BATCH_SIZE)
