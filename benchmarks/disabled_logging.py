"""Disable logging while measuring, because writing thousands of log lines would be measured too."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def logging_disabled() -> Iterator[None]:
    """Drop this process's log lines, and restore the previous logging configuration at the end."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop(logger: object, name: str, event: object) -> str:
    del logger, name, event
    raise structlog.DropEvent
