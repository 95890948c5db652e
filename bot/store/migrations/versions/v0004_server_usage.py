"""What each server has used of the language models and the voice."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        """
        CREATE TABLE server_usage (
            slot BIGINT NOT NULL,
            guild_id BIGINT NOT NULL,
            calls BIGINT NOT NULL,
            tokens BIGINT NOT NULL,
            spoken_s FLOAT NOT NULL,
            PRIMARY KEY (slot, guild_id)
        )
        """
    )
