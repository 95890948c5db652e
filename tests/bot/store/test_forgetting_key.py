"""The key of the list of who was forgotten is in a private file, made once, and of one database."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from bot.store.database import open_database
from bot.store.forgettings import KEY_FILE, ForgettingKey, record_forgetting
from compaction.errors import StoreError
from tests.bot.conftest import Place


def test_the_file_is_private_and_made_once(tmp_path: Path) -> None:
    """Two processes have the same digests; each person has another, and none is a plain hash."""
    path = tmp_path / "data" / KEY_FILE
    key, other = ForgettingKey(path), ForgettingKey(path)
    digest = key.person("7")
    assert digest == other.person("7")
    assert key.person("8") != digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [KEY_FILE]
    assert digest not in {hashlib.new(name, b"person:7").hexdigest()[:32] for name in ("md5", "sha256", "blake2b")}
    assert ForgettingKey(tmp_path / "other" / KEY_FILE).person("7") != digest


@pytest.mark.parametrize("damage", ["short", "folder"])
def test_a_damaged_file_is_told(tmp_path: Path, damage: str) -> None:
    """It is never replaced: with another key, nobody who was forgotten would be known."""
    path = tmp_path / KEY_FILE
    if damage == "short":
        path.write_bytes(b"x")
    else:
        path.mkdir()
    with pytest.raises(StoreError, match=KEY_FILE):
        ForgettingKey(path).person("7")


async def test_another_key_is_refused(place: Place, tmp_path: Path) -> None:
    """A process with another key would not know whom its rooms have to leave out."""
    async with open_database(place, data_dir=tmp_path / "one") as one:
        for _ in range(2):
            async with one.writing() as connection:
                await record_forgetting(connection, one.key, "7", session_id=None, seq=None)
    async with open_database(place, data_dir=tmp_path / "two") as two:
        with pytest.raises(StoreError, match="key"):
            async with two.writing() as connection:
                await record_forgetting(connection, two.key, "7", session_id=None, seq=None)
        async with two.writing() as connection:
            await two.key.adopt(connection)
            await record_forgetting(connection, two.key, "7", session_id=None, seq=None)
