"""Turns tell whether all of them was said to the bot. Of older ones that is not known."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.get_bind().exec_driver_sql("ALTER TABLE turns ADD COLUMN called BOOLEAN DEFAULT '0' NOT NULL")
