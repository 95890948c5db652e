"""All tables of the database.

The code builds its queries from these definitions, and `bot.store.migrations` makes the tables: a change here needs a
new module there. Times are UTC epoch seconds. JSON columns escape everything that is not ASCII, so that all text from a
recogniser or Discord comes back unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)

# The largest number that the database can store: both have integers of 64 bits, one of which is the sign. What somebody
# types, a model writes or a file has may be larger: compare it with this number before it gets to the database, where
# SQLite's driver raises `OverflowError`.
LARGEST_NUMBER = 2**63 - 1
# SQLite gives ids only to columns that are called INTEGER; its integers have 64 bits all the same.
Number = BigInteger().with_variant(Integer(), "sqlite")
# Ids and keys are compared byte by byte on both databases, whatever the language of a PostgreSQL database.
Key = String().with_variant(String(collation="C"), "postgresql")


class Prose(TypeDecorator[str]):
    """Text from outside. A lone surrogate, which UTF-8 cannot encode, becomes the replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return `value` in a form that can be stored."""
        if value is None:
            return None
        encodable = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        # PostgreSQL stores every character but this one.
        return encodable if dialect.name == "sqlite" else encodable.replace("\0", "\N{REPLACEMENT CHARACTER}")


# The key under which a column that holds words or ids of people has `OfPeople`.
OF_PEOPLE = "of_people"


@dataclass(frozen=True, slots=True)
class OfPeople:
    """That a column holds words of people, what was made of them, or ids. `tests/bot/store/test_columns_of_people.py`
    proves for each what forgetting, export, retention, backup and restore do with it.

    `exported`: where /my-data has it; empty: it was made of what is there. `forgotten`: it goes with the person.
    `expires`: it goes with its session. `owns_row`: the whole row belongs to whose id it is, and `bot.store.own_rows`
    does all that. `by_model`: a model may have put words of others into the text of such a row.
    """

    exported: str = ""
    forgotten: bool = True
    expires: bool = True
    owns_row: bool = False
    by_model: bool = False


def of_people(exported: str = "", **how: bool) -> dict[str, OfPeople]:
    """Return the `info` of a column that holds words or ids of people. `how`: see `OfPeople`."""
    return {OF_PEOPLE: OfPeople(exported, **how)}


metadata = MetaData()

# A session row is created with its first turn, so guild and channel may be unknown (a replay has none).
sessions = Table(
    "sessions",
    metadata,
    Column("id", Key, primary_key=True),
    Column("guild_id", BigInteger),
    Column("channel_id", BigInteger),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("cursor", Number, nullable=False, server_default="0"),
    Column("revision", Number, nullable=False, server_default="0"),
    # How often something of it was forgotten.
    Column("forgettings", Number, nullable=False, server_default="0"),
    Column("summary", Prose, info=of_people()),
    Column("last_at", Float),
    # A voice channel has one open session, even if two processes run.
    Index(
        "one_open_session_a_channel",
        "guild_id",
        "channel_id",
        unique=True,
        sqlite_where=text("ended_at IS NULL AND channel_id IS NOT NULL"),
        postgresql_where=text("ended_at IS NULL AND channel_id IS NOT NULL"),
    ),
)

# When each person was in the channel of a session (`bot.viewers`). `left_at` is null while they are there.
attendance = Table(
    "attendance",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", Key, primary_key=True, info=of_people("when_you_were_there", owns_row=True)),
    Column("came_at", Float, primary_key=True),
    Column("left_at", Float),
    Index("attendance_by_person", "person_id"),
)

# The messages with which a session has posted what was said. They outlive their session, until they are deleted on
# Discord too (`bot.store.posted_transcripts`). `kind`: recap, file or lines. `from_seq`, `to_seq`: the turns that lines
# are of. `stale_at`: when words were forgotten that may still be in it.
posted_transcripts = Table(
    "posted_transcripts",
    metadata,
    Column("message_id", BigInteger, primary_key=True, autoincrement=False),
    Column("session_id", Key, nullable=False),
    Column("guild_id", BigInteger, nullable=False),
    Column("channel_id", BigInteger, nullable=False),
    Column("kind", Key, nullable=False),
    Column("from_seq", Number),
    Column("to_seq", Number),
    # The turns between these that were withheld when it was posted, as JSON. They stay out.
    Column("left_out", Text, nullable=False, server_default="[]"),
    Column("stale_at", Float),
    Index("posted_transcripts_by_session", "session_id"),
)

turns = Table(
    "turns",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Number, primary_key=True),
    Column("kind", Key, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("parts", Text, nullable=False, info=of_people("what_you_said")),
    Column("tombstone", Boolean, nullable=False),
    # The turn after which the bot said it; null if that is unknown.
    Column("answers", Number),
    # All of it was said to the bot.
    Column("called", Boolean, nullable=False, server_default="0"),
    # The ids of whom the bot told it, and of people who said nothing in this session and whom it may be about.
    Column("told_to", Text, nullable=False, server_default="[]", info=of_people("my_replies_to_you")),
    Column("sources", Text, nullable=False, server_default="[]", info=of_people()),
)

# `status`: live, pending, folded or dropped. `position`: the order in which notes were taken.
notes = Table(
    "notes",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Key, primary_key=True),
    Column("position", Number, nullable=False),
    Column("status", Key, nullable=False),
    Column("at", Float, nullable=False),
    Column("who", Prose, nullable=False, info=of_people("names")),
    Column("what", Prose, nullable=False, info=of_people("notes_of_your_screen")),
    Column("why", Key, nullable=False),
    Column("source", Key, nullable=False),
    Column("frame_hash", Key, nullable=False),
    # Whose screen it is; null if that is not known.
    Column("person_id", Key, info=of_people("notes_of_your_screen")),
    Index("notes_by_status", "session_id", "status"),
    Index("notes_by_person", "person_id"),
)

# The unique range makes landing a segment idempotent; segments of notes only have an empty range and are exempt.
# `position`: the order of landing.
segments = Table(
    "segments",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Key, primary_key=True),
    Column("position", Number, nullable=False),
    Column("start_seq", Number, nullable=False),
    Column("end_seq", Number, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("heading", Prose, nullable=False, server_default="", info=of_people()),
    Column("gist", Prose, nullable=False, info=of_people()),
    Column("facts", Text, nullable=False, info=of_people()),
    Column("note_ids", Text, nullable=False),
    Column("summariser", Key, nullable=False),
    Column("closing", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("original_tokens", Number, nullable=False),
    Column("compressed_tokens", Number, nullable=False),
    Column("pruned", Boolean, nullable=False, server_default="0"),
    Column("paragraph", Prose, nullable=False, server_default="", info=of_people()),
    Index(
        "one_segment_a_range",
        "session_id",
        "start_seq",
        "end_seq",
        unique=True,
        sqlite_where=text("start_seq < end_seq"),
        postgresql_where=text("start_seq < end_seq"),
    ),
)

# The passages that memory search finds (`search.search`): one row for each turn, note, segment, and fact that a
# model wrote (`search.passages`). `key`: its seq or id. `heard_from`, `heard_until`: of what time it tells
# (`compaction.memory.passage.Readable`). `own`: its terms. `tags`: see `search.tags`. `embedded_by`: the model that has
# processed it, null before.
passages = Table(
    "passages",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Key, nullable=False),
    Column("key", Key, nullable=False),
    Column("start_seq", Number),
    Column("at", Float, nullable=False),
    Column("heard_from", Float, nullable=False, server_default="0"),
    Column("heard_until", Float, nullable=False, server_default="0"),
    Column("own", Text, nullable=False, info=of_people()),
    Column("tags", Text, nullable=False, info=of_people()),
    Column("embedded_by", Key),
    Index("one_passage_a_thing", "session_id", "kind", "key", unique=True),
    Index("passages_by_turn", "session_id", "start_seq"),
    Index("passages_by_time", "at"),
    Index(
        "passages_to_embed",
        "id",
        sqlite_where=text("embedded_by IS NULL"),
        postgresql_where=text("embedded_by IS NULL"),
    ),
    sqlite_autoincrement=True,
)

# An embedding as signed bytes: component = byte * scale. Its `id` increases, so newer vectors can be found.
passage_vectors = Table(
    "passage_vectors",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("passage_id", Number, ForeignKey("passages.id", ondelete="CASCADE"), nullable=False),
    Column("model", Key, nullable=False),
    Column("scale", Float, nullable=False),
    Column("vector", LargeBinary, nullable=False, info=of_people()),
    Index("one_vector_a_passage", "passage_id", unique=True),
    sqlite_autoincrement=True,
)

# Which turn corrects which other turn; folding finds this out.
corrections = Table(
    "corrections",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("old_seq", Number, primary_key=True),
    Column("new_seq", Number, nullable=False),
)

# `generation` increases when passages are deleted or retagged. `forgetting_key`: tells which key made the lists of who
# was forgotten (`bot.store.forgettings`).
search_marks = Table(
    "search_marks",
    metadata,
    Column("name", Key, primary_key=True),
    Column("value", Number, nullable=False),
)

# A segment's tier (`compaction.memory.tiers.TieredSegment`). The record columns are null until it is compressed.
segment_tiers = Table(
    "segment_tiers",
    metadata,
    Column("session_id", Key, primary_key=True),
    Column("segment_id", Key, primary_key=True),
    Column("message_count", Number, nullable=False),
    Column("last_mention", Number, nullable=False),
    Column("queued_at_turn", Number),
    Column("queued_at", Float),
    Column("compressed_at_turn", Number),
    Column("compressed_at", Float),
    Column("topic", Prose, info=of_people()),
    Column("compressed_content", Prose, info=of_people()),
    Column("original_tokens", Number),
    Column("compressed_tokens", Number),
    Column("key_decisions", Text, info=of_people()),
    Column("key_files", Text, info=of_people()),
    Column("contains_code", Boolean),
    Column("contains_errors", Boolean),
    Column("task_completed", Boolean),
    Column("last_accessed", Float),
    Column("access_count", Number, nullable=False, server_default="0"),
    Column("relevance_score", Float),
    Column("archived_at", Float),
    Column("pruned_at", Float),
    ForeignKeyConstraint(["session_id", "segment_id"], ["segments.session_id", "segments.id"], ondelete="CASCADE"),
    Index("archived_segments", "archived_at"),
)

tier_checks = Table(
    "tier_checks",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("last_check_turn", Number, nullable=False),
)

# Guilds and sessions that opted out of tiers. `scope`: guild or session. `name`: its id. A trigger deletes a session's
# row with it.
tier_opt_outs = Table(
    "tier_opt_outs",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("name", Key, primary_key=True),
)

# Facts that people said about themselves (`compaction.memory.people.PersonFact`), superseded ones included.
person_facts = Table(
    "person_facts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("turn_seq", Number, nullable=False),
    Column("person_id", Key, nullable=False, info=of_people("facts_about_you")),
    Column("name", Prose, nullable=False, info=of_people("names")),
    Column("text", Prose, nullable=False, info=of_people("facts_about_you")),
    Column("at", Float, nullable=False),
    Column("superseded_by", Key),
    Column("superseded_at", Float),
    Column("importance", Number, nullable=False, server_default="2"),
    Index("person_facts_by_person", "person_id"),
    Index("person_facts_by_turn", "session_id", "turn_seq"),
)

# The turns of a session that facts were extracted from: those with `seq < through_seq`.
person_draws = Table(
    "person_draws",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("through_seq", Number, nullable=False),
)

# People who deleted their facts: nothing is extracted from their turns before `through_seq`.
person_forgets = Table(
    "person_forgets",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", Key, primary_key=True, info=of_people("sessions_where_you_deleted_facts")),
    Column("through_seq", Number, nullable=False),
)

# What models were sent (`bot.store.prompts`). `answer_to`: the turn that the reply answers. `figures`: JSON. `parts`:
# JSON, compressed.
sent_prompts = Table(
    "sent_prompts",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("answer_to", Number, nullable=False),
    Column("figures", Prose, nullable=False),
    Column("parts", LargeBinary, nullable=False, info=of_people()),
    # The ids of whom it names beside those who said something: who is there, or was.
    Column("people", Text, nullable=False, server_default="[]", info=of_people("sessions_whose_prompts_name_you")),
    Index("sent_prompts_by_turn", "session_id", "answer_to"),
)

# The turns of other sessions that a session's prompts quoted (`bot.store.quoted_turns`): the bot's replies from
# `from_seq` on may tell of them. `source_seq`: null for a note or a summary, which is any turn of its session.
quoted_turns = Table(
    "quoted_turns",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("from_seq", Number, nullable=False),
    Column("source_session", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("source_seq", Number),
    Index("quoted_turns_by_source", "source_session"),
    Index("quoted_turns_by_session", "session_id"),
)

# What people want to be told at a time (`bot.reminders`). They never get the id of one that is gone.
reminders = Table(
    "reminders",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("guild_id", BigInteger, nullable=False),
    Column("channel_id", BigInteger, nullable=False),
    Column("person_id", Key, nullable=False, info=of_people("your_reminders", owns_row=True)),
    Column("whom", Prose, nullable=False, info=of_people("your_reminders", by_model=True)),
    Column("what", Prose, nullable=False, info=of_people("your_reminders", by_model=True)),
    Column("due_at", Float, nullable=False),
    Column("in_chat", Boolean, nullable=False),
    # The ids of who asked, and of all who had been in the session and in those that it has quoted: a model may have put
    # their words into it, or their names.
    Column("people", Text, nullable=False, info=of_people()),
    Index("reminders_by_server", "guild_id"),
    Index("reminders_by_time", "due_at"),
    sqlite_autoincrement=True,
)

# The sessions whose notice named a webhook, until they have arrived there (`bot.posts.webhooks`). `since`: which one.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("since", Float, nullable=False),
    Column("attempts", Number, nullable=False, server_default="0"),
    Column("due_at", Float, nullable=False, server_default="0"),
)

# Who was forgotten (`bot.store.forgettings`). `number` rises with each. `person`: see `bot.store.forgettings`.
# `only_session`, `only_seq`: if only that was forgotten.
forgettings = Table(
    "forgettings",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("person", Key, nullable=False),
    Column("only_session", Key),
    Column("only_seq", BigInteger),
)

server_settings = Table(
    "server_settings",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    # What the server has chosen, as JSON (`bot.server_settings`).
    Column("choices", Text, nullable=False, info=of_people("servers_where_i_join_you", expires=False)),
    Column("changed_at", Float, nullable=False),
    Column("changed_by", BigInteger, info=of_people("servers_where_you_chose_last", expires=False)),
)

# Who runs the room of a server: each start of a room raises `number` (`bot.store.claims`). It never falls.
room_claims = Table(
    "room_claims",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)

# What each server has used (`bot.store.servers`). `slot`: the time in slots of ten minutes.
server_usage = Table(
    "server_usage",
    metadata,
    # First in the key: what is read and dropped is of a time, over all servers.
    Column("slot", BigInteger, primary_key=True, autoincrement=False),
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column("calls", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("spoken_s", Float, nullable=False),
    Column("dollars", Float, nullable=False),
)

# Which servers the operator has admitted or refused (`bot.store.servers`).
server_admissions = Table(
    "server_admissions",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column("served", Boolean, nullable=False),
)

hearing_opt_outs = Table(
    "hearing_opt_outs",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "person_id",
        BigInteger,
        primary_key=True,
        autoincrement=False,
        info=of_people("servers_that_do_not_hear_you", forgotten=False, expires=False),
    ),
    Column("since", Float, nullable=False),
)
