"""Who does not want to be heard on a guild. Kept until they take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Column, Float, Table, and_, delete, select

from bot.store.base import metadata
from bot.store.guilds import VOICE_COLUMNS

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.database import Database

hearing_opt_outs = Table(
    "hearing_opt_outs",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column("person_id", BigInteger, primary_key=True, autoincrement=False),
    Column("since", Float, nullable=False),
)

# The database's fifth step: when the bot speaks, and whom it hears. Frozen as shipped.
PARTICIPATION_STEP = (
    *VOICE_COLUMNS,
    """
    CREATE TABLE hearing_opt_outs (
        guild_id BIGINT NOT NULL,
        person_id BIGINT NOT NULL,
        since FLOAT NOT NULL,
        PRIMARY KEY (guild_id, person_id)
    )
    """,
)


class OptOuts:
    """The opt-outs of all guilds in an open `Database`. Raises `StoreError`. Safe for all tasks of one loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return who does not want to be heard on that guild."""
        wanted = select(hearing_opt_outs.c.person_id).where(hearing_opt_outs.c.guild_id == guild_id)
        async with self._database.reading() as connection:
            return frozenset((await connection.execute(wanted)).scalars())

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store that a person does not want to be heard there, or does again."""
        same = and_(hearing_opt_outs.c.guild_id == guild_id, hearing_opt_outs.c.person_id == person_id)
        async with self._database.writing() as connection:
            await connection.execute(delete(hearing_opt_outs).where(same))
            if out:
                values = {"guild_id": guild_id, "person_id": person_id, "since": self._clock.now()}
                await connection.execute(hearing_opt_outs.insert().values(values))
