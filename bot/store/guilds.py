"""What has been chosen on a guild: how its sessions remember, whether the budget is kept, when the bot speaks.

One small row a guild, read once and then known; whoever changes it goes through here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Boolean, Column, Float, String, Table, select, update

from bot.guild import GuildChoice, Silence, VoiceMode
from bot.store.base import metadata
from compaction.errors import StoreError
from compaction.model import Mode

if TYPE_CHECKING:
    from sqlalchemy import Row

    from bot.clock import Clock
    from bot.store.database import Database

guild_settings = Table(
    "guild_settings",
    metadata,
    Column("guild_id", BigInteger, primary_key=True, autoincrement=False),
    Column("compaction_mode", String),
    Column("budget_enabled", Boolean),
    Column("changed_at", Float, nullable=False),
    Column("changed_by", BigInteger),
    Column("voice_mode", String),
    # A list of names as JSON.
    Column("wake_names", String),
    Column("quiet_always", Boolean),
    Column("quiet_session", String),
    Column("quiet_until", Float),
    Column("persona", String),
)

# The database's fourth step. Frozen as shipped.
GUILDS_STEP = (
    """
    CREATE TABLE guild_settings (
        guild_id BIGINT NOT NULL PRIMARY KEY,
        compaction_mode VARCHAR,
        budget_enabled BOOLEAN,
        changed_at FLOAT NOT NULL,
        changed_by BIGINT
    )
    """,
)

# Part of the database's fifth step. Frozen as shipped.
VOICE_COLUMNS = (
    "ALTER TABLE guild_settings ADD COLUMN voice_mode VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN wake_names VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_always BOOLEAN",
    "ALTER TABLE guild_settings ADD COLUMN quiet_session VARCHAR",
    "ALTER TABLE guild_settings ADD COLUMN quiet_until FLOAT",
)

# The database's seventh step. Frozen as shipped.
PERSONA_STEP = ("ALTER TABLE guild_settings ADD COLUMN persona VARCHAR",)


class Guilds:
    """The choices of all guilds in an open `Database`. Raises `StoreError`. Safe for all tasks of one loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[int, GuildChoice] = {}

    async def choice(self, guild_id: int) -> GuildChoice:
        """Return what the guild has chosen."""
        if guild_id not in self._known:
            wanted = select(guild_settings).where(guild_settings.c.guild_id == guild_id)
            async with self._database.reading() as connection:
                row = (await connection.execute(wanted)).one_or_none()
            # Somebody may have chosen meanwhile; that is the newer one.
            self._known.setdefault(guild_id, GuildChoice() if row is None else _choice(row))
        return self._known[guild_id]

    async def choose(self, guild_id: int, choice: GuildChoice, *, by: int) -> None:
        """Store what the guild chooses from now on. `by`: the member who did."""
        values: dict[str, object] = {
            "compaction_mode": None if choice.mode is None else choice.mode.value,
            "budget_enabled": choice.budget_enabled,
            "changed_at": self._clock.now(),
            "changed_by": by,
            "voice_mode": None if choice.voice_mode is None else choice.voice_mode.value,
            "wake_names": None if choice.wake_names is None else json.dumps(choice.wake_names, ensure_ascii=False),
            "quiet_always": choice.silence.always,
            "quiet_session": choice.silence.session_id,
            "quiet_until": choice.silence.until,
            "persona": choice.persona,
        }
        async with self._database.writing() as connection:
            changed = await connection.execute(
                update(guild_settings).where(guild_settings.c.guild_id == guild_id).values(values)
            )
            if changed.rowcount == 0:
                await connection.execute(guild_settings.insert().values(values | {"guild_id": guild_id}))
        self._known[guild_id] = choice


def _choice(row: Row[Any]) -> GuildChoice:
    try:
        mode = None if row.compaction_mode is None else Mode(row.compaction_mode)
    except ValueError as exc:
        raise StoreError(
            f"Guild {row.guild_id} has a mode of memory that this Roomtone does not know: {row.compaction_mode!r}. "
            "Choose one by /rolling-context."
        ) from exc
    try:
        voice_mode = None if row.voice_mode is None else VoiceMode(row.voice_mode)
        wake_names = None if row.wake_names is None else tuple(str(name) for name in json.loads(row.wake_names))
    except ValueError as exc:
        raise StoreError(
            f"What guild {row.guild_id} has chosen of when I speak cannot be read. Choose anew by /voice-mode and "
            "/wake-names."
        ) from exc
    silence = Silence(always=bool(row.quiet_always), session_id=row.quiet_session, until=row.quiet_until)
    return GuildChoice(mode, row.budget_enabled, voice_mode, wake_names, silence, row.persona)
