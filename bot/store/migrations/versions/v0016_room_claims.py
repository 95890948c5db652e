"""The number of the last start of each server's room, which its writes carry."""

from alembic import op

revision = "0016"
down_revision = "0015"

STATEMENTS = (
    """
    CREATE TABLE room_claims (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        number BIGINT NOT NULL
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
