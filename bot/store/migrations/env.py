"""What Alembic runs for each command: it gives Alembic the connection that `upgrade` has put into its configuration."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
