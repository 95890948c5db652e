"""What Alembic runs for each command: it gives Alembic the connection that `upgrade` has put into its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import context

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection


def _write_user_version(ctx: object, step: object, heads: Collection[Any], run_args: object) -> None:
    """Keep SQLite's own mark up to date too: a Roomtone from before Alembic refuses the database by it."""
    (head,) = heads
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {int(head)}")


connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, on_version_apply=_write_user_version)
context.run_migrations()
