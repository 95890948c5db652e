"""Tells whether the current task is being cancelled, or only something that it awaits.

A `CancelledError` also comes out of something awaited that was cancelled elsewhere, such as the connection of a tool
server. Then nobody has asked this task to end, and a task group would ignore that it ended.
"""

from __future__ import annotations

import asyncio


def is_being_cancelled() -> bool:
    """Return whether somebody has cancelled the current task. Call it where `CancelledError` is caught."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
