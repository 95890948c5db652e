"""Which message has the recap of a session, and since when it has words that were forgotten."""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = (
    "ALTER TABLE sessions ADD COLUMN recap_message_id BIGINT",
    "ALTER TABLE sessions ADD COLUMN recap_stale_at FLOAT",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
