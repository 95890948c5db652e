"""What a step calls: it runs SQL in the transaction of the upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic import op

if TYPE_CHECKING:
    from collections.abc import Iterable


def run_on_sqlite(statements: Iterable[str]) -> None:
    """Run statements that only SQLite has; on another database do nothing."""
    _run_on("sqlite", statements)


def run_on_postgresql(statements: Iterable[str]) -> None:
    """Run statements that only PostgreSQL has; on another database do nothing."""
    _run_on("postgresql", statements)


def _run_on(dialect: str, statements: Iterable[str]) -> None:
    connection = op.get_bind()
    if connection.dialect.name == dialect:
        for statement in statements:
            connection.exec_driver_sql(statement)
