"""The key with which the database names people who were forgotten.

Their ids stand on a list, so that restores leave them out (`bot.store.forgettings`). Discord's ids can all be tried, so
a plain hash would name them to whoever has the database or a backup. The list has HMACs instead, and the key is in
a file of its own, which no backup holds. All processes of one database need the same file. The list has nothing that
was made of words.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import select

from bot.private_files import make_private_folder, open_private, sync_names
from bot.store.inserts import put_row
from bot.store.tables import search_marks
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

KEY_FILE = "forgetting.key"
_KEY_BYTES = 32
_DIGEST_BYTES = 16
# The mark by which a database recognises its key.
_MARK = "forgetting_key"


class ForgettingKey:
    """The key in the file at `path`, which is made with mode 0600 at the first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: bytes | None = None

    def person(self, person_id: str) -> str:
        """Return what stands for a person. Raises `StoreError` if the file can be neither read nor made."""
        return self._digest("person", person_id)

    async def claim(self, connection: AsyncConnection) -> None:
        """Note, inside a write transaction, that this is the key of the database. Raises `StoreError` if another is."""
        if not await self.is_of(connection):
            raise StoreError(
                Text(
                    "{path} is not the key of this database. Copy the file {name} from the computer "
                    "where you made the database: it is in its data folder. Then start again.",
                    path=self.path,
                    name=KEY_FILE,
                )
            )
        await self.adopt(connection)

    async def is_of(self, connection: AsyncConnection) -> bool:
        """Return whether this key made the list of a database, or none has."""
        mark = await connection.scalar(select(search_marks.c.value).where(search_marks.c.name == _MARK))
        return mark in (None, self._mark())

    async def adopt(self, connection: AsyncConnection) -> None:
        """Make this the key of the database, inside a write transaction, whatever it was before."""
        await put_row(connection, search_marks, {"name": _MARK}, {"value": self._mark()})

    def _mark(self) -> int:
        return int(self._digest("key", "")[:8], 16)

    def _digest(self, kind: str, text: str) -> str:
        if self._key is None:
            self._key = _read_or_make(self.path)
        said = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, said, "sha256")[:_DIGEST_BYTES].hex()


def _read_or_make(path: Path) -> bytes:
    try:
        make_private_folder(path.parent)
        # Another process may make it at the same time.
        with suppress(FileExistsError), open(path, "xb", opener=open_private) as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
            sync_names(path.parent)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(
            Text(
                "I can neither read nor make the key {path}: {reason}. Give the bot's user access to its data folder.",
                path=path,
                reason=error.strerror or type(error).__name__,
            )
        ) from error
    if len(key) != _KEY_BYTES:
        raise StoreError(Text("{path} is damaged: it must have 32 bytes. Restore a copy of it.", path=path))
    return key
