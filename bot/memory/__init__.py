"""Memory beyond a room's window: search, upkeep and administration, based on the store.

`recall` searches, `indexer` keeps the index complete, `access_log` counts what was found, `upkeep` runs a session's
background memory work, `people` keeps facts about people, `admin` serves `roomtone memory`, `explain` rebuilds the
prompt of a reply, `transcript` and `replay` run a transcript through the memory.
"""
