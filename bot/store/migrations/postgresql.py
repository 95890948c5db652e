"""The schema with which a PostgreSQL database begins: that of step 14. Later steps run on both databases.

Frozen like the steps. Ids and keys are compared byte by byte (`COLLATE "C"`), as in SQLite, whatever the database's
language. Triggers do what SQLite's do: what is deleted or forgotten leaves the search index in the same transaction.
"""

from __future__ import annotations

FIRST = "0014"

_TABLES = (
    """
    CREATE TABLE sessions (
        id VARCHAR COLLATE "C" NOT NULL PRIMARY KEY,
        guild_id BIGINT,
        channel_id BIGINT,
        started_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        cursor BIGINT NOT NULL DEFAULT 0,
        revision BIGINT NOT NULL DEFAULT 0,
        summary TEXT,
        last_at DOUBLE PRECISION
    )
    """,
    """
    CREATE UNIQUE INDEX one_open_session_a_channel ON sessions (guild_id, channel_id)
    WHERE ended_at IS NULL AND channel_id IS NOT NULL
    """,
    """
    CREATE TABLE turns (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        kind VARCHAR NOT NULL,
        started_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION NOT NULL,
        parts TEXT NOT NULL,
        tombstone BOOLEAN NOT NULL,
        answers BIGINT,
        PRIMARY KEY (session_id, seq)
    )
    """,
    """
    CREATE TABLE notes (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        id VARCHAR COLLATE "C" NOT NULL,
        position BIGINT NOT NULL,
        status VARCHAR NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        why VARCHAR NOT NULL,
        source VARCHAR NOT NULL,
        frame_hash VARCHAR NOT NULL,
        PRIMARY KEY (session_id, id)
    )
    """,
    "CREATE INDEX notes_by_status ON notes (session_id, status)",
    """
    CREATE TABLE segments (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        id VARCHAR COLLATE "C" NOT NULL,
        position BIGINT NOT NULL,
        start_seq BIGINT NOT NULL,
        end_seq BIGINT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION NOT NULL,
        gist TEXT NOT NULL,
        facts TEXT NOT NULL,
        note_ids TEXT NOT NULL,
        summariser VARCHAR NOT NULL,
        degraded BOOLEAN NOT NULL,
        closing BOOLEAN NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        original_tokens BIGINT NOT NULL,
        compressed_tokens BIGINT NOT NULL,
        pruned BOOLEAN NOT NULL DEFAULT FALSE,
        paragraph TEXT NOT NULL DEFAULT '',
        paragraph_problem TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (session_id, id)
    )
    """,
    """
    CREATE UNIQUE INDEX one_segment_a_range ON segments (session_id, start_seq, end_seq)
    WHERE start_seq < end_seq
    """,
    """
    CREATE TABLE chapters (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        id VARCHAR COLLATE "C" NOT NULL,
        level BIGINT NOT NULL,
        start_seq BIGINT NOT NULL,
        end_seq BIGINT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION NOT NULL,
        gist TEXT NOT NULL,
        refs TEXT NOT NULL,
        summariser VARCHAR NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        paragraph TEXT NOT NULL,
        paragraph_problem TEXT NOT NULL,
        PRIMARY KEY (session_id, id)
    )
    """,
    """
    CREATE TABLE landings (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        revision BIGINT NOT NULL,
        cursor BIGINT NOT NULL,
        landed_at DOUBLE PRECISION NOT NULL,
        segment_id VARCHAR COLLATE "C",
        summary TEXT,
        chapter_id VARCHAR COLLATE "C",
        PRIMARY KEY (session_id, revision)
    )
    """,
    """
    CREATE TABLE segment_tiers (
        session_id VARCHAR COLLATE "C" NOT NULL,
        segment_id VARCHAR COLLATE "C" NOT NULL,
        message_count BIGINT NOT NULL,
        last_mention BIGINT NOT NULL,
        queued_at_turn BIGINT,
        queued_at DOUBLE PRECISION,
        compressed_at_turn BIGINT,
        compressed_at DOUBLE PRECISION,
        topic TEXT,
        compressed_content TEXT,
        original_tokens BIGINT,
        compressed_tokens BIGINT,
        key_decisions TEXT,
        key_files TEXT,
        contains_code BOOLEAN,
        contains_errors BOOLEAN,
        task_completed BOOLEAN,
        last_accessed DOUBLE PRECISION,
        access_count BIGINT NOT NULL DEFAULT 0,
        relevance_score DOUBLE PRECISION,
        archived_at DOUBLE PRECISION,
        pruned_at DOUBLE PRECISION,
        PRIMARY KEY (session_id, segment_id),
        FOREIGN KEY (session_id, segment_id) REFERENCES segments (session_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX archived_segments ON segment_tiers (archived_at)",
    """
    CREATE TABLE tier_checks (
        session_id VARCHAR COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        last_check_turn BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE tier_opt_outs (
        scope VARCHAR COLLATE "C" NOT NULL,
        name VARCHAR COLLATE "C" NOT NULL,
        PRIMARY KEY (scope, name)
    )
    """,
    """
    CREATE TABLE person_facts (
        id VARCHAR COLLATE "C" NOT NULL PRIMARY KEY,
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        turn_seq BIGINT NOT NULL,
        person_id VARCHAR COLLATE "C" NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        superseded_by VARCHAR COLLATE "C",
        superseded_at DOUBLE PRECISION,
        importance BIGINT NOT NULL DEFAULT 2
    )
    """,
    "CREATE INDEX person_facts_by_person ON person_facts (person_id)",
    "CREATE INDEX person_facts_by_turn ON person_facts (session_id, turn_seq)",
    """
    CREATE TABLE person_draws (
        session_id VARCHAR COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        through_seq BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE person_forgets (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        person_id VARCHAR COLLATE "C" NOT NULL,
        through_seq BIGINT NOT NULL,
        PRIMARY KEY (session_id, person_id)
    )
    """,
    'CREATE TABLE prompts (digest VARCHAR COLLATE "C" NOT NULL PRIMARY KEY, text TEXT NOT NULL)',
    """
    CREATE TABLE sent_texts (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        digest VARCHAR COLLATE "C" NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session_id, digest)
    )
    """,
    """
    CREATE TABLE forgotten_sessions (
        digest VARCHAR COLLATE "C" NOT NULL PRIMARY KEY,
        from_seq BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL
    )
    """,
    'CREATE TABLE forgotten_runs (digest VARCHAR COLLATE "C" NOT NULL PRIMARY KEY)',
    """
    CREATE TABLE guild_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        compaction_mode VARCHAR,
        budget_enabled BOOLEAN,
        changed_at DOUBLE PRECISION NOT NULL,
        changed_by BIGINT,
        voice_mode VARCHAR,
        wake_names VARCHAR,
        quiet_always BOOLEAN,
        quiet_session VARCHAR COLLATE "C",
        quiet_until DOUBLE PRECISION,
        persona VARCHAR
    )
    """,
    """
    CREATE TABLE server_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        choices TEXT NOT NULL,
        changed_at DOUBLE PRECISION NOT NULL,
        changed_by BIGINT
    )
    """,
    """
    CREATE TABLE hearing_opt_outs (
        guild_id BIGINT NOT NULL,
        person_id BIGINT NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (guild_id, person_id)
    )
    """,
)

_SEARCH = (
    # The terms and tags of a passage as lexemes (`bot.store.dialects.postgresql_sql`). One has at most 2,046 bytes.
    """
    CREATE FUNCTION roomtone_words(own TEXT, preceding TEXT, following TEXT, tags TEXT) RETURNS TSVECTOR
    LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(coalesce(array_agg(DISTINCT place || left(word, 500)), '{}'))
        FROM (VALUES ('o', own), ('p', preceding), ('f', following), ('t', tags)) AS texts (place, words),
        unnest(string_to_array(words, ' ')) AS word
        WHERE word <> ''
    $$
    """,
    """
    CREATE TABLE passages (
        id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        kind VARCHAR COLLATE "C" NOT NULL,
        "key" VARCHAR COLLATE "C" NOT NULL,
        start_seq BIGINT,
        at DOUBLE PRECISION NOT NULL,
        own TEXT NOT NULL,
        preceding TEXT NOT NULL,
        following TEXT NOT NULL,
        tags TEXT NOT NULL,
        embedded_by VARCHAR COLLATE "C",
        words TSVECTOR GENERATED ALWAYS AS (roomtone_words(own, preceding, following, tags)) STORED
    )
    """,
    'CREATE UNIQUE INDEX one_passage_a_thing ON passages (session_id, kind, "key")',
    "CREATE INDEX passages_by_turn ON passages (session_id, start_seq)",
    "CREATE INDEX passages_by_time ON passages (at)",
    "CREATE INDEX passages_to_embed ON passages (id) WHERE embedded_by IS NULL",
    # Without a list of pending entries: a search would have to read it, and it would keep deleted words.
    "CREATE INDEX passages_by_words ON passages USING gin (words) WITH (fastupdate = off)",
    """
    CREATE TABLE passage_vectors (
        id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        passage_id BIGINT NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
        model VARCHAR COLLATE "C" NOT NULL,
        scale DOUBLE PRECISION NOT NULL,
        vector BYTEA NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX one_vector_a_passage ON passage_vectors (passage_id)",
    """
    CREATE TABLE corrections (
        session_id VARCHAR COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        old_seq BIGINT NOT NULL,
        new_seq BIGINT NOT NULL,
        PRIMARY KEY (session_id, old_seq)
    )
    """,
    'CREATE TABLE search_marks (name VARCHAR COLLATE "C" NOT NULL PRIMARY KEY, value BIGINT NOT NULL)',
    "INSERT INTO search_marks (name, value) VALUES ('generation', 0), ('purged', 0)",
)


def _trigger(name: str, event: str, body: str) -> tuple[str, str]:
    """Return the statements of a trigger that runs `body` after each row of an event."""
    return (
        f"CREATE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$",
        f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW EXECUTE FUNCTION {name}()",
    )


_OF_TURN = (
    "DELETE FROM passages WHERE session_id = old.session_id AND kind IN ('turn', 'fact') AND start_seq = old.seq;"
)
_OF_NOTE = "DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND \"key\" = old.id;"
# '$' is the character after '#': a range uses the index.
_OF_SEGMENT = """
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
    AND "key" >= old.id || '#' AND "key" < old.id || '$';
"""

_TRIGGERS = (
    # Once for each statement: a session's thousand passages go in one.
    """
    CREATE FUNCTION passage_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        UPDATE passages AS p SET following = '' FROM gone AS g
        WHERE g.kind = 'turn' AND p.session_id = g.session_id AND p.kind = 'turn' AND p.start_seq = g.start_seq - 1;
        UPDATE passages AS p SET preceding = '' FROM gone AS g
        WHERE g.kind = 'turn' AND p.session_id = g.session_id AND p.kind = 'turn' AND p.start_seq = g.start_seq + 1;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation' AND EXISTS (SELECT 1 FROM gone);
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION passage_deleted()
    """,
    *_trigger("turn_forgotten", "UPDATE OF tombstone, parts ON turns", _OF_TURN),
    *_trigger(
        "turn_deleted",
        "DELETE ON turns",
        f"{_OF_TURN} DELETE FROM corrections "  # noqa: S608 - a constant
        "WHERE session_id = old.session_id AND (old_seq = old.seq OR new_seq = old.seq);",
    ),
    *_trigger("note_deleted", "DELETE ON notes", _OF_NOTE),
    *_trigger("note_changed", "UPDATE OF who, what ON notes", _OF_NOTE),
    *_trigger("segment_deleted", "DELETE ON segments", _OF_SEGMENT),
    *_trigger("segment_changed", "UPDATE OF gist, facts ON segments", _OF_SEGMENT),
    *_trigger(
        "session_placed",
        "UPDATE OF guild_id, channel_id ON sessions",
        """
        UPDATE passages SET tags = replace(replace(tags, 'gnone', 'g' || coalesce(new.guild_id::text, 'none')),
            'cnone', 'c' || coalesce(new.channel_id::text, 'none'))
        WHERE session_id = new.id;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';
        """,
    ),
)

STATEMENTS = (*_TABLES, *_SEARCH, *_TRIGGERS)
