"""What a room remembers beyond its window: search, upkeep and administration on top of the store.

`recall` searches, `indexer` keeps the index complete, `access_log` counts what was found, `upkeep` runs a room's
periodic memory work, `people` keeps facts about people, `admin` serves `roomtone memory`, `explain` rebuilds what a
model was sent, `transcript` and `replay` run a transcript through the memory.
"""
