"""Other users of a server who could have the bot run functions of theirs are found, on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from bot.cli.doctor.finding import Status
from bot.cli.doctor.storage import check_database
from bot.shards import ONLY_SHARD
from bot.store.database import open_database
from bot.store.dialects.postgresql_strangers import count_strangers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import SecretStr

pytestmark = pytest.mark.postgres
STRANGER = sql.Identifier("stranger")


@pytest.fixture
def connection(postgres_place: SecretStr) -> Iterator[psycopg.Connection]:
    """A connection of an administrator. There is another user who may log in, and nothing else."""
    with psycopg.connect(postgres_place.get_secret_value(), autocommit=True) as administrator:
        administrator.execute(sql.SQL("CREATE ROLE {} LOGIN").format(STRANGER))
        try:
            yield administrator
        finally:
            administrator.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            administrator.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(STRANGER))
            administrator.execute(sql.SQL("DROP ROLE {}").format(STRANGER))


def test_who_may_create_functions_is_a_stranger(connection: psycopg.Connection) -> None:
    """By what everybody may, or by what was given to them alone; not who may not log in or connect."""
    assert count_strangers(connection) == 0
    connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    assert count_strangers(connection) == 1
    connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(STRANGER))
    assert count_strangers(connection) == 0
    connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(STRANGER))
    connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(STRANGER))
    assert count_strangers(connection) == 1
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(database))
    assert count_strangers(connection) == 0
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(database))
    assert count_strangers(connection) == 1


def test_who_administers_or_is_the_bot_is_none(connection: psycopg.Connection) -> None:
    """Also who may become the bot's user anyway."""
    connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    connection.execute(sql.SQL("ALTER ROLE {} SUPERUSER").format(STRANGER))
    assert count_strangers(connection) == 0
    connection.execute(sql.SQL("ALTER ROLE {} NOSUPERUSER").format(STRANGER))
    connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(connection.info.user), STRANGER))
    assert count_strangers(connection) == 0


@pytest.mark.asyncio
async def test_the_owner_is_told(postgres_place: SecretStr, connection: psycopg.Connection) -> None:
    """By the bot's log when it starts, and by `roomtone doctor`."""
    for grant, status in (("GRANT CREATE ON SCHEMA public TO PUBLIC", Status.WARNING), ("SELECT 1", Status.OK)):
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute(grant)
        with capture_logs() as logged:
            async with open_database(postgres_place) as database, database.held_by_bot(ONLY_SHARD):
                pass
        told = [line["count"] for line in logged if line["event"] == "database_open_to_others"]
        assert told == ([1] if status is Status.WARNING else [])
        finding = check_database(postgres_place)
        assert finding.status is status
        assert ("REVOKE CREATE ON SCHEMA public" in finding.remedy) is (status is Status.WARNING)
