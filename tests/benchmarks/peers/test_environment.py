"""Separate Python environments for other libraries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.errors import PeerError
from benchmarks.peers.environment import PeerLibrary, peer_python
from benchmarks.progress import NoProgress

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process


@pytest.mark.asyncio
async def test_what_cannot_be_installed_is_told(tmp_path: Path) -> None:
    """The error for a failed installation has pip's own reason."""
    requirements = tmp_path / "none.txt"
    requirements.write_text("--no-index\nno-such-package==1.0\n", "utf-8")
    with pytest.raises(PeerError, match="other could not be installed: ERROR"):
        await peer_python(PeerLibrary("other", requirements, "other_peer"), tmp_path, NoProgress())


@pytest.mark.asyncio
async def test_environment_is_made_once(tmp_path: Path) -> None:
    """An environment is made only once, and other requirements get another environment."""
    requirements = tmp_path / "nothing.txt"
    requirements.write_text("--no-index\n", "utf-8")
    library = PeerLibrary("empty", requirements, "empty_peer")
    first = await peer_python(library, tmp_path, NoProgress())
    assert first.is_file()
    made_at = first.lstat().st_mtime_ns
    assert await peer_python(library, tmp_path, NoProgress()) == first
    assert first.lstat().st_mtime_ns == made_at
    requirements.write_text("--no-index\n# another\n", "utf-8")
    assert await peer_python(library, tmp_path, NoProgress()) != first
    assert sys.prefix not in str(first)
