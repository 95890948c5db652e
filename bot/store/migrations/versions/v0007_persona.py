"""How the bot is on one server."""

from bot.store.migrations.step import run_on_sqlite

revision = "0007"
down_revision = "0006"

STATEMENTS = ("ALTER TABLE guild_settings ADD COLUMN persona VARCHAR",)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
