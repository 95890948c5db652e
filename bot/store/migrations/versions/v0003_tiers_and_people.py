"""The tiers of segments, the summary of each landing, and the facts that people said about themselves."""

from bot.store.migrations.step import run_on_sqlite

revision = "0003"
down_revision = "0002"

STATEMENTS = (
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


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
