"""The names of all log events about a session's memory. `bot.memory` and rooms log the last of them.

Code logs them by these members alone. `roomtone tail --event memory` shows them. The names are public, so they must not
change.
"""

from __future__ import annotations

from enum import StrEnum


class MemoryEvent(StrEnum):
    """What the log calls an event. Nothing that people said is in its fields."""

    # -- folds; the first four come from spec 1 --
    RUN_SKIPPED = "voice_context_compaction_skipped"
    RUN_STARTED = "voice_context_compaction_started"
    RUN_COMPLETED = "voice_context_compaction_completed"
    RUN_FAILED = "voice_context_compaction_failed"
    FOLD_BROKE = "fold_broke"
    FOLD_FLAWED = "fold_flawed"
    LISTENER_FAILED = "compaction_listener_failed"
    NOTES_DROPPED = "notes_dropped"

    # -- what a model is sent --
    CONTEXT_BUILT = "model_context_built"
    CONTEXT_ROLLED = "context_rolled"
    MODE_CHANGED = "compaction_mode_changed"
    SEARCH_MISSING = "rolling_needs_memory_search"

    # -- the session and its store --
    TURNS_MISSING = "stored_turns_missing"
    TURNS_NOT_STORED = "turns_not_stored"
    ROOM_OPENED = "room_opened"
    SESSION_ENDED = "session_ended"
    MEMORY_REFRESHED = "memory_refreshed"
    UPKEEP_FAILED = "memory_upkeep_failed"
    UPKEEP_LATE = "memory_upkeep_late"
    UPKEEP_BROKE = "memory_upkeep_broke"
    TIERS_CHECKED = "tiers_checked"
    RETENTION_ENFORCED = "retention_enforced"
    RETENTION_FAILED = "retention_failed"

    # -- people, search and digests --
    FACTS_EXTRACTED = "person_facts_extracted"
    FACTS_FORGOTTEN = "person_facts_forgotten"
    PERSON_FORGOTTEN = "person_forgotten"
    WIPE_FAILED = "wipe_failed"
    QUOTES_LATE = "recall_timed_out"
    QUOTES_FAILED = "recall_failed"
    EMBEDDING_LATE = "recall_embedding_late"
    EMBEDDING_FAILED = "recall_embedding_failed"
    COMPARISON_LATE = "recall_comparison_late"
    COMPARISON_FAILED = "recall_comparison_failed"
    INDEXING_FAILED = "recall_indexing_failed"
    DIGEST_LATE = "digest_model_late"
    DIGEST_FAILED = "digest_model_failed"
