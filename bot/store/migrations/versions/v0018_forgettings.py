"""Who was forgotten, as digests, so that rooms which are open learn of it before they write again."""

from alembic import op

revision = "0018"
down_revision = "0017"

STATEMENTS = (
    """
    CREATE TABLE forgettings (
        number BIGINT NOT NULL PRIMARY KEY,
        at FLOAT NOT NULL,
        person VARCHAR NOT NULL,
        names TEXT NOT NULL,
        only_session VARCHAR,
        only_seq BIGINT
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
