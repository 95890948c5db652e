"""What each server has chosen of memory."""

from bot.store.migrations.step import run_on_sqlite

revision = "0004"
down_revision = "0003"

STATEMENTS = (
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


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
