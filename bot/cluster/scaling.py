"""How many recognisers the pool wants: one more while finished speech waits too long, one fewer when none waits.

The age of the oldest waiting utterance is what people feel, so that decides, and not the number of calls: a call may be
a tenth of a second of work or three seconds. Ray waits before it follows (`deployment`), so a short peak adds none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# People notice an answer that comes this much later.
SLOW_WAIT_S = 0.3
# A recogniser that works less than this share of the time can take over a whole other one's work.
IDLE_SHARE = 0.3


def wanted_recognisers(
    oldest_waits_s: Sequence[float], busy_shares: Sequence[float], *, running: int, least: int, most: int
) -> int:
    """Return the number of recognisers that the pool should have.

    `oldest_waits_s`: for each recogniser, how long its oldest finished utterance waits. `busy_shares`: for each, the
    share of the last seconds that it computed, 0 to 1. `running`: how many there are; a new one has no figures yet.
    """
    wanted = running
    if oldest_waits_s and max(oldest_waits_s) > SLOW_WAIT_S:
        wanted = running + 1
    elif busy_shares and len(busy_shares) == running and sum(busy_shares) / running < IDLE_SHARE:
        # Two recognisers below the limit do less than one's work, so one of them can go.
        wanted = running - 1
    return min(most, max(least, wanted))
