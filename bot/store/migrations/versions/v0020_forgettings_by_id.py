"""Who was forgotten is known by the id alone: every note of a screen that is stored from now on has its owner's."""

from alembic import op

revision = "0020"
down_revision = "0019"

STATEMENTS = ("ALTER TABLE forgettings DROP COLUMN names",)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
