"""Sessions with their turns, notes and segments."""

from bot.store.migrations.step import run_on_sqlite

revision = "0001"
down_revision = None

STATEMENTS = (
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
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
