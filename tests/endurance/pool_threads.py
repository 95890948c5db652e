"""Starts the threads of the event loop's pool before they are counted."""

from __future__ import annotations

import asyncio
import os
import threading

# A thread that does not start within this time is not allowed to.
_START_S = 60.0


async def start_all_threads() -> None:
    """Start all threads of the event loop's pool. Otherwise the last ones come when several calls happen to wait at
    once, perhaps after hours, and look like growth.
    """
    # As `concurrent.futures.ThreadPoolExecutor` counts them.
    count = min(32, (os.cpu_count() or 1) + 4)
    everybody = threading.Barrier(count)
    await asyncio.gather(*(asyncio.to_thread(everybody.wait, _START_S) for _ in range(count)))
