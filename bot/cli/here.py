"""What a command needs to know of the machine it runs on."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


def local_zone() -> tzinfo:
    """Return the machine's own time zone, as its offset is now."""
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None, "astimezone always sets one"
    return zone


@contextmanager
def nowhere() -> Iterator[TextIO]:
    """Lend a stream that forgets what is written: where the terminal shows something else than the log."""
    with Path(os.devnull).open("w", encoding="utf-8") as stream:
        yield stream
