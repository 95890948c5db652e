"""Facts about people are sentences of segments: topic and value came from rules that are gone."""

from bot.store.migrations.step import run_on_sqlite

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    "ALTER TABLE person_facts DROP COLUMN topic",
    "ALTER TABLE person_facts DROP COLUMN value",
    "ALTER TABLE person_facts ADD COLUMN importance INTEGER NOT NULL DEFAULT 2",
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
