"""Which turn a reply answers, and hashes of what was forgotten."""

from bot.store.migrations.step import run_on_sqlite

revision = "0011"
down_revision = "0010"

STATEMENTS = (
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


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
