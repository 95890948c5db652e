"""Texts that were sent to a model and cannot be built again."""

from bot.store.migrations.step import run_on_sqlite

revision = "0006"
down_revision = "0005"

STATEMENTS = (
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


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
