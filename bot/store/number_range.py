"""The largest number that the database can store.

Ids of Discord and numbers of turns are smaller. What somebody types, a model writes or a file has may
be larger: compare it with this number before it gets to the database, where SQLite's driver raises `OverflowError`.
"""

from __future__ import annotations

# Both databases have integers of 64 bits, one of which is the sign.
LARGEST_NUMBER = 2**63 - 1
