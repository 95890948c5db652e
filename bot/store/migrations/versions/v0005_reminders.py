"""The reminders that people have asked for."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    key = "VARCHAR" if is_sqlite else 'VARCHAR COLLATE "C"'
    # An id that the database never chooses twice: a restored backup tells by it what was deleted since.
    counted = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT" if is_sqlite else "BIGSERIAL PRIMARY KEY"
    connection.exec_driver_sql(
        f"""
        CREATE TABLE reminders (
            id {counted},
            session_id {key} NOT NULL,
            guild_id BIGINT NOT NULL,
            channel_id BIGINT NOT NULL,
            person_id {key} NOT NULL,
            whom TEXT NOT NULL,
            what TEXT NOT NULL,
            due_at FLOAT NOT NULL,
            in_chat BOOLEAN NOT NULL,
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """
    )
    connection.exec_driver_sql("CREATE INDEX reminders_by_server ON reminders (guild_id)")
    connection.exec_driver_sql("CREATE INDEX reminders_by_time ON reminders (due_at)")
