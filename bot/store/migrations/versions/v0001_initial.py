"""All tables, as `bot.store.tables` defines them, with the search index and the triggers of `bot.store.triggers`."""

from alembic import op

from bot.store.tables import metadata
from bot.store.triggers import statements_for

revision = "0001"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    metadata.create_all(connection)
    for statement in statements_for(connection.dialect.name):
        connection.exec_driver_sql(statement)
