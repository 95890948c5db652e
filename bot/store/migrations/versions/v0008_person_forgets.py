"""Who deleted the facts about them, so that nothing is extracted from their earlier turns."""

from bot.store.migrations.step import run_on_sqlite

revision = "0008"
down_revision = "0007"

STATEMENTS = (
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


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
