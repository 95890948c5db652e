"""What the managers of each server have chosen, as JSON."""

from bot.store.migrations.step import run_on_sqlite

revision = "0012"
down_revision = "0011"

STATEMENTS = (
    """
    CREATE TABLE server_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        choices TEXT NOT NULL,
        changed_at FLOAT NOT NULL,
        changed_by BIGINT
    )
    """,
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
