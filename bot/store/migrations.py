"""The steps that create the database and bring an older one up to date.

The SQL here is frozen: never edit a shipped step, add a new one. Tests check that no step changed and that all steps
together make the tables of `bot.store.tables`. The SQL uses only what PostgreSQL has too, apart from full-text search
and the JSON functions of `_CHAPTERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_SEARCH_TABLES = (
    """
    CREATE TABLE passages (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        session_id VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        "key" VARCHAR NOT NULL,
        start_seq INTEGER,
        at FLOAT NOT NULL,
        own TEXT NOT NULL,
        preceding TEXT NOT NULL,
        following TEXT NOT NULL,
        tags TEXT NOT NULL,
        embedded_by VARCHAR,
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    'CREATE UNIQUE INDEX one_passage_a_thing ON passages (session_id, kind, "key")',
    "CREATE INDEX passages_by_turn ON passages (session_id, start_seq)",
    "CREATE INDEX passages_by_time ON passages (at)",
    "CREATE INDEX passages_to_embed ON passages (id) WHERE embedded_by IS NULL",
    """
    CREATE TABLE passage_vectors (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        passage_id INTEGER NOT NULL,
        model VARCHAR NOT NULL,
        scale FLOAT NOT NULL,
        vector BLOB NOT NULL,
        FOREIGN KEY(passage_id) REFERENCES passages (id) ON DELETE CASCADE
    )
    """,
    "CREATE UNIQUE INDEX one_vector_a_passage ON passage_vectors (passage_id)",
    """
    CREATE TABLE corrections (
        session_id VARCHAR NOT NULL,
        old_seq INTEGER NOT NULL,
        new_seq INTEGER NOT NULL,
        PRIMARY KEY (session_id, old_seq),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "CREATE TABLE search_marks (name VARCHAR NOT NULL PRIMARY KEY, value INTEGER NOT NULL)",
    "INSERT INTO search_marks (name, value) VALUES ('generation', 0), ('purged', 0)",
)

# Objects that table definitions cannot describe. `passage_index` is SQLite's FTS5 over the terms in `passages`. The
# triggers keep it up to date: when a turn, a note, a segment or a session is deleted or forgotten, its passages and
# index entries go in the same transaction.
SEARCH_OBJECTS = (
    """
    CREATE VIRTUAL TABLE passage_index USING fts5(
        own, preceding, following, tags,
        content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 0'
    )
    """,
    "CREATE VIRTUAL TABLE passage_terms USING fts5vocab('passage_index', 'row')",
    """
    CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO passage_index (rowid, own, preceding, following, tags)
        VALUES (new.id, new.own, new.preceding, new.following, new.tags);
    END
    """,
    """
    CREATE TRIGGER passage_changed AFTER UPDATE OF own, preceding, following, tags ON passages BEGIN
        INSERT INTO passage_index (passage_index, rowid, own, preceding, following, tags)
        VALUES ('delete', old.id, old.own, old.preceding, old.following, old.tags);
        INSERT INTO passage_index (rowid, own, preceding, following, tags)
        VALUES (new.id, new.own, new.preceding, new.following, new.tags);
    END
    """,
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages BEGIN
        INSERT INTO passage_index (passage_index, rowid, own, preceding, following, tags)
        VALUES ('delete', old.id, old.own, old.preceding, old.following, old.tags);
        UPDATE passages SET following = ''
        WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq - 1;
        UPDATE passages SET preceding = ''
        WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq + 1;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';
    END
    """,
    """
    CREATE TRIGGER turn_forgotten AFTER UPDATE OF tombstone, parts ON turns BEGIN
        DELETE FROM passages WHERE session_id = new.session_id AND kind = 'turn' AND start_seq = new.seq;
    END
    """,
    """
    CREATE TRIGGER turn_deleted AFTER DELETE ON turns BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'turn' AND start_seq = old.seq;
        DELETE FROM corrections WHERE session_id = old.session_id AND (old_seq = old.seq OR new_seq = old.seq);
    END
    """,
    """
    CREATE TRIGGER note_deleted AFTER DELETE ON notes BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER note_changed AFTER UPDATE OF who, what ON notes BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER segment_deleted AFTER DELETE ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER session_placed AFTER UPDATE OF guild_id, channel_id ON sessions BEGIN
        UPDATE passages SET tags = replace(replace(tags, 'gnone', 'g' || coalesce(new.guild_id, 'none')),
            'cnone', 'c' || coalesce(new.channel_id, 'none'))
        WHERE session_id = new.id;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';
    END
    """,
)

# The tiers of segments, the summary of each landing, and the facts that people said about themselves.
_TIERS_AND_PEOPLE = (
    "ALTER TABLE segments ADD COLUMN pruned BOOLEAN NOT NULL DEFAULT FALSE",
    """
    CREATE TABLE landings (
        session_id VARCHAR NOT NULL,
        revision INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        landed_at FLOAT NOT NULL,
        segment_id VARCHAR,
        summary TEXT,
        PRIMARY KEY (session_id, revision),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE segment_tiers (
        session_id VARCHAR NOT NULL,
        segment_id VARCHAR NOT NULL,
        message_count INTEGER NOT NULL,
        last_mention INTEGER NOT NULL,
        queued_at_turn INTEGER,
        queued_at FLOAT,
        compressed_at_turn INTEGER,
        compressed_at FLOAT,
        topic TEXT,
        compressed_content TEXT,
        original_tokens INTEGER,
        compressed_tokens INTEGER,
        key_decisions TEXT,
        key_files TEXT,
        contains_code BOOLEAN,
        contains_errors BOOLEAN,
        task_completed BOOLEAN,
        last_accessed FLOAT,
        access_count INTEGER NOT NULL DEFAULT 0,
        relevance_score FLOAT,
        archived_at FLOAT,
        pruned_at FLOAT,
        PRIMARY KEY (session_id, segment_id),
        FOREIGN KEY(session_id, segment_id) REFERENCES segments (session_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX archived_segments ON segment_tiers (archived_at)",
    """
    CREATE TABLE tier_checks (
        session_id VARCHAR NOT NULL PRIMARY KEY,
        last_check_turn INTEGER NOT NULL,
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "CREATE TABLE tier_opt_outs (scope VARCHAR NOT NULL, name VARCHAR NOT NULL, PRIMARY KEY (scope, name))",
    """
    CREATE TABLE person_facts (
        id VARCHAR NOT NULL PRIMARY KEY,
        session_id VARCHAR NOT NULL,
        turn_seq INTEGER NOT NULL,
        person_id VARCHAR NOT NULL,
        name TEXT NOT NULL,
        topic TEXT NOT NULL,
        value TEXT NOT NULL,
        text TEXT NOT NULL,
        at FLOAT NOT NULL,
        superseded_by VARCHAR,
        superseded_at FLOAT,
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX person_facts_by_person ON person_facts (person_id)",
    "CREATE INDEX person_facts_by_turn ON person_facts (session_id, turn_seq)",
    """
    CREATE TABLE person_draws (
        session_id VARCHAR NOT NULL PRIMARY KEY,
        through_seq INTEGER NOT NULL,
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "CREATE TABLE prompts (digest VARCHAR NOT NULL PRIMARY KEY, text TEXT NOT NULL)",
)

_GUILD_SETTINGS = (
    """
    CREATE TABLE guild_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        compaction_mode VARCHAR,
        budget_enabled BOOLEAN,
        changed_at FLOAT NOT NULL,
        changed_by BIGINT
    )
    """,
)

# When the bot speaks, and who opted out of being heard.
_PARTICIPATION = (
    "ALTER TABLE guild_settings ADD COLUMN voice_mode VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN wake_names VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_always BOOLEAN",
    "ALTER TABLE guild_settings ADD COLUMN quiet_session VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_until FLOAT",
    """
    CREATE TABLE hearing_opt_outs (
        guild_id BIGINT NOT NULL,
        person_id BIGINT NOT NULL,
        since FLOAT NOT NULL,
        PRIMARY KEY (guild_id, person_id)
    )
    """,
)

_SENT_TEXTS = (
    """
    CREATE TABLE sent_texts (
        session_id VARCHAR NOT NULL,
        digest VARCHAR NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session_id, digest),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
)

_PERSONA = ("ALTER TABLE guild_settings ADD COLUMN persona VARCHAR",)

_PERSON_FORGETS = (
    """
    CREATE TABLE person_forgets (
        session_id VARCHAR NOT NULL,
        person_id VARCHAR NOT NULL,
        through_seq INTEGER NOT NULL,
        PRIMARY KEY (session_id, person_id),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
)

# Chapters over segments, the paragraph of each fold, and facts with several turns, a kind, a subject and an importance.
# A recursive segment had the paragraph as its gist and no facts of use; its first sentence becomes the gist.
_CHAPTERS = (
    "ALTER TABLE segments ADD COLUMN paragraph TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE segments ADD COLUMN paragraph_problem TEXT NOT NULL DEFAULT ''",
    """
    UPDATE segments SET paragraph = gist, facts = '[]',
        gist = substr(substr(gist, 1, instr(replace(replace(gist, '! ', '. '), '? ', '. ') || '. ', '. ')), 1, 300)
    WHERE summariser LIKE 'recursive%' OR summariser LIKE '% recursive%'
    """,
    # Without its trigger, the change of format leaves the search index as it is.
    "DROP TRIGGER segment_changed",
    """
    UPDATE segments SET facts = (
        SELECT json_group_array(json(fact)) FROM (
            SELECT json_remove(
                json_set(
                    each.value,
                    '$.turns', json_array(each.value -> '$.turn_seq'),
                    '$.kind', CASE each.value ->> '$.slot'
                        WHEN 'people' THEN 'lasting'
                        WHEN 'activity' THEN 'doing'
                        WHEN 'thread' THEN 'open'
                        WHEN 'decision' THEN 'decision'
                        ELSE 'other'
                    END,
                    '$.subject', each.value -> '$.speaker',
                    '$.importance', 2,
                    '$.quoted', json('true')
                ),
                '$.turn_seq', '$.slot'
            ) AS fact
            FROM json_each(segments.facts) AS each ORDER BY each.key
        )
    )
    WHERE facts <> '[]'
    """,
    """
    CREATE TRIGGER segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
    """
    CREATE TABLE chapters (
        session_id VARCHAR NOT NULL,
        id VARCHAR NOT NULL,
        level INTEGER NOT NULL,
        start_seq INTEGER NOT NULL,
        end_seq INTEGER NOT NULL,
        started_at FLOAT NOT NULL,
        ended_at FLOAT NOT NULL,
        gist TEXT NOT NULL,
        refs TEXT NOT NULL,
        summariser VARCHAR NOT NULL,
        created_at FLOAT NOT NULL,
        paragraph TEXT NOT NULL,
        paragraph_problem TEXT NOT NULL,
        PRIMARY KEY (session_id, id),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "ALTER TABLE landings ADD COLUMN chapter_id VARCHAR",
)

# Facts about people are sentences of segments: topic and value came from rules that are gone.
_PERSON_SENTENCES = (
    "ALTER TABLE person_facts DROP COLUMN topic",
    "ALTER TABLE person_facts DROP COLUMN value",
    "ALTER TABLE person_facts ADD COLUMN importance INTEGER NOT NULL DEFAULT 2",
)

# Which turn a reply answers, and hashes of what was forgotten.
_FORGOTTEN = (
    "ALTER TABLE turns ADD COLUMN answers INTEGER",
    """
    CREATE TABLE forgotten_sessions (
        digest VARCHAR NOT NULL PRIMARY KEY,
        from_seq INTEGER NOT NULL,
        at FLOAT NOT NULL
    )
    """,
    "CREATE TABLE forgotten_runs (digest VARCHAR NOT NULL PRIMARY KEY)",
)

_SERVER_SETTINGS = (
    """
    CREATE TABLE server_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        choices TEXT NOT NULL,
        changed_at FLOAT NOT NULL,
        changed_by BIGINT
    )
    """,
)

# The passages of facts go with their segment or turn. '$' is the character after '#': a range uses the index.
FACT_OBJECTS = (
    """
    CREATE TRIGGER facts_of_segment_deleted AFTER DELETE ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
        AND "key" >= old.id || '#' AND "key" < old.id || '$';
    END
    """,
    """
    CREATE TRIGGER facts_of_segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
        AND "key" >= old.id || '#' AND "key" < old.id || '$';
    END
    """,
    """
    CREATE TRIGGER facts_of_turn_forgotten AFTER UPDATE OF tombstone, parts ON turns BEGIN
        DELETE FROM passages WHERE session_id = new.session_id AND kind = 'fact' AND start_seq = new.seq;
    END
    """,
    """
    CREATE TRIGGER facts_of_turn_deleted AFTER DELETE ON turns BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact' AND start_seq = old.seq;
    END
    """,
)
# Without its passage, a segment with facts that a model wrote is indexed again at the next start, with these facts.
_FACTS_FOUND = (
    """
    DELETE FROM passages WHERE kind = 'segment' AND EXISTS (
        SELECT 1 FROM segments WHERE segments.session_id = passages.session_id AND segments.id = passages."key"
        AND (segments.facts LIKE '%"quoted":false%' OR segments.facts LIKE '%"quoted": false%')
    )
    """,
    *FACT_OBJECTS,
)

# MIGRATIONS[n - 1] creates version n. Never edit a shipped step: add a new one.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE sessions (
            id VARCHAR NOT NULL PRIMARY KEY,
            guild_id BIGINT,
            channel_id BIGINT,
            started_at FLOAT NOT NULL,
            ended_at FLOAT,
            cursor INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0,
            summary TEXT,
            last_at FLOAT
        )
        """,
        """
        CREATE UNIQUE INDEX one_open_session_a_channel ON sessions (guild_id, channel_id)
        WHERE ended_at IS NULL AND channel_id IS NOT NULL
        """,
        """
        CREATE TABLE turns (
            session_id VARCHAR NOT NULL,
            seq INTEGER NOT NULL,
            kind VARCHAR NOT NULL,
            started_at FLOAT NOT NULL,
            ended_at FLOAT NOT NULL,
            parts TEXT NOT NULL,
            tombstone BOOLEAN NOT NULL,
            PRIMARY KEY (session_id, seq),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        """
        CREATE TABLE notes (
            session_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            position INTEGER NOT NULL,
            status VARCHAR NOT NULL,
            at FLOAT NOT NULL,
            who TEXT NOT NULL,
            what TEXT NOT NULL,
            why VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            frame_hash VARCHAR NOT NULL,
            PRIMARY KEY (session_id, id),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX notes_by_status ON notes (session_id, status)",
        """
        CREATE TABLE segments (
            session_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            position INTEGER NOT NULL,
            start_seq INTEGER NOT NULL,
            end_seq INTEGER NOT NULL,
            started_at FLOAT NOT NULL,
            ended_at FLOAT NOT NULL,
            gist TEXT NOT NULL,
            facts TEXT NOT NULL,
            note_ids TEXT NOT NULL,
            summariser VARCHAR NOT NULL,
            degraded BOOLEAN NOT NULL,
            closing BOOLEAN NOT NULL,
            created_at FLOAT NOT NULL,
            original_tokens INTEGER NOT NULL,
            compressed_tokens INTEGER NOT NULL,
            PRIMARY KEY (session_id, id),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        """
        CREATE UNIQUE INDEX one_segment_a_range ON segments (session_id, start_seq, end_seq)
        WHERE start_seq < end_seq
        """,
    ),
    _SEARCH_TABLES + SEARCH_OBJECTS,
    _TIERS_AND_PEOPLE,
    _GUILD_SETTINGS,
    _PARTICIPATION,
    _SENT_TEXTS,
    _PERSONA,
    _PERSON_FORGETS,
    _CHAPTERS,
    _PERSON_SENTENCES,
    _FORGOTTEN,
    _SERVER_SETTINGS,
    _FACTS_FOUND,
)


async def migrate(connection: AsyncConnection, *, steps: tuple[tuple[str, ...], ...] = MIGRATIONS) -> int:
    """Run all missing steps and return the new version.

    `connection` must be in a write transaction: a crash then leaves the old version intact. Raises `StoreError`, and
    changes nothing, if a newer Roomtone wrote the database.
    """
    version = int((await connection.exec_driver_sql("PRAGMA user_version")).scalar_one())
    if version > len(steps):
        raise too_new(version, known=len(steps))
    for number, statements in enumerate(steps[version:], start=version + 1):
        for statement in statements:
            await connection.exec_driver_sql(statement)
        await connection.exec_driver_sql(f"PRAGMA user_version = {number}")
    return len(steps)


def too_new(version: int, *, known: int = len(MIGRATIONS)) -> StoreError:
    return StoreError(
        f"The database is of version {version}, and this Roomtone knows only {known}: a newer one wrote it. "
        "Install a later Roomtone, or set storage.data_dir to another directory."
    )
