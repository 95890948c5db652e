"""The tables of how segments are kept, of what each landing said, and of what people said of themselves.

Times are UTC epoch seconds. `bot.store.kept_step` makes them.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from bot.store.base import Prose, metadata

# What the summary was after each landing: by it, what a model saw then can be shown later. `summary` is null where
# nothing had been folded yet, or where words in it were forgotten since.
landings = Table(
    "landings",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("cursor", Integer, nullable=False),
    Column("landed_at", Float, nullable=False),
    Column("segment_id", String),
    Column("summary", Prose),
)

# How a segment is kept (`compaction.memory.tiers.Kept`). The columns of its record are null until it is compressed.
segment_tiers = Table(
    "segment_tiers",
    metadata,
    Column("session_id", String, primary_key=True),
    Column("segment_id", String, primary_key=True),
    Column("message_count", Integer, nullable=False),
    Column("last_mention", Integer, nullable=False),
    Column("queued_at_turn", Integer),
    Column("queued_at", Float),
    Column("compressed_at_turn", Integer),
    Column("compressed_at", Float),
    Column("topic", Prose),
    Column("compressed_content", Prose),
    Column("original_tokens", Integer),
    Column("compressed_tokens", Integer),
    Column("key_decisions", Text),
    Column("key_files", Text),
    Column("contains_code", Boolean),
    Column("contains_errors", Boolean),
    Column("task_completed", Boolean),
    Column("last_accessed", Float),
    Column("access_count", Integer, nullable=False, server_default="0"),
    Column("relevance_score", Float),
    Column("archived_at", Float),
    Column("pruned_at", Float),
    ForeignKeyConstraint(["session_id", "segment_id"], ["segments.session_id", "segments.id"], ondelete="CASCADE"),
    Index("archived_segments", "archived_at"),
)

tier_checks = Table(
    "tier_checks",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("last_check_turn", Integer, nullable=False),
)

# Whose tiers are left alone: `scope` is guild or session, `name` its id.
tier_opt_outs = Table(
    "tier_opt_outs",
    metadata,
    Column("scope", String, primary_key=True),
    Column("name", String, primary_key=True),
)

# What people said of themselves (`compaction.memory.people.PersonFact`), superseded ones included.
person_facts = Table(
    "person_facts",
    metadata,
    Column("id", String, primary_key=True),
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("turn_seq", Integer, nullable=False),
    Column("person_id", String, nullable=False),
    Column("name", Prose, nullable=False),
    Column("topic", Prose, nullable=False),
    Column("value", Prose, nullable=False),
    Column("text", Prose, nullable=False),
    Column("at", Float, nullable=False),
    Column("superseded_by", String),
    Column("superseded_at", Float),
    Index("person_facts_by_person", "person_id"),
    Index("person_facts_by_turn", "session_id", "turn_seq"),
)

# Up to which turn such facts have been drawn from a session: those with `seq < through_seq`.
person_draws = Table(
    "person_draws",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("through_seq", Integer, nullable=False),
)

# Before which turn nothing is drawn of whom: they had what was kept of them deleted then.
person_forgets = Table(
    "person_forgets",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", String, primary_key=True),
    Column("through_seq", Integer, nullable=False),
)

# The system prompts that were sent, by what `model_context_built` calls them. They hold nobody's words.
prompts = Table(
    "prompts",
    metadata,
    Column("digest", String, primary_key=True),
    Column("text", Prose, nullable=False),
)

# Texts that were sent and can't be made again from what is stored: a summary of what had no room, what a spoken
# conversation is told of people, screens and earlier talk.
sent_texts = Table(
    "sent_texts",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", String, primary_key=True),
    Column("text", Prose, nullable=False),
)
