"""The tables on both databases, with the search index and the triggers.

What is deleted or forgotten leaves the search index in the same transaction. `generation` in `search_marks` rises with
each deletion, so that copies of embeddings in memory are dropped.
"""

from alembic import op

revision = "0001"
down_revision = None

# What each database calls the types of the tables. `row`: an id that the database chooses; `counted`: one that it never
# chooses twice.
_SQLITE_TYPES = {
    "key": "VARCHAR",
    "number": "INTEGER",
    "blob": "BLOB",
    "row": "INTEGER NOT NULL PRIMARY KEY",
    "counted": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
}
_POSTGRESQL_TYPES = {
    "key": 'VARCHAR COLLATE "C"',
    "number": "BIGINT",
    "blob": "BYTEA",
    "row": "BIGSERIAL PRIMARY KEY",
    "counted": "BIGSERIAL PRIMARY KEY",
}
_TABLES = """
CREATE TABLE forgettings (
    number BIGINT NOT NULL,
    person {key} NOT NULL,
    only_session {key},
    only_seq BIGINT,
    PRIMARY KEY (number)
);
CREATE TABLE hearing_opt_outs (
    guild_id BIGINT NOT NULL,
    person_id BIGINT NOT NULL,
    since FLOAT NOT NULL,
    PRIMARY KEY (guild_id, person_id)
);
CREATE TABLE posted_transcripts (
    message_id BIGINT NOT NULL,
    session_id {key} NOT NULL,
    guild_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    kind {key} NOT NULL,
    from_seq {number},
    to_seq {number},
    left_out TEXT DEFAULT '[]' NOT NULL,
    stale_at FLOAT,
    PRIMARY KEY (message_id)
);
CREATE INDEX posted_transcripts_by_session ON posted_transcripts (session_id);
CREATE TABLE room_claims (
    guild_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (guild_id)
);
CREATE TABLE search_marks (
    name {key} NOT NULL,
    value {number} NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE server_settings (
    guild_id BIGINT NOT NULL,
    choices TEXT NOT NULL,
    changed_at FLOAT NOT NULL,
    changed_by BIGINT,
    PRIMARY KEY (guild_id)
);
CREATE TABLE server_admissions (
    guild_id BIGINT NOT NULL,
    served BOOLEAN NOT NULL,
    PRIMARY KEY (guild_id)
);
CREATE TABLE server_usage (
    slot BIGINT NOT NULL,
    guild_id BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    spoken_s FLOAT NOT NULL,
    dollars FLOAT NOT NULL,
    PRIMARY KEY (slot, guild_id)
);
CREATE TABLE sessions (
    id {key} NOT NULL,
    guild_id BIGINT,
    channel_id BIGINT,
    started_at FLOAT NOT NULL,
    ended_at FLOAT,
    cursor {number} DEFAULT '0' NOT NULL,
    revision {number} DEFAULT '0' NOT NULL,
    forgettings {number} DEFAULT '0' NOT NULL,
    summary TEXT,
    last_at FLOAT,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX one_open_session_a_channel ON sessions (guild_id, channel_id)
    WHERE ended_at IS NULL AND channel_id IS NOT NULL;
CREATE TABLE tier_opt_outs (
    scope {key} NOT NULL,
    name {key} NOT NULL,
    PRIMARY KEY (scope, name)
);
CREATE TABLE attendance (
    session_id {key} NOT NULL,
    person_id {key} NOT NULL,
    came_at FLOAT NOT NULL,
    left_at FLOAT,
    PRIMARY KEY (session_id, person_id, came_at),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX attendance_by_person ON attendance (person_id);
CREATE TABLE corrections (
    session_id {key} NOT NULL,
    old_seq {number} NOT NULL,
    new_seq {number} NOT NULL,
    PRIMARY KEY (session_id, old_seq),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE notes (
    session_id {key} NOT NULL,
    id {key} NOT NULL,
    position {number} NOT NULL,
    status {key} NOT NULL,
    at FLOAT NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    why {key} NOT NULL,
    source {key} NOT NULL,
    frame_hash {key} NOT NULL,
    person_id {key},
    PRIMARY KEY (session_id, id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX notes_by_status ON notes (session_id, status);
CREATE INDEX notes_by_person ON notes (person_id);
CREATE TABLE passages (
    id {counted},
    session_id {key} NOT NULL,
    kind {key} NOT NULL,
    "key" {key} NOT NULL,
    start_seq {number},
    at FLOAT NOT NULL,
    own TEXT NOT NULL,
    tags TEXT NOT NULL,
    heard_from FLOAT DEFAULT '0' NOT NULL,
    heard_until FLOAT DEFAULT '0' NOT NULL,
    embedded_by {key},
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX passages_by_turn ON passages (session_id, start_seq);
CREATE INDEX passages_by_time ON passages (at);
CREATE UNIQUE INDEX one_passage_a_thing ON passages (session_id, kind, "key");
CREATE INDEX passages_to_embed ON passages (id) WHERE embedded_by IS NULL;
CREATE TABLE person_draws (
    session_id {key} NOT NULL,
    through_seq {number} NOT NULL,
    PRIMARY KEY (session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE person_facts (
    id {key} NOT NULL,
    session_id {key} NOT NULL,
    turn_seq {number} NOT NULL,
    person_id {key} NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    at FLOAT NOT NULL,
    superseded_by {key},
    superseded_at FLOAT,
    importance {number} DEFAULT '2' NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX person_facts_by_person ON person_facts (person_id);
CREATE INDEX person_facts_by_turn ON person_facts (session_id, turn_seq);
CREATE TABLE person_forgets (
    session_id {key} NOT NULL,
    person_id {key} NOT NULL,
    through_seq {number} NOT NULL,
    PRIMARY KEY (session_id, person_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE quoted_turns (
    id {row},
    session_id {key} NOT NULL,
    from_seq {number} NOT NULL,
    source_session {key} NOT NULL,
    source_seq {number},
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    FOREIGN KEY(source_session) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX quoted_turns_by_source ON quoted_turns (source_session);
CREATE INDEX quoted_turns_by_session ON quoted_turns (session_id);
CREATE TABLE reminders (
    id {counted},
    session_id {key} NOT NULL,
    guild_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    person_id {key} NOT NULL,
    whom TEXT NOT NULL,
    what TEXT NOT NULL,
    due_at FLOAT NOT NULL,
    in_chat BOOLEAN NOT NULL,
    people TEXT NOT NULL,
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX reminders_by_server ON reminders (guild_id);
CREATE INDEX reminders_by_time ON reminders (due_at);
CREATE TABLE segments (
    session_id {key} NOT NULL,
    id {key} NOT NULL,
    position {number} NOT NULL,
    start_seq {number} NOT NULL,
    end_seq {number} NOT NULL,
    started_at FLOAT NOT NULL,
    ended_at FLOAT NOT NULL,
    heading TEXT DEFAULT '' NOT NULL,
    gist TEXT NOT NULL,
    facts TEXT NOT NULL,
    note_ids TEXT NOT NULL,
    summariser {key} NOT NULL,
    closing BOOLEAN NOT NULL,
    created_at FLOAT NOT NULL,
    original_tokens {number} NOT NULL,
    compressed_tokens {number} NOT NULL,
    pruned BOOLEAN DEFAULT '0' NOT NULL,
    paragraph TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (session_id, id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX one_segment_a_range ON segments (session_id, start_seq, end_seq) WHERE start_seq < end_seq;
CREATE TABLE sent_prompts (
    id {row},
    session_id {key} NOT NULL,
    answer_to {number} NOT NULL,
    figures TEXT NOT NULL,
    parts {blob} NOT NULL,
    people TEXT DEFAULT '[]' NOT NULL,
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX sent_prompts_by_turn ON sent_prompts (session_id, answer_to);
CREATE TABLE tier_checks (
    session_id {key} NOT NULL,
    last_check_turn {number} NOT NULL,
    PRIMARY KEY (session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE turns (
    session_id {key} NOT NULL,
    seq {number} NOT NULL,
    kind {key} NOT NULL,
    started_at FLOAT NOT NULL,
    ended_at FLOAT NOT NULL,
    parts TEXT NOT NULL,
    tombstone BOOLEAN NOT NULL,
    answers {number},
    called BOOLEAN DEFAULT '0' NOT NULL,
    told_to TEXT DEFAULT '[]' NOT NULL,
    sources TEXT DEFAULT '[]' NOT NULL,
    PRIMARY KEY (session_id, seq),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE webhook_deliveries (
    session_id {key} NOT NULL,
    since FLOAT NOT NULL,
    attempts {number} DEFAULT '0' NOT NULL,
    due_at FLOAT DEFAULT '0' NOT NULL,
    PRIMARY KEY (session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE passage_vectors (
    id {counted},
    passage_id {number} NOT NULL,
    model {key} NOT NULL,
    scale FLOAT NOT NULL,
    vector {blob} NOT NULL,
    FOREIGN KEY(passage_id) REFERENCES passages (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX one_vector_a_passage ON passage_vectors (passage_id);
CREATE TABLE segment_tiers (
    session_id {key} NOT NULL,
    segment_id {key} NOT NULL,
    message_count {number} NOT NULL,
    last_mention {number} NOT NULL,
    queued_at_turn {number},
    queued_at FLOAT,
    compressed_at_turn {number},
    compressed_at FLOAT,
    topic TEXT,
    compressed_content TEXT,
    original_tokens {number},
    compressed_tokens {number},
    key_decisions TEXT,
    key_files TEXT,
    contains_code BOOLEAN,
    contains_errors BOOLEAN,
    task_completed BOOLEAN,
    last_accessed FLOAT,
    access_count {number} DEFAULT '0' NOT NULL,
    relevance_score FLOAT,
    archived_at FLOAT,
    pruned_at FLOAT,
    PRIMARY KEY (session_id, segment_id),
    FOREIGN KEY(session_id, segment_id) REFERENCES segments (session_id, id) ON DELETE CASCADE
);
CREATE INDEX archived_segments ON segment_tiers (archived_at)
"""

_MARKS = "INSERT INTO search_marks (name, value) VALUES ('generation', 0)"
_COUNTED = "UPDATE search_marks SET value = value + 1 WHERE name = 'generation'"
# What each event does on both databases. '$' is the character after '#': a range uses the index.
_TURN_GONE = (
    "DELETE FROM passages WHERE session_id = old.session_id AND kind IN ('turn', 'fact') AND start_seq = old.seq;"
)
_CORRECTIONS_GONE = (
    "DELETE FROM corrections WHERE session_id = old.session_id AND (old_seq = old.seq OR new_seq = old.seq);"
)
_NOTE_GONE = "DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND \"key\" = old.id;"
_SEGMENT_GONE = """
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
    AND "key" >= old.id || '#' AND "key" < old.id || '$';
"""
_PLACED = f"""
    UPDATE passages SET tags = replace(replace(tags, 'gnone', 'g' || coalesce(CAST(new.guild_id AS TEXT), 'none')),
        'cnone', 'c' || coalesce(CAST(new.channel_id AS TEXT), 'none'))
    WHERE session_id = new.id;
    {_COUNTED};
"""  # noqa: S608 - constants
_SESSION_GONE = "DELETE FROM tier_opt_outs WHERE scope = 'session' AND name = old.id;"
# Name, event, and what is done after it, for each row.
_TRIGGERS = (
    ("turn_forgotten", "UPDATE OF tombstone, parts ON turns", _TURN_GONE),
    ("turn_deleted", "DELETE ON turns", f"{_TURN_GONE} {_CORRECTIONS_GONE}"),
    ("note_deleted", "DELETE ON notes", _NOTE_GONE),
    ("note_changed", "UPDATE OF who, what ON notes", _NOTE_GONE),
    ("segment_deleted", "DELETE ON segments", _SEGMENT_GONE),
    ("segment_changed", "UPDATE OF gist, facts ON segments", _SEGMENT_GONE),
    ("session_placed", "UPDATE OF guild_id, channel_id ON sessions", _PLACED),
    ("session_deleted", "DELETE ON sessions", _SESSION_GONE),
)

_INDEX_OLD = """
    INSERT INTO passage_index (passage_index, rowid, own, tags) VALUES ('delete', old.id, old.own, old.tags);
"""
_INDEX_NEW = "INSERT INTO passage_index (rowid, own, tags) VALUES (new.id, new.own, new.tags);"
_SQLITE = (
    """
    CREATE VIRTUAL TABLE passage_index USING fts5(
        own, tags, content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 0'
    )
    """,
    *(
        f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW BEGIN {body} END"
        for name, event, body in (
            *_TRIGGERS,
            ("passage_added", "INSERT ON passages", _INDEX_NEW),
            ("passage_changed", "UPDATE OF own, tags ON passages", f"{_INDEX_OLD} {_INDEX_NEW}"),
            ("passage_deleted", "DELETE ON passages", f"{_INDEX_OLD} {_COUNTED};"),
        )
    ),
)

_POSTGRESQL = (
    # The terms and tags of a passage as lexemes (`bot.store.dialects.postgresql_sql`). One has at most 2,046 bytes.
    """
    CREATE FUNCTION roomtone_words(own TEXT, tags TEXT) RETURNS TSVECTOR
    LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(coalesce(array_agg(DISTINCT place || left(word, 500)), '{}'))
        FROM (VALUES ('o', own), ('t', tags)) AS texts (place, words), unnest(string_to_array(words, ' ')) AS word
        WHERE word <> ''
    $$
    """,
    "ALTER TABLE passages ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (roomtone_words(own, tags)) STORED",
    # Without a list of pending entries: a search would have to read it, and it would keep deleted words.
    "CREATE INDEX passages_by_words ON passages USING gin (words) WITH (fastupdate = off)",
    # Once for each statement: a session's thousand passages go in one.
    f"""
    CREATE FUNCTION passage_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        {_COUNTED} AND EXISTS (SELECT 1 FROM gone);
        RETURN NULL;
    END $$
    """,  # noqa: S608 - constants
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION passage_deleted()
    """,
    *(
        statement
        for name, event, body in _TRIGGERS
        for statement in (
            f"CREATE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$",
            f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW EXECUTE FUNCTION {name}()",
        )
    ),
)


def upgrade() -> None:
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    tables = _TABLES.format(**_SQLITE_TYPES if is_sqlite else _POSTGRESQL_TYPES).split(";")
    for statement in (*tables, *(_SQLITE if is_sqlite else _POSTGRESQL), _MARKS):
        connection.exec_driver_sql(statement)
