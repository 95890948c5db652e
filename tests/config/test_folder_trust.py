"""Whose settings are used without being named: a table of owners and modes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from config.folder_trust import ROOT, Ownership, distrust

ME, OTHER = 1000, 1001
FOLDER, FILE = Path("/srv/bot"), Path("/srv/bot/.env")


def folder(owner: int, mode: int) -> Ownership:
    return Ownership(owner, stat.S_IFDIR | mode)


def file(owner: int, mode: int = 0o644) -> Ownership:
    return Ownership(owner, stat.S_IFREG | mode)


@pytest.mark.parametrize(
    ("folder_is", "file_is"),
    [
        (folder(ME, 0o700), file(ME, 0o600)),
        (folder(ME, 0o755), file(ROOT)),
        (folder(ROOT, 0o755), file(ME)),
        # A system that gives each user a group of their own, and lets it write.
        (folder(ME, 0o775), file(ME, 0o664)),
        # The image's folder belongs to root, and a file of somebody on the host is mounted into it.
        (folder(ROOT, 0o755), file(OTHER)),
        (folder(ME, 0o755), file(OTHER)),
    ],
)
def test_what_only_the_user_or_root_can_have_put_there_is_used(folder_is: Ownership, file_is: Ownership) -> None:
    """The folder decides: where nobody else may bring files, the owner of a file does not matter."""
    assert distrust(FOLDER, folder_is, FILE, file_is, frozenset({ME, ROOT})) is None


@pytest.mark.parametrize(
    ("folder_is", "file_is", "cause"),
    [
        (folder(OTHER, 0o755), file(OTHER), "/srv/bot belongs to another user."),
        (folder(OTHER, 0o755), file(ME), "/srv/bot belongs to another user."),
        # As /tmp is.
        (folder(ROOT, 0o1777), file(OTHER), "every user may write into /srv/bot."),
        (folder(ROOT, 0o1777), file(ME), "every user may write into /srv/bot."),
        (folder(ME, 0o755), file(ME, 0o666), "every user may write into /srv/bot/.env."),
        (folder(ME, 0o775), file(OTHER), "/srv/bot/.env belongs to another user, who may have put it there."),
    ],
)
def test_what_somebody_else_may_have_put_there_is_refused(folder_is: Ownership, file_is: Ownership, cause: str) -> None:
    """The sentence has the cause, and how the folder is used all the same."""
    reason = distrust(FOLDER, folder_is, FILE, file_is, frozenset({ME, ROOT}))
    assert reason is not None
    assert reason.startswith(cause)
    assert "`roomtone --config /srv/bot`, or ROOMTONE_CONFIG=/srv/bot" in reason


def test_what_is_not_there_belongs_to_nobody(tmp_path: Path) -> None:
    """Also a name that no file can have."""
    assert Ownership.of(tmp_path / "absent") is None
    assert Ownership.of(tmp_path / ("x" * 300)) is None
    assert Ownership.of(tmp_path) == Ownership(tmp_path.stat().st_uid, tmp_path.stat().st_mode)
