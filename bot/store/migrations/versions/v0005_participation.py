"""When the bot speaks, and who opted out of being heard."""

from bot.store.migrations.step import run_on_sqlite

revision = "0005"
down_revision = "0004"

STATEMENTS = (
    "ALTER TABLE guild_settings ADD COLUMN voice_mode VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN wake_names VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_always BOOLEAN",
    "ALTER TABLE guild_settings ADD COLUMN quiet_session VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_until FLOAT",
    """
    CREATE TABLE hearing_opt_outs (
        guild_id BIGINT NOT NULL,
        person_id BIGINT NOT NULL,
        since FLOAT NOT NULL,
        PRIMARY KEY (guild_id, person_id)
    )
    """,
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
